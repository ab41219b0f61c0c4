// How a reply ends: each end has one judgement.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/target/reply.h"
#include "common/text/utf8.h"
#include "tests/unit/reply_driver.h"

namespace tutti::target {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using wire::Failure;
using wire::FinishReason;
using wire::Outcome;
using wire::Record;

Script with_end(std::vector<std::string> segments, EndKind end) {
  Script script = stream(std::move(segments));
  script.end = end;
  return script;
}

TEST(ReplyEnd, AStreamWithoutAnyEventFails) {  // T-07 a, ST7 judged our way
  for (const std::vector<std::string>& segments :
       {std::vector<std::string>{}, {"\n\n"}, {": ping\n\n"}, {kDone}}) {
    const Record r = play(stream(segments));
    EXPECT_EQ(r.outcome, Outcome::kFailed);
    EXPECT_EQ(r.failure, Failure::kEmptyStream);
    EXPECT_THAT(r.error_message, HasSubstr("without any event"));
  }
}

TEST(ReplyEnd, OnlyRoleChunksFailUnlessAFinishReasonCame) {  // T-07 b
  const Record r = play(stream({delta(R"("role":"assistant","content":"")"), kDone}));
  EXPECT_EQ(r.failure, Failure::kEmptyStream);
  EXPECT_THAT(r.error_message, StartsWith("no tokens"));
  const Record empty =
      play(stream({delta(R"("role":"assistant","content":"")"), finish("stop"), kDone}));
  EXPECT_EQ(empty.outcome, Outcome::kOk);
  EXPECT_FALSE(empty.first_token_at.is_set());
  EXPECT_EQ(empty.content_events, 0U);
}

TEST(ReplyEnd, AnErrorObjectInAStreamFailsAndKeepsThePartialText) {  // T22, T-07 c
  const Record r = play(stream({content("a"), content("b"), content("c"),
                                event(R"({"error":{"message":"x","code":500}})"), kDone}));
  EXPECT_EQ(r.outcome, Outcome::kFailed);
  EXPECT_EQ(r.failure, Failure::kStreamError);
  EXPECT_EQ(r.http_status, 500);
  EXPECT_THAT(r.error_message, HasSubstr("x"));
  EXPECT_EQ(r.content_events, 3U);
  EXPECT_EQ(r.output.content_first + r.output.content_rest, "abc");
  EXPECT_EQ(r.first_token_at, at_ms(1));
}

TEST(ReplyEnd, ReadsTheErrorsOfManyServers) {
  const auto status = [](std::string_view json) { return play(stream({event(json)})).http_status; };
  EXPECT_EQ(status(R"({"error":"boom"})"), 502);
  EXPECT_EQ(status(R"({"error":{"message":"x","code":"429"}})"), 429);
  EXPECT_EQ(status(R"({"error":{"message":"x","code":"rate_limit","status":503}})"), 503);
  EXPECT_EQ(status(R"({"error":{"message":"x","code":40303}})"), 502);
  EXPECT_EQ(status(R"({"object":"error","message":"too long","code":400})"), 400);
  EXPECT_THAT(
      play(stream({event(R"({"object":"error","message":"too long","code":400})")})).error_message,
      HasSubstr("too long"));
  for (const std::string none : {R"("error":null)", R"("error":"")", R"("error":false)"}) {
    const Record r =
        play(stream({event("{" + none + R"(,"choices":[{"delta":{"content":"a"}}]})"), kDone}));
    EXPECT_EQ(r.outcome, Outcome::kOk) << none;
  }
}

TEST(ReplyEnd, AnErrorEventFailsWithItsText) {  // T23
  const Record comment = play(stream({content("a"), "event: error\n: engine died\n\n"}));
  EXPECT_EQ(comment.failure, Failure::kStreamError);
  EXPECT_EQ(comment.http_status, 502);
  EXPECT_THAT(comment.error_message, HasSubstr("engine died"));
  EXPECT_EQ(comment.output.content_first, "a");
  const Record text = play(stream({"event: ERROR\ndata: out of memory\n\n"}));
  EXPECT_THAT(text.error_message, HasSubstr("out of memory"));
  const Record json = play(stream({"event: error\ndata: {\"message\":\"busy\",\"code\":503}\n\n"}));
  EXPECT_EQ(json.http_status, 503);
  EXPECT_THAT(json.error_message, HasSubstr("busy"));
}

TEST(ReplyEnd, AnErrorObjectAsWholeReplyFails) {  // T21
  Script script = stream({R"({"error":{"message":"slow down","code":429}})"});
  script.want_stream = false;
  script.content_type = "application/json";
  const Record r = play(script);
  EXPECT_EQ(r.failure, Failure::kStreamError);
  EXPECT_EQ(r.http_status, 429);
  EXPECT_THAT(r.error_message, HasSubstr("slow down"));
  script.want_stream = true;  // JSON error where a stream was asked for
  EXPECT_EQ(play(script).http_status, 429);
}

TEST(ReplyEnd, EndOfStreamWithoutMarkerNeedsAFinishReason) {  // T25, T26
  const Record cut = play(stream({content("a"), content("b")}));
  EXPECT_EQ(cut.outcome, Outcome::kFailed);
  EXPECT_EQ(cut.failure, Failure::kTruncated);
  EXPECT_EQ(cut.output.content_rest, "b");
  EXPECT_EQ(play(stream({content("a"), finish("stop")})).outcome, Outcome::kOk);
  EXPECT_EQ(play(with_end({content("a"), finish("stop")}, EndKind::kClosed)).outcome, Outcome::kOk);
  EXPECT_EQ(play(stream({content("a"), kDone})).outcome, Outcome::kOk);
  EXPECT_EQ(play(stream({delta(R"("role":"assistant")")})).failure, Failure::kTruncated);
}

TEST(ReplyEnd, ALostConnectionFailsAndKeepsThePartialText) {  // T27
  for (const EndKind end : {EndKind::kReset, EndKind::kClosed}) {
    Script script = with_end(
        {content("a"), content("b"), content("c"), content("d"), content("e") + "data: {\"choi"},
        end);
    script.detail = "Connection reset by peer";
    const Record r = play(script);
    EXPECT_EQ(r.outcome, Outcome::kFailed);
    EXPECT_EQ(r.failure, Failure::kReset);
    EXPECT_EQ(r.content_events, 5U);
    EXPECT_EQ(r.malformed_events, 0U);  // the cut event is the cut's fault
    EXPECT_EQ(r.output.content_first + r.output.content_rest, "abcde");
    EXPECT_THAT(r.error_message, HasSubstr("Connection reset by peer"));
    EXPECT_EQ(r.http_status, 200);
  }
  EXPECT_EQ(play(with_end({content("a"), finish("stop")}, EndKind::kReset)).failure,
            Failure::kReset);
  for (const EndKind end : {EndKind::kReset, EndKind::kClosed, EndKind::kRequestTimeout}) {
    EXPECT_EQ(play(with_end({content("a"), kDone}, end)).outcome, Outcome::kOk);  // all is here
  }
}

TEST(ReplyEnd, DataAfterTheMarkerIsIgnoredAndCounted) {  // T28
  const Record r = play(stream(
      {content("a"), finish("stop"), kDone, content("b"), event(R"({"error":"late"})"), kDone}));
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.malformed_events, 3U);
  EXPECT_EQ(r.output.content_first + r.output.content_rest, "a");
  EXPECT_EQ(r.content_events, 1U);
}

TEST(ReplyEnd, OnlyMalformedEventsFail) {
  EXPECT_EQ(play(stream({event("{"), event("x"), kDone})).failure, Failure::kBadReply);
  EXPECT_EQ(play(stream({event("{"), event("x")})).failure, Failure::kBadReply);
  EXPECT_EQ(play(stream({event("{"), content("a"), kDone})).outcome, Outcome::kOk);
}

TEST(ReplyEnd, EveryOtherStatusFailsWithTheStartOfItsBody) {  // T36
  Script script = stream({"<html>", "no\xFF</html>"});
  script.status = 500;
  script.content_type = "text/html";
  const Record html = play(script);
  EXPECT_EQ(html.failure, Failure::kHttpStatus);
  EXPECT_EQ(html.http_status, 500);
  EXPECT_EQ(html.error_message, "HTTP 500: <html>no\xEF\xBF\xBD</html>");
  EXPECT_FALSE(html.streamed);
  for (const int status : {201, 204, 302, 429, 503}) {
    script.status = status;
    script.segments = {};
    EXPECT_EQ(play(script).failure, Failure::kHttpStatus);
    EXPECT_EQ(play(script).error_message, "HTTP " + std::to_string(status) + ": ");
  }
  // A stream inside an error status is not read as one, and a long page is cut between code points.
  script.status = 503;
  script.segments = {content("a"), std::string(3000, 'x')};
  EXPECT_EQ(play(script).content_events, 0U);
  script.segments = {std::string(1000, 'x')};
  for (int i = 0; i < 100; ++i) {
    script.segments.push_back("\xC3\xA9");
  }
  const Record longer = play(script);
  EXPECT_LE(longer.error_message.size(), wire::kErrorTextMax);
  EXPECT_GE(longer.error_message.size(), wire::kErrorTextMax - 3);
  EXPECT_TRUE(text::is_utf8(longer.error_message));
  script.end = EndKind::kReset;  // the status is known whatever became of the body
  EXPECT_EQ(play(script).failure, Failure::kHttpStatus);
}

TEST(ReplyEnd, WithoutAHeaderTheTransportSaysWhy) {
  const std::pair<EndKind, Failure> ends[] = {{EndKind::kConnect, Failure::kConnect},
                                              {EndKind::kConnectTimeout, Failure::kConnectTimeout},
                                              {EndKind::kTls, Failure::kTls},
                                              {EndKind::kReset, Failure::kReset},
                                              {EndKind::kClosed, Failure::kReset},
                                              {EndKind::kRequestTimeout, Failure::kRequestTimeout},
                                              {EndKind::kBadReply, Failure::kBadReply},
                                              {EndKind::kInternal, Failure::kInternal},
                                              {EndKind::kComplete, Failure::kBadReply}};
  for (const auto& [end, failure] : ends) {
    Script script = with_end({}, end);
    script.status = 0;
    const Record r = play(script);
    EXPECT_EQ(r.failure, failure);
    EXPECT_EQ(r.outcome, Outcome::kFailed);
    EXPECT_EQ(r.http_status, 0);
    EXPECT_FALSE(r.error_message.empty());
  }
}

TEST(ReplyEnd, ATimeoutOrCancelKeepsWhatCame) {
  const Record late = play(with_end({content("a"), content("b")}, EndKind::kRequestTimeout));
  EXPECT_EQ(late.failure, Failure::kRequestTimeout);
  EXPECT_EQ(late.output.content_rest, "b");
  const Record ours = play(with_end({content("a")}, EndKind::kCancelled));
  EXPECT_EQ(ours.outcome, Outcome::kCancelled);
  EXPECT_EQ(ours.failure, Failure::kCancelled);
  EXPECT_EQ(ours.output.content_first, "a");
}

TEST(ReplyEnd, AWholeReplyThatIsNoCompletionFails) {
  Script script = stream({});
  script.want_stream = false;
  script.content_type = "application/json";
  const auto failure = [&script](std::vector<std::string> segments) {
    script.segments = std::move(segments);
    return play(script).failure;
  };
  EXPECT_EQ(failure({}), Failure::kBadReply);
  EXPECT_EQ(failure({"{\"choices\":[{\"message\":"}), Failure::kBadReply);
  EXPECT_EQ(failure({"{}"}), Failure::kBadReply);
  EXPECT_EQ(failure({R"({"choices":[]})"}), Failure::kBadReply);
  EXPECT_EQ(failure({R"({"choices":[{"message":{"content":5}}]})"}), Failure::kBadReply);
  EXPECT_EQ(failure({"<html>login</html>"}), Failure::kBadReply);
  EXPECT_THAT(play(script).error_message, HasSubstr("<html>login"));
  EXPECT_EQ(failure({"[1]"}), Failure::kBadReply);
  script.end = EndKind::kClosed;
  EXPECT_EQ(failure({R"({"choices":[{"message":{"content":"a"}}])"}), Failure::kReset);
  script.want_stream = true;  // HTML where a stream was asked for
  script.end = EndKind::kComplete;
  script.content_type = "text/html";
  EXPECT_EQ(failure({"<html>login</html>"}), Failure::kBadReply);
}

TEST(ReplyEnd, ATooLargeEventFailsAndAsksForTheConnectionsEnd) {  // T-32
  Reply reply(base::ApiType::kOpenAiChat);
  const std::string five_mb(5 << 20, 'x');
  EXPECT_EQ(
      play_on(reply, stream({content(five_mb), finish("stop"), kDone})).output.content_first.size(),
      five_mb.size());
  EXPECT_FALSE(reply.broken());
  Script endless = with_end({content("a"), "data: "}, EndKind::kClosed);
  for (int i = 0; i < 5; ++i) {
    endless.segments.push_back(five_mb);
  }
  const Record r = play_on(reply, endless);
  EXPECT_TRUE(reply.broken());
  EXPECT_EQ(r.failure, Failure::kBadReply);
  EXPECT_THAT(r.error_message, HasSubstr("larger than 16 MiB"));
  EXPECT_EQ(r.output.content_first, "a");
  EXPECT_EQ(play_on(reply, stream({content("b"), kDone})).outcome, Outcome::kOk);
}

}  // namespace
}  // namespace tutti::target
