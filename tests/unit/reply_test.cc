// Reading a reply: which events are tokens, when they came, what they said.

#include "agent/target/reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reply_driver.h"

namespace tutti::target {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Failure;
using wire::FinishReason;
using wire::Outcome;
using wire::Record;

TEST(ReplyStream, StampsTheFirstContentNotTheRole) {  // ST1, T09
  const Record r = play(stream({delta(R"("role":"assistant","content":"")"), content("He"),
                                content("y"), finish("stop"), kDone}));
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.first_token_at, at_ms(2));
  EXPECT_EQ(r.last_token_at, at_ms(3));
  EXPECT_THAT(r.chunk_at, ElementsAre(at_ms(3)));
  EXPECT_EQ(r.content_events, 2U);
  EXPECT_EQ(r.output.content_first, "He");
  EXPECT_EQ(r.output.content_rest, "y");
  EXPECT_TRUE(r.output.has_content);
  EXPECT_TRUE(r.output.has_rest);
  EXPECT_EQ(r.finish_reason, FinishReason::kStop);
  EXPECT_TRUE(r.streamed);
  EXPECT_EQ(r.http_status, 200);
  EXPECT_EQ(r.error_message, "");
}

TEST(ReplyStream, GivesEventsOfOneSegmentOneStamp) {  // T01
  const Record r = play(stream({content("a") + content("b"), finish("stop") + kDone}));
  EXPECT_EQ(r.first_token_at, at_ms(1));
  EXPECT_EQ(r.last_token_at, at_ms(1));
  EXPECT_EQ(r.content_events, 2U);
}

TEST(ReplyStream, StampsAnEventWithTheSegmentThatCompletesIt) {  // T02
  const std::string event = content("x");
  for (std::size_t i = 1; i < event.size(); ++i) {
    const Record r = play(stream({event.substr(0, i), event.substr(i), finish("stop"), kDone}));
    ASSERT_EQ(r.first_token_at, at_ms(2)) << i;
    ASSERT_EQ(r.output.content_first, "x") << i;
  }
}

TEST(ReplyStream, CountsReasoningOfEitherNameAsTokens) {  // ST2, T15, T16
  for (const std::string name : {"reasoning_content", "reasoning"}) {
    const auto think = [&name](const std::string& text) {
      return delta("\"" + name + "\":\"" + text + "\"");
    };
    const Record r =
        play(stream({think("a"), think("b"), content("c"), content("d"), finish("length"), kDone}));
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.first_token_at, at_ms(1));
    EXPECT_EQ(r.content_events, 4U);
    EXPECT_EQ(r.output.reasoning_first, "a");
    EXPECT_EQ(r.output.reasoning_rest, "b");
    EXPECT_EQ(r.output.content_first + r.output.content_rest, "cd");
    EXPECT_TRUE(r.output.has_reasoning && r.output.has_content && r.output.has_rest);
    EXPECT_EQ(r.finish_reason, FinishReason::kLength);

    const Record only = play(stream({think("a"), finish("length"), kDone}));
    EXPECT_EQ(only.outcome, Outcome::kOk);
    EXPECT_TRUE(only.output.has_reasoning);
    EXPECT_FALSE(only.output.has_content || only.output.has_rest);
  }
}

TEST(ReplyStream, CountsAnEventOnceHoweverMuchItBears) {  // ST3, T17, T19, T-30
  const Record both =
      play(stream({delta(R"("content":"x","reasoning":"y")"), finish("stop"), kDone}));
  EXPECT_EQ(both.content_events, 1U);
  EXPECT_EQ(both.output.content_first, "x");
  EXPECT_EQ(both.output.reasoning_first, "y");
  EXPECT_TRUE(both.output.has_content && both.output.has_reasoning);

  const Record tool = play(
      stream({delta(R"("content":"x","tool_calls":[{"index":0,"id":"1","function":{"name":"f"}}])"),
              finish("tool_calls"), kDone}));
  EXPECT_EQ(tool.content_events, 1U);
  EXPECT_EQ(tool.output.content_first, "x");
  EXPECT_EQ(tool.output.tool_calls,
            R"([{"type":"function","function":{"arguments":"","name":"f"},"id":"1"}])");

  std::vector<std::string> segments;
  for (int i = 0; i < 5; ++i) {
    const std::string t = std::to_string(i);
    segments.push_back(delta("\"reasoning\":\"r" + t + "\",\"reasoning_content\":\"r" + t + "\""));
  }
  for (int i = 0; i < 5; ++i) {
    segments.push_back(content("c" + std::to_string(i)));
  }
  segments.push_back(finish("stop") + kDone);
  const Record ten = play(stream(segments));
  EXPECT_EQ(ten.content_events, 10U);
  EXPECT_EQ(ten.output.reasoning_first + ten.output.reasoning_rest, "r0r1r2r3r4");
  EXPECT_EQ(ten.output.content_first + ten.output.content_rest, "c0c1c2c3c4");
}

TEST(ReplyStream, PutsToolCallsTogether) {  // ST4, T18
  const Record r =
      play(stream({delta(R"("tool_calls":[{"index":0,"id":"call_1","type":"function","function":)"
                         R"({"name":"get","arguments":""}}])"),
                   delta(R"("tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}])"),
                   delta(R"("tool_calls":[{"index":0,"function":{"arguments":"1}"}},)"
                         R"({"index":1,"id":"c2","function":{"name":"h"}}])"),
                   finish("tool_calls"), kDone}));
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.first_token_at, at_ms(1));
  EXPECT_EQ(r.last_token_at, at_ms(3));
  EXPECT_EQ(r.content_events, 3U);
  EXPECT_EQ(r.finish_reason, FinishReason::kToolCalls);
  EXPECT_FALSE(r.output.has_content || r.output.has_reasoning);
  EXPECT_EQ(
      r.output.tool_calls,
      R"([{"type":"function","function":{"arguments":"{\"a\":1}","name":"get"},"id":"call_1"},)"
      R"({"type":"function","function":{"arguments":"","name":"h"},"id":"c2"}])");
}

TEST(ReplyStream, SortsToolCallsByIndexAndTakesIndexZeroWhenThereIsNone) {
  const Record r = play(
      stream({delta(R"("tool_calls":[{"index":2,"function":{"name":"b"}}])"),
              delta(R"("tool_calls":[{"function":{"name":"a"}}])"), finish("tool_calls"), kDone}));
  EXPECT_EQ(r.output.tool_calls, R"([{"type":"function","function":{"arguments":"","name":"a"}},)"
                                 R"({"type":"function","function":{"arguments":"","name":"b"}}])");
}

TEST(ReplyStream, NeverCountsRoleEmptyUsageOrFinishEvents) {  // T10, T11, T12, ST5
  const Record r =
      play(stream({delta(R"("role":"assistant")"), delta(R"("content":"")"), content("a"),
                   delta(R"("content":null,"reasoning_content":null,"tool_calls":null)"),
                   delta(R"("content":"","tool_calls":[])"), content("b"), finish("stop"),
                   event(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,)"
                         R"("completion_tokens_details":{"reasoning_tokens":1}}})"),
                   event(R"({"choices":[],"usage":null})"), kDone}));
  EXPECT_EQ(r.content_events, 2U);
  EXPECT_EQ(r.first_token_at, at_ms(3));
  EXPECT_EQ(r.last_token_at, at_ms(6));  // the late usage event moves nothing
  EXPECT_EQ(r.malformed_events, 0U);
  EXPECT_EQ(r.prompt_tokens, 7);
  EXPECT_EQ(r.completion_tokens, 2);
  EXPECT_EQ(r.reasoning_tokens, 1);
}

TEST(ReplyStream, TakesTheLastUsageOfAContinuousReport) {  // T31
  const auto chunk = [](const std::string& text, int tokens) {
    return event("{\"choices\":[{\"delta\":{\"content\":\"" + text +
                 "\"}}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":" +
                 std::to_string(tokens) + "}}");
  };
  const Record r = play(stream({chunk("abcdefgh", 8), chunk("i", 9), finish("stop"), kDone}));
  EXPECT_EQ(r.content_events, 2U);
  EXPECT_EQ(r.completion_tokens, 9);
  EXPECT_EQ(r.reasoning_tokens, -1);
}

TEST(ReplyStream, AcceptsChunksWithoutObjectOrId) {  // T14
  const Record r = play(stream({event(R"({"choices":[{"delta":{"content":"a"}}]})"),
                                event(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})")}));
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.output.content_first, "a");
}

TEST(ReplyStream, OneTokenHasNoChunkAfterIt) {  // T30
  const Record r = play(stream({content("a"), finish("stop"), kDone}));
  EXPECT_EQ(r.first_token_at, r.last_token_at);
  EXPECT_THAT(r.chunk_at, IsEmpty());
  EXPECT_FALSE(r.output.has_rest);
}

TEST(ReplyStream, KeepsChunkStampsOnlyWhenAsked) {
  Script script = stream({content("a"), content("b"), content("c"), finish("stop"), kDone});
  EXPECT_THAT(play(script).chunk_at, ElementsAre(at_ms(2), at_ms(3)));
  script.stamp_every_chunk = false;
  EXPECT_THAT(play(script).chunk_at, IsEmpty());
}

TEST(ReplyStream, CountsEveryGapOnceWhenItKeepsNoStamps) {
  const auto cell = [](std::int64_t ns) {
    return static_cast<std::uint16_t>(stats::LiveHistogram::cell_of(ns));
  };
  // Two events in the third segment: the second of them came after nothing. An event that is no
  // content makes no gap, and none ends one.
  Script script = stream({content("a"), delta("\"role\":\"assistant\""),
                          content("b") + content("c"), content("d"), finish("stop"), kDone});
  EXPECT_THAT(play(script).gaps, IsEmpty());
  script.stamp_every_chunk = false;
  Reply reply(base::ApiType::kOpenAiChat);
  for (int round = 0; round < 2; ++round) {  // a pooled reply begins anew
    const Record r = play_on(reply, script);
    EXPECT_EQ(r.content_events, 4U);
    EXPECT_THAT(r.gaps, ElementsAre(wire::CountedCell{0, 1}, wire::CountedCell{cell(1'000'000), 1},
                                    wire::CountedCell{cell(2'000'000), 1}));
  }
  const Record one = play_on(reply, stream({content("a"), finish("stop"), kDone}));
  EXPECT_THAT(one.gaps, IsEmpty());
}

TEST(ReplyStream, CountsMalformedEventsAndGoesOn) {  // ST6, T32
  const Record r = play(stream({content("a") + event("{\"choices\":[{\"delta\"") + content("b"),
                                delta("\"content\":5"), event("[1]"), event("nonsense"),
                                event(R"({"choices":5})"), content("c"), finish("stop"), kDone}));
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.malformed_events, 5U);
  EXPECT_EQ(r.output.content_first + r.output.content_rest, "abc");
}

// The reference's six ways to find a document in an event's bytes. Three are ours too; where it
// matches by a pattern and not by the grammar of event streams, we go by the grammar.
TEST(ReplyStream, FindsDocumentsByTheGrammarOfEventStreams) {
  const auto told = [](const std::string& bytes) {
    const Record r = play(stream({bytes + "\n\n", finish("stop"), kDone}));
    return std::pair(r.output.content_first, r.malformed_events);
  };
  const std::string a = R"({"choices":[{"delta":{"content":"a"}}]})";
  using Told = std::pair<std::string, std::uint32_t>;
  EXPECT_EQ(told("data:" + a), Told("a", 0U));
  EXPECT_EQ(told("data: {}"), Told("", 0U));
  EXPECT_EQ(told("data: " + a + " t}"), Told("", 1U));
  EXPECT_EQ(told("data: " + a + " data: " + a), Told("", 1U));  // one broken document there, too
  EXPECT_EQ(told("xdata: " + a), Told("", 0U));                 // there a match: no such field
  EXPECT_EQ(told("data: \n" + a), Told("", 0U));                // there a match: another line
}

TEST(ReplyStream, IgnoresEmptyEventsAndForeignFields) {
  const Record r = play(stream({event("{}"), event(""), event(R"({"timings":{"x":1}})"),
                                "event: ping\ndata: {\"type\":\"ping\"}\n\n", ": keep-alive\n\n",
                                content("a"), finish("stop"), kDone}));
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.malformed_events, 0U);
  EXPECT_EQ(r.content_events, 1U);
  EXPECT_EQ(r.first_token_at, at_ms(6));  // T07: comments are no tokens
}

TEST(ReplyStream, DecodesEscapesAndRepairsBrokenUtf8) {  // T03
  const Record r = play(stream({content("plain"), content("a"), content(R"(\n\t\"\\\/\b\f\r)"),
                                content(R"(\u00e9\ud83d\ude00)"), content("\xF0\x9F\x98\x80"),
                                content("bad\xFF."), finish("stop"), kDone}));
  EXPECT_EQ(r.malformed_events, 0U);
  EXPECT_EQ(r.output.content_rest,
            "a\n\t\"\\/\b\f\r\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80"
            "bad\xEF\xBF\xBD.");
}

TEST(ReplyStream, ReadsCompletionsText) {
  Script script =
      stream({event(R"({"object":"text_completion","choices":[{"index":0,"text":"He"}]})"),
              event(R"({"object":"text_completion","choices":[{"index":0,"text":"y"}]})"),
              event(R"({"object":"text_completion","choices":[{"index":0,"text":""}]})"),
              event(R"({"choices":[{"text":"!","finish_reason":"stop"}]})"), kDone});
  script.api = base::ApiType::kOpenAiCompletions;
  const Record r = play(script);
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.content_events, 3U);
  EXPECT_EQ(r.output.content_first, "He");
  EXPECT_EQ(r.output.content_rest, "y!");
  EXPECT_EQ(r.finish_reason, FinishReason::kStop);
}

TEST(ReplyStream, KeepsAnUnknownFinishReasonAsSent) {
  EXPECT_EQ(play(stream({content("a"), finish("eos"), kDone})).finish_text, "eos");
  EXPECT_EQ(play(stream({content("a"), finish("eos"), kDone})).finish_reason, FinishReason::kOther);
  const Record last = play(stream({content("a"), finish("eos"), finish("stop"), kDone}));
  EXPECT_EQ(last.finish_reason, FinishReason::kStop);
  EXPECT_EQ(last.finish_text, "");
}

// One script with everything in it, in every line end, cut at every place.
TEST(ReplyStream, SaysTheSameForEverySplit) {  // T02, T03, T04, T05, T06, T08, T-13
  const std::string lf =
      joined({"\xEF\xBB\xBF: hello\n\n", delta(R"("role":"assistant","content":"")"),
              delta(R"("reasoning_content":"th\u00e9")"), delta(R"("reasoning_content":"nk")"),
              content("\xF0\x9F\x98\x80"), content("b\\n"), content("c"), "data: {\"choices\":\n",
              "data: []}\n\n", event("broken"),
              delta(R"("tool_calls":[{"index":0,"function":{"arguments":"{}"}}])"),
              "event: x\nid: 3\nretry: 5\n", content("d"), finish("stop"),
              event(R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":5}})"),
              "data: [DONE]"});
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string bytes;
    for (const char c : lf) {
      bytes += c == '\n' ? end : std::string(1, c);
    }
    const std::string whole = facts_of(play(stream({bytes})));
    ASSERT_THAT(whole, testing::HasSubstr("events=7/1\n")) << whole;
    ASSERT_THAT(whole, testing::HasSubstr("outcome=0\n")) << whole;
    for (std::size_t i = 1; i < bytes.size(); ++i) {
      ASSERT_EQ(facts_of(play(stream({bytes.substr(0, i), bytes.substr(i)}))), whole) << i;
    }
    std::vector<std::string> single;
    for (const char c : bytes) {
      single.emplace_back(1, c);
    }
    EXPECT_EQ(facts_of(play(stream(single))), whole);
  }
}

TEST(ReplyWhole, ReadsAJsonReply) {  // T-17
  Script script =
      stream({R"({"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hey",)",
              R"("reasoning_content":"hm","tool_calls":[{"id":"1","type":"function",)",
              R"("function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],)",
              R"("usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}})"});
  script.want_stream = false;
  script.content_type = "application/json";
  const Record r = play(script);
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.error_message;
  EXPECT_FALSE(r.streamed);
  EXPECT_FALSE(r.first_token_at.is_set());
  EXPECT_FALSE(r.last_token_at.is_set());
  EXPECT_EQ(r.content_events, 0U);
  EXPECT_EQ(r.output.content_first, "Hey");
  EXPECT_EQ(r.output.reasoning_first, "hm");
  EXPECT_FALSE(r.output.has_rest);
  EXPECT_EQ(r.output.tool_calls,
            R"([{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}])");
  EXPECT_EQ(r.prompt_tokens, 3);
  EXPECT_EQ(r.completion_tokens, 4);
  EXPECT_EQ(r.finish_reason, FinishReason::kStop);
}

TEST(ReplyWhole, AcceptsAnEmptyAnswer) {
  Script script = stream({R"({"choices":[{"message":{"content":null},"finish_reason":"stop"}]})"});
  script.want_stream = false;
  script.content_type = "application/json";
  const Record r = play(script);
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_FALSE(r.output.has_content);
}

TEST(ReplyWhole, ReadsJsonWhereAStreamWasAskedFor) {
  for (const std::string type : {"application/json", "text/event-stream", ""}) {
    Script script = stream({" \n", R"({"choices":[{"message":{"content":"Hey"}}]})"});
    script.content_type = type;
    const Record r = play(script);
    EXPECT_EQ(r.outcome, Outcome::kOk) << type;
    EXPECT_FALSE(r.streamed) << type;
    EXPECT_FALSE(r.first_token_at.is_set()) << type;
    EXPECT_EQ(r.output.content_first, "Hey") << type;
  }
}

TEST(ReplyWhole, ReadsAStreamWhereJsonWasAskedFor) {
  for (const std::string type : {"application/json", "Text/Event-Stream", "text/plain", ""}) {
    Script script = stream({content("a"), content("b"), finish("stop"), kDone});
    script.want_stream = false;
    script.content_type = type;
    const Record r = play(script);
    EXPECT_EQ(r.outcome, Outcome::kOk) << type;
    EXPECT_TRUE(r.streamed) << type;
    EXPECT_EQ(r.first_token_at, at_ms(1)) << type;
  }
}

TEST(ReplyWhole, ReadsCompletionsText) {
  Script script = stream({R"({"choices":[{"index":0,"text":"Hey","finish_reason":"length"}]})"});
  script.api = base::ApiType::kOpenAiCompletions;
  script.want_stream = false;
  script.content_type = "application/json";
  EXPECT_EQ(play(script).output.content_first, "Hey");
}

TEST(Reply, IsReusedWithoutATraceOfTheLastReply) {
  Reply reply(base::ApiType::kOpenAiChat);
  Script full =
      stream({content("a"), content("b"), content("c"),
              delta(R"("reasoning":"r","tool_calls":[{"index":0,"id":"z"}])"), finish("eos"),
              event(R"({"usage":{"prompt_tokens":1}})"), "event: error\n\n"});
  EXPECT_EQ(play_on(reply, full).failure, Failure::kStreamError);
  const Script next = stream({content("x"), finish("stop"), kDone});
  EXPECT_EQ(facts_of(play_on(reply, next)), facts_of(play(next)));
  EXPECT_FALSE(play_on(reply, stream({kDone})).first_token_at.is_set());
}

TEST(Reply, TellsTheEngineWhatItHasSeen) {
  Reply reply(base::ApiType::kOpenAiChat);
  reply.start(true, false);
  reply.on_header(200, "text/event-stream");
  reply.on_body(delta(R"("role":"assistant")"), at_ms(3));
  EXPECT_FALSE(reply.first_token_seen());
  EXPECT_EQ(reply.last_byte_at(), at_ms(3));
  reply.on_body(content("a"), at_ms(4));
  EXPECT_TRUE(reply.first_token_seen());
  EXPECT_EQ(reply.first_token_at(), at_ms(4));
  EXPECT_EQ(reply.content_events(), 1U);
  EXPECT_FALSE(reply.end_marker_seen());
  reply.on_body(kDone, at_ms(5));
  EXPECT_TRUE(reply.end_marker_seen());
}

}  // namespace
}  // namespace tutti::target
