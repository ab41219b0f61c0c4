// The fast road of reading a chunk against the full reading: whenever it answers, both say the
// same.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/target/reply.h"
#include "agent/target/reply_event.h"
#include "common/base/random.h"

namespace tutti::target {
namespace {

using base::ApiType;
using base::Mt19937;

std::string pick(Mt19937& random, const std::vector<std::string>& from) {
  return from[random.below(from.size())];
}

// The inside of a JSON string, sometimes not a valid one.
std::string random_text(Mt19937& random, bool may_be_broken) {
  const std::vector<std::string> good{"a",        " the",
                                      "\xC3\xA9", "\xF0\x9F\x98\x80",
                                      "\\n",      "\\\"",
                                      "\\\\",     "\\/",
                                      "\\u00e9",  "\\ud83d\\ude00",
                                      "{",        "}:,[]",
                                      "content",  "'",
                                      "0",        "\\t"};
  const std::vector<std::string> broken{"\"",
                                        "\\",
                                        "\\x",
                                        "\\u12",
                                        "\\ud83d",
                                        "\\udc00",
                                        "\x01",
                                        "\xFF",
                                        "\xF0\x9F",
                                        "\",\"content\":\"",
                                        "\\ud83d\\u0041"};
  std::string text;
  const std::uint64_t n = random.below(6);
  for (std::uint64_t i = 0; i < n; ++i) {
    text += may_be_broken && random.below(6) == 0 ? pick(random, broken) : pick(random, good);
  }
  return text;
}

// The bytes around a text, as servers write them and as only a villain would.
struct Frame {
  ApiType api = ApiType::kOpenAiChat;
  std::string before;
  std::string after;
};

Frame random_frame(Mt19937& random) {
  const std::string space = pick(random, {"", "", " ", "\n "});
  const std::string key =
      pick(random, {"content", "content", "reasoning_content", "reasoning", "text"});
  Frame frame;
  frame.api = key == "text" ? ApiType::kOpenAiCompletions : ApiType::kOpenAiChat;
  const std::string head = pick(
      random, {"", "\"id\":\"c-1\",\"model\":\"m\",", "\"object\":\"chat.completion.chunk\",",
               "\"content\":\"\",", "\"x\":\"content\",", "\"a\\u0022b\":1,", "\"text\":\"z\","});
  const std::string member = "\"" + key + "\"" + space + ":" + space + "\"";
  const std::string inner_before =
      pick(random, {"", "\"role\":\"assistant\",", "\"role\":null,", "\"content\":null,",
                    "\"reasoning\":\"q\",", "\"reasoning\":\"\",", "\"tool_calls\":null,"});
  const std::string inner_after =
      pick(random, {"", ",\"tool_calls\":[]", ",\"reasoning_content\":null", ",\"content\":\"\"",
                    ",\"reasoning\":\"\"", ",\"" + key + "\":\"a\""});
  const std::string tail =
      pick(random, {"", ",\"finish_reason\":null", ",\"logprobs\":null,\"finish_reason\":null",
                    ",\"finish_reason\":\"stop\""});
  const std::string last = pick(random, {"", ",\"usage\":null", ",\"usage\":{\"prompt_tokens\":1}",
                                         ",\"error\":null", ",\"choices\":null"});
  if (frame.api == ApiType::kOpenAiChat) {
    frame.before = "{" + head + "\"choices\":[{\"index\":0,\"delta\":{" + inner_before + member;
    frame.after = "\"" + inner_after + "}" + tail + "}]" + last + "}";
  } else {
    frame.before = "{" + head + "\"choices\":[{\"index\":0," + member;
    frame.after = "\"" + tail + "}]" + last + "}";
  }
  return frame;
}

// Everything the full reading says, as the reply would use it.
std::string said(const EventFacts& facts) {
  return std::string(facts.valid ? "ok " : "bad ") + (facts.is_error ? "error " : "") +
         (facts.has_usage ? "usage " : "") + (facts.tool_calls != nullptr ? "tools " : "") +
         std::string(facts.finish_reason) + "|" + std::string(facts.content) + "|" +
         std::string(facts.reasoning);
}

TEST(ReplyProperty, TheTemplateSaysWhatTheFullReadingSays) {
  Mt19937 random(20240607);
  std::uint64_t matched = 0;
  std::uint64_t escaped = 0;
  for (int round = 0; round < 8000; ++round) {
    const Frame frame = random_frame(random);
    EventTemplate known;
    for (int chunk = 0; chunk < 8; ++chunk) {
      const std::string json = frame.before + random_text(random, true) + frame.after;
      TextKind kind{};
      std::string_view text;
      const bool match = known.match(json, kind, text);
      const std::string fast_text(text);
      const EventFacts facts = read_event_fully(json, frame.api, EventShape::kChunk);
      if (match) {
        ++matched;
        escaped += json.find('\\') != std::string::npos ? 1U : 0U;
        EventFacts fast;
        fast.valid = true;
        (kind == TextKind::kContent ? fast.content : fast.reasoning) = fast_text;
        ASSERT_EQ(said(fast), said(facts)) << json;
      } else {
        known.learn(json, facts, frame.api);
      }
    }
  }
  EXPECT_GT(matched, 4000U);  // the road is used, not only right
  EXPECT_GT(escaped, 400U);
}

// One event, mostly as servers write it, with what may stand around and inside it.
std::string random_event(Mt19937& random, const Frame& frame) {
  const bool usual = random.below(8) != 0;
  const std::string json = frame.before + random_text(random, true) + frame.after;
  const std::string field =
      usual ? "data: "
            : pick(random, {"data:", "data:  ", "id: 7\ndata: ", ": ping\n\ndata: ", "\ndata: ",
                            "event: error\ndata: ", "data: 1\ndata: "});
  const std::string end =
      usual ? "\n\n" : pick(random, {"\r\n\r\n", "\r\r", "\n", "\n\n\n", "\n: x\n\n", "\r\n\n"});
  const std::string what =
      random.below(40) == 0 ? pick(random, {"[DONE]", "{}", "", "not json"}) : json;
  return field + what + end;
}

wire::Record read_stream(const std::vector<std::string>& parts, ApiType api) {
  Reply reply(api);
  reply.start(true, true);
  reply.on_header(200, "text/event-stream");
  for (const std::string& part : parts) {
    if (!reply.broken()) {
      reply.on_body(part, base::Instant{1});
    }
  }
  wire::Record record;
  reply.on_end(EndKind::kComplete, base::Instant{2}, record);
  return record;
}

// A read that is one whole event takes the shortest way; a byte at a time takes the longest.
TEST(ReplyProperty, AStreamByTheEventIsTheStreamByTheByte) {
  Mt19937 random(20261130);
  std::uint64_t tokens = 0;
  for (int round = 0; round < 4000; ++round) {
    const Frame frame = random_frame(random);
    std::vector<std::string> events;
    std::vector<std::string> bytes;
    for (std::uint64_t left = 2 + random.below(12); left > 0; --left) {
      std::string event = random_event(random, frame);
      if (random.below(12) == 0 && !events.empty()) {
        events.back() += event;  // two in one read
      } else if (random.below(12) == 0) {
        const std::size_t cut = random.below(event.size());
        events.push_back(event.substr(0, cut));
        events.push_back(event.substr(cut));
      } else {
        events.push_back(event);
      }
      for (const char c : event) {
        bytes.emplace_back(1, c);
      }
    }
    const wire::Record by_event = read_stream(events, frame.api);
    ASSERT_EQ(by_event, read_stream(bytes, frame.api)) << testing::PrintToString(events);
    tokens += by_event.content_events;
  }
  EXPECT_GT(tokens, 4000U);
}

// One document in three lines, then the same bytes where only the first line is data.
TEST(ReplyProperty, ADocumentOfSeveralLinesIsNotKnownByItsBytes) {
  const std::string head = R"(data: {"choices":[{"index":0,"delta":{"content")";
  const std::string in_lines = head + "\ndata:  :\ndata:  \"a\"}}]}\n\n";
  const std::string in_one = head + "\n :\n \"a\"}}]}\n\n";
  const wire::Record record =
      read_stream({in_lines, in_lines, in_one, in_one}, ApiType::kOpenAiChat);
  EXPECT_EQ(record.content_events, 2U);
  EXPECT_EQ(record.malformed_events, 2U);
}

TEST(ReplyProperty, TheTemplateIsUsedForAnOrdinaryStream) {
  for (const std::string key : {"content", "reasoning_content", "reasoning"}) {
    EventTemplate known;
    const auto chunk = [&key](const std::string& text) {
      return "{\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{\"" + key + "\":\"" +
             text + "\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}";
    };
    const std::string first = chunk("Hi");
    TextKind kind{};
    std::string_view text;
    EXPECT_FALSE(known.match(first, kind, text));
    known.learn(first, read_event(first, ApiType::kOpenAiChat, EventShape::kChunk),
                ApiType::kOpenAiChat);
    for (const std::string next : {"", "x", "a longer one", "\xF0\x9F\x98\x80", "\\n\\u00e9"}) {
      const std::string json = chunk(next);
      ASSERT_TRUE(known.match(json, kind, text)) << next;
      EXPECT_EQ(kind, key == "content" ? TextKind::kContent : TextKind::kReasoning);
    }
    EXPECT_EQ(text, "\n\xC3\xA9");
    const std::string other = chunk("x") + " ";
    EXPECT_FALSE(known.match(other, kind, text));
  }
}

TEST(ReplyProperty, AChunkWithEscapesInItsTextIsLearnt) {
  const std::string first = R"({"choices":[{"delta":{"content":"\u4f60\"x"}}]})";
  const std::string next = R"({"choices":[{"delta":{"content":"\u597d"}}]})";
  EventTemplate known;
  known.learn(first, read_event(first, ApiType::kOpenAiChat, EventShape::kChunk),
              ApiType::kOpenAiChat);
  TextKind kind{};
  std::string_view text;
  ASSERT_TRUE(known.match(next, kind, text));
  EXPECT_EQ(text, "\xE5\xA5\xBD");
}

TEST(ReplyProperty, AServerWhoseChunksDifferIsLetBe) {
  EventTemplate known;
  TextKind kind{};
  std::string_view text;
  for (int i = 0; i < 20; ++i) {
    const std::string json =
        "{\"n\":" + std::to_string(i) + ",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}";
    EXPECT_FALSE(known.match(json, kind, text));
    known.learn(json, read_event(json, ApiType::kOpenAiChat, EventShape::kChunk),
                ApiType::kOpenAiChat);
  }
  // The eight tries are used up: the last chunk was not learnt.
  EXPECT_FALSE(known.match("{\"n\":19,\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", kind, text));
  EXPECT_TRUE(known.match("{\"n\":7,\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", kind, text));
}

}  // namespace
}  // namespace tutti::target
