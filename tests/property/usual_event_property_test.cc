// The one-pass road against the full reading (simdjson): whenever it answers, both say the same and
// nothing was refused. Documents are made of what servers write and what villains would, then
// damaged: bytes changed, dropped, doubled, cut.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/target/known_form.h"
#include "agent/target/usual_event.h"
#include "common/base/random.h"

namespace tutti::target {
namespace {

using base::ApiType;
using base::Mt19937;

std::string pick(Mt19937& random, const std::vector<std::string>& from) {
  return from[random.below(from.size())];
}

std::string blank(Mt19937& random) { return pick(random, {"", "", "", "", " ", "\n\t", "\r "}); }

// A string of any content: mostly plain ones of all lengths around the eight bytes of a step.
std::string random_string(Mt19937& random) {
  std::string text(random.below(20), 'x');
  if (!text.empty() && random.below(6) == 0) {
    text[random.below(text.size())] = "\"\\\x01\xFF\x7F\n\t\r{}:,"[random.below(12)];
  }
  if (random.below(12) == 0) {
    text += pick(random, {"\\n", "\\u0041", "\xC3\xA9", "\\\"", "\\x"});
  }
  return '"' + text + '"';
}

std::string random_number(Mt19937& random) {
  return pick(random, {"0", "7", "12345", "01", "-1", "1.5", "1e3", "00", "4294967296",
                       "999999999999999999", "9999999999999999999", "99999999999999999999", "+1",
                       "2147483648", "1.", "0x1", "1e999", "3 4"});
}

std::string random_value(Mt19937& random, int depth) {
  std::string out;
  switch (random.below(depth > 0 ? 9 : 6)) {
    case 0:
    case 1:
      return random_string(random);
    case 2:
      return random_number(random);
    case 3:
    case 4:
      return "null";
    case 5:
      return pick(random, {"true", "false", "nul", "True", "nullx"});
    case 6:
    case 7: {
      for (std::uint64_t left = random.below(3); left > 0; --left) {
        out += (out.empty() ? "" : ",") + blank(random) + random_value(random, depth - 1);
      }
      return "[" + out + blank(random) + "]";
    }
    default: {
      for (std::uint64_t left = random.below(3); left > 0; --left) {
        out += (out.empty() ? "" : ",") + random_string(random) + ":" +
               random_value(random, depth - 1);
      }
      return "{" + out + "}";
    }
  }
}

using Make = std::string (*)(Mt19937&);

// An object whose members are of these names, nearly always with a value as `make` has it.
std::string object_of(Mt19937& random, const std::vector<std::pair<std::string, Make>>& known) {
  std::string out = "{" + blank(random);
  bool first = true;
  for (std::uint64_t left = random.below(6); left > 0; --left) {
    const auto& [name, make] = known[random.below(known.size())];
    out += first ? "" : ",";
    first = false;
    out += blank(random) + '"' + name + '"' + blank(random) + ':' + blank(random) +
           (random.below(12) == 0 ? random_value(random, 2) : make(random)) + blank(random);
  }
  return out + "}";
}

std::string any(Mt19937& random) { return random_value(random, 2); }
std::string text(Mt19937& random) { return random.below(3) == 0 ? "null" : random_string(random); }
std::string count(Mt19937& random) { return pick(random, {"0", "3", "17", "2147483648", "null"}); }
std::string details(Mt19937& random) {
  return object_of(random, {{"reasoning_tokens", count}, {"audio_tokens", count}, {"x", any}});
}
std::string usage(Mt19937& random) {
  return random.below(4) == 0 ? "null"
                              : object_of(random, {{"prompt_tokens", count},
                                                   {"completion_tokens", count},
                                                   {"total_tokens", count},
                                                   {"completion_tokens_details", details}});
}
std::string tools(Mt19937& random) {
  return pick(random, {"null", "[]", "[ ]", R"([{"index":0,"function":{"name":"f"}}])", "{}"});
}
std::string message(Mt19937& random) {
  return random.below(8) == 0 ? "null"
                              : object_of(random, {{"content", text},
                                                   {"role", text},
                                                   {"content", text},
                                                   {"reasoning", text},
                                                   {"reasoning_content", text},
                                                   {"tool_calls", tools},
                                                   {"refusal", any}});
}
std::string choices(Mt19937& random) {
  std::string out;
  for (std::uint64_t left = random.below(8) == 0 ? random.below(3) : 1; left > 0; --left) {
    out += (out.empty() ? "" : ",") + object_of(random, {{"message", message},
                                                         {"delta", message},
                                                         {"text", text},
                                                         {"finish_reason", text},
                                                         {"index", count},
                                                         {"logprobs", any}});
  }
  return "[" + blank(random) + out + "]" + blank(random);
}
std::string error(Mt19937& random) {
  return pick(random, {"null", "null", "\"\"", "false", "true", R"({"message":"m","code":429})"});
}
std::string kind(Mt19937& random) {
  return pick(random, {"\"chat.completion\"", "\"text_completion\"", "\"error\"", "null", "3"});
}

std::string document(Mt19937& random) {
  std::string out = object_of(random, {{"id", text},
                                       {"object", kind},
                                       {"choices", choices},
                                       {"usage", usage},
                                       {"choices", choices},
                                       {"model", text},
                                       {"created", count},
                                       {"error", error},
                                       {"message", text},
                                       {"code", count}});
  while (random.below(3) == 0 && !out.empty()) {
    const std::size_t at = random.below(out.size());
    switch (random.below(4)) {
      case 0:
        out[at] = "{}[]:,\"\\ 0n\xFF"[random.below(12)];
        break;
      case 1:
        out.erase(at, 1);
        break;
      case 2:
        out.insert(at, 1, out[at]);
        break;
      default:
        out.resize(random.below(8) == 0 ? at : out.size());
    }
  }
  return out + pick(random, {"", "", "", " ", "\n", "x", "}", std::string(1, '\0')});
}

std::string said(const EventFacts& facts) {
  return std::string(facts.valid ? "ok " : "bad ") + (facts.is_error ? "error " : "") +
         (facts.has_usage ? "usage " : "") + (facts.has_choice ? "choice " : "") +
         (facts.two_reasonings ? "two " : "") +
         (facts.tool_calls != nullptr || !facts.tool_calls_json.empty() ? "tools " : "") +
         std::string(facts.finish_reason) + "|" + std::string(facts.content) + "|" +
         std::string(facts.reasoning) + "|" + std::string(facts.error_message) + "|" +
         std::to_string(facts.error_code) + "|" + std::to_string(facts.prompt_tokens) + "|" +
         std::to_string(facts.completion_tokens) + "|" + std::to_string(facts.reasoning_tokens);
}

TEST(UsualEventProperty, WhatItAnswersTheFullReadingSays) {
  Mt19937 random(20261130);
  std::uint64_t answered = 0;
  for (int round = 0; round < 120'000; ++round) {
    // Exactly as long as it is: a read beyond its end is one for ASan.
    const std::string made = document(random);
    const std::vector<char> bytes(made.begin(), made.end());
    const std::string_view json(bytes.data(), bytes.size());
    for (const ApiType api : {ApiType::kOpenAiChat, ApiType::kOpenAiCompletions}) {
      for (const EventShape shape : {EventShape::kChunk, EventShape::kWhole}) {
        EventFacts usual;
        if (read_usual_event(json, api, shape, usual)) {
          ++answered;
          ASSERT_EQ(said(usual), said(read_event_fully(json, api, shape))) << json;
        }
      }
    }
  }
  EXPECT_GT(answered, 10'000U);  // the road is used, not only right
}

// The same document with other values: runs of x and of digits become others, now and then what no
// value of their kind may be.
std::string sibling(Mt19937& random, const std::string& of) {
  std::string out;
  for (std::size_t at = 0; at < of.size();) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const bool text = of[at] == 'x' || (of[at] == '"' && random.below(40) == 0);
    if (!is_digit(of[at]) && !text) {
      out += of[at++];
      continue;
    }
    if (of[at] == '"') {  // an empty text may get bytes, a name too: then the form is another
      out += of[at++];
      out += std::string(random.below(3) == 0 ? random.below(20) : 0, 'y');
      continue;
    }
    const std::size_t from = at;
    while (at < of.size() && (is_digit(of[at]) || of[at] == 'x')) {
      ++at;
    }
    if (random.below(3) == 0) {
      out += of.substr(from, at - from);
    } else if (text) {
      const std::string other = random_string(random);
      out += other.substr(1, other.size() - 2);
    } else {
      out += random.below(8) == 0 ? random_number(random) : pick(random, {"0", "5", "1234567"});
    }
  }
  return out;
}

TEST(KnownFormProperty, AFormSaysOfItsDocumentsWhatTheReadingThatTaughtItSays) {
  Mt19937 random(20261201);
  std::uint64_t known = 0;
  for (int round = 0; round < 120'000; ++round) {
    const std::string first = document(random);
    const ApiType api = random.below(2) == 0 ? ApiType::kOpenAiChat : ApiType::kOpenAiCompletions;
    KnownForm form;
    ASSERT_EQ(said(read_whole_reply(first, api, &form)),
              said(read_event(first, api, EventShape::kWhole)));
    EventFacts usual;
    if (!read_usual_event(first, api, EventShape::kWhole, usual)) {
      continue;
    }
    for (int next = 0; next < 6; ++next) {
      const std::string made = next == 0 ? first : sibling(random, first);
      const std::vector<char> bytes(made.begin(), made.end());
      const std::string_view json(bytes.data(), bytes.size());
      KnownForm copy = form;
      EventFacts facts;
      if (copy.read(json, api, facts)) {
        ++known;
        ASSERT_EQ(said(facts), said(read_event_fully(json, api, EventShape::kWhole))) << json;
      }
      ASSERT_EQ(said(read_whole_reply(json, api, &form)),
                said(read_event_fully(json, api, EventShape::kWhole)))
          << json;
    }
  }
  EXPECT_GT(known, 4'000U);
}

TEST(KnownFormProperty, OrdinaryRepliesHaveOneForm) {
  const auto reply = [](std::string_view id, std::string_view text, int tokens) {
    return R"({"id":")" + std::string(id) +
           R"(","object":"chat.completion","created":1700000000,"model":"m","choices":[)"
           R"({"index":0,"message":{"role":"assistant","content":")" +
           std::string(text) +
           R"(","tool_calls":[],"reasoning_content":null},)"
           R"("finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":)" +
           std::to_string(tokens) + R"(,"total_tokens":21,"prompt_tokens_details":null}})";
  };
  KnownForm form;
  read_whole_reply(reply("chatcmpl-1", "Hi there", 12), ApiType::kOpenAiChat, &form);
  EventFacts facts;
  const std::string next = reply("chatcmpl-25", "A longer answer, with more words", 7);
  ASSERT_TRUE(form.read(next, ApiType::kOpenAiChat, facts));
  EXPECT_EQ(facts.content, "A longer answer, with more words");
  EXPECT_EQ(facts.finish_reason, "stop");
  EXPECT_EQ(facts.prompt_tokens, 9);
  EXPECT_EQ(facts.completion_tokens, 7);
  EXPECT_TRUE(facts.has_usage && facts.has_choice && facts.valid);
  EXPECT_FALSE(form.read(reply("c", "a line\\nand another", 7), ApiType::kOpenAiChat, facts));
  EXPECT_FALSE(form.read(next, ApiType::kOpenAiCompletions, facts));
  EXPECT_FALSE(form.read(next + " ", ApiType::kOpenAiChat, facts));
}

// What servers write is answered here, not only left to the other.
TEST(UsualEventProperty, OrdinaryDocumentsAreAnswered) {
  EventFacts facts;
  const std::string whole =
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m",)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":"Hi there",)"
      R"("refusal":null,"tool_calls":[],"reasoning_content":null},"logprobs":null,)"
      R"("finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":12,)"
      R"("total_tokens":21,"prompt_tokens_details":null,)"
      R"("completion_tokens_details":{"reasoning_tokens":5}},"error":null})";
  ASSERT_TRUE(read_usual_event(whole, ApiType::kOpenAiChat, EventShape::kWhole, facts));
  EXPECT_EQ(facts.content, "Hi there");
  EXPECT_EQ(facts.finish_reason, "stop");
  EXPECT_EQ(facts.prompt_tokens, 9);
  EXPECT_EQ(facts.completion_tokens, 12);
  EXPECT_EQ(facts.reasoning_tokens, 5);
  const std::string chunk = R"({"id":"1","choices":[{"index":0,"delta":{"reasoning":"so"}}]})";
  ASSERT_TRUE(read_usual_event(chunk, ApiType::kOpenAiChat, EventShape::kChunk, facts));
  EXPECT_EQ(facts.reasoning, "so");
  const std::string plain = R"({"object":"text_completion","choices":[{"text":"a","index":0}]})";
  ASSERT_TRUE(read_usual_event(plain, ApiType::kOpenAiCompletions, EventShape::kWhole, facts));
  EXPECT_EQ(facts.content, "a");
}

TEST(UsualEventProperty, WhatIsUnusualIsLeftToTheFullReading) {
  EventFacts facts;
  for (const std::string json :
       {R"({"choices":[]})", R"({"choices":null})", R"({"error":{"message":"x"},"choices":[{}]})",
        R"({"object":"error","choices":[{}]})", R"({"choices":[{"message":{"content":"a\n"}}]})",
        R"({"choices":[{"message":{"content":"é"}}]})",
        R"({"choices":[{"message":{"content":7}}]})",
        R"({"choices":[{"message":{"tool_calls":[{}]}}]})", R"({"choices":[{}],"choices":[{}]})",
        R"({"choices":[{"message":{},"message":{}}]})", R"({"choices":[{}]} x)",
        R"({"choices":[{}],"t":1.5})", R"({"choices":[{}],"message":"m"})",
        R"({"choices":[{}],"a":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]})", R"([])", R"({)", ""}) {
    EXPECT_FALSE(read_usual_event(json, ApiType::kOpenAiChat, EventShape::kWhole, facts)) << json;
  }
}

}  // namespace
}  // namespace tutti::target
