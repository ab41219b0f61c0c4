#include "agent/target/reply_event.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "common/text/utf8.h"

namespace tutti::target {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

// What views of the facts point into, beside the parser's own buffers.
struct Scratch {
  simdjson::dom::parser parser;
  std::string repaired;
  std::string tool_calls_json;
  std::vector<ToolDelta> tool_calls;
};

Scratch& scratch() {
  thread_local Scratch made;
  return made;
}

// A string or null; false for anything else.
bool read_text(const element& from, std::string_view& to) {
  to = {};
  return from.is_null() || from.get(to) == simdjson::SUCCESS;
}

std::int32_t read_count(const element& from) {
  std::int64_t n = -1;
  if (from.get(n) != simdjson::SUCCESS || n < 0) {
    return -1;
  }
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(n, std::numeric_limits<std::int32_t>::max()));
}

// 400…599 as a number or as digits in a string; else 0.
std::int32_t read_code(const element& from) {
  std::int64_t code = 0;
  std::string_view digits;
  if (from.get(digits) == simdjson::SUCCESS) {
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), code);
    if (problem != std::errc() || end != digits.data() + digits.size()) {
      return 0;
    }
  } else if (from.get(code) != simdjson::SUCCESS) {
    return 0;
  }
  return code >= 400 && code <= 599 ? static_cast<std::int32_t>(code) : 0;
}

void read_usage(const object& from, EventFacts& facts) {
  facts.has_usage = true;
  for (const auto& field : from) {
    if (field.key == "prompt_tokens") {
      facts.prompt_tokens = read_count(field.value);
    } else if (field.key == "completion_tokens") {
      facts.completion_tokens = read_count(field.value);
    } else if (field.key == "completion_tokens_details") {
      element n;
      if (field.value["reasoning_tokens"].get(n) == simdjson::SUCCESS) {
        facts.reasoning_tokens = read_count(n);
      }
    }
  }
}

// The `error` member: null, false and "" are servers saying "no error".
void read_error(const element& from, EventFacts& facts) {
  std::string_view words;
  bool truth = true;
  if (from.is_null() || (from.get(truth) == simdjson::SUCCESS && !truth)) {
    return;
  }
  if (from.get(words) == simdjson::SUCCESS) {
    facts.is_error = !words.empty();
    facts.error_message = words;
    return;
  }
  facts.is_error = true;
  object parts;
  if (from.get(parts) != simdjson::SUCCESS) {
    return;
  }
  for (const auto& field : parts) {
    if (field.key == "message") {
      static_cast<void>(read_text(field.value, facts.error_message));
    } else if (field.key == "code" || field.key == "status" || field.key == "status_code") {
      const std::int32_t code = read_code(field.value);
      facts.error_code = code != 0 ? code : facts.error_code;
    }
  }
}

bool read_function(const element& from, ToolDelta& call) {
  if (from.is_null()) {
    return true;
  }
  object parts;
  if (from.get(parts) != simdjson::SUCCESS) {
    return false;
  }
  bool good = true;
  for (const auto& field : parts) {
    if (field.key == "name") {
      good = read_text(field.value, call.name) && good;
    } else if (field.key == "arguments") {
      good = read_text(field.value, call.arguments) && good;
    }
  }
  return good;
}

bool read_tool_delta(const element& from, ToolDelta& call) {
  object parts;
  if (from.get(parts) != simdjson::SUCCESS) {
    return false;
  }
  bool good = true;
  for (const auto& field : parts) {
    if (field.key == "index") {
      good = (field.value.is_null() || field.value.get(call.index) == simdjson::SUCCESS) && good;
    } else if (field.key == "id") {
      good = read_text(field.value, call.id) && good;
    } else if (field.key == "type") {
      good = read_text(field.value, call.type) && good;
    } else if (field.key == "function") {
      good = read_function(field.value, call) && good;
    }
  }
  return good;
}

bool read_tool_calls(const element& from, EventShape shape, EventFacts& facts) {
  simdjson::dom::array calls;
  if (from.is_null()) {
    return true;
  }
  if (from.get(calls) != simdjson::SUCCESS) {
    return false;
  }
  if (calls.begin() == calls.end()) {
    return true;
  }
  Scratch& own = scratch();
  if (shape == EventShape::kWhole) {
    own.tool_calls_json = simdjson::minify(from);
    facts.tool_calls_json = own.tool_calls_json;
    return true;
  }
  own.tool_calls.clear();
  for (const element call : calls) {
    own.tool_calls.emplace_back();
    if (!read_tool_delta(call, own.tool_calls.back())) {
      return false;
    }
  }
  facts.tool_calls = &own.tool_calls;
  return true;
}

bool read_message(const element& from, EventShape shape, EventFacts& facts) {
  object parts;
  if (from.is_null()) {
    return true;
  }
  if (from.get(parts) != simdjson::SUCCESS) {
    return false;
  }
  bool good = true;
  std::string_view reasoning_content;
  std::string_view reasoning;
  for (const auto& field : parts) {
    if (field.key == "content") {
      good = read_text(field.value, facts.content) && good;
    } else if (field.key == "reasoning_content") {
      good = read_text(field.value, reasoning_content) && good;
    } else if (field.key == "reasoning") {
      good = read_text(field.value, reasoning) && good;
    } else if (field.key == "tool_calls") {
      good = read_tool_calls(field.value, shape, facts) && good;
    }
  }
  facts.reasoning = reasoning_content.empty() ? reasoning : reasoning_content;
  facts.two_reasonings = !reasoning_content.empty() && !reasoning.empty();
  return good;
}

bool read_choices(const element& from, base::ApiType api, EventShape shape, EventFacts& facts) {
  simdjson::dom::array choices;
  if (from.is_null()) {
    return true;
  }
  if (from.get(choices) != simdjson::SUCCESS) {
    return false;
  }
  const auto first = choices.begin();
  if (first == choices.end()) {
    return true;
  }
  object choice;
  if ((*first).get(choice) != simdjson::SUCCESS) {
    return false;
  }
  facts.has_choice = true;
  const std::string_view message = shape == EventShape::kChunk ? "delta" : "message";
  const bool chat = api == base::ApiType::kOpenAiChat;
  bool good = true;
  for (const auto& field : choice) {
    if (chat && field.key == message) {
      good = read_message(field.value, shape, facts) && good;
    } else if (!chat && field.key == "text") {
      good = read_text(field.value, facts.content) && good;
    } else if (field.key == "finish_reason") {
      good = read_text(field.value, facts.finish_reason) && good;
    }
  }
  return good;
}

// SGLang's finish_reason: null while the answer grows, then {"type": …}; older servers say a word.
// "abort" is how it says inside a 200 that the request failed.
bool read_finish(const element& from, EventFacts& facts) {
  object parts;
  if (from.get(parts) != simdjson::SUCCESS) {
    return read_text(from, facts.finish_reason);
  }
  std::string_view words;
  std::int32_t code = 0;
  bool good = true;
  for (const auto& field : parts) {
    if (field.key == "type") {
      good = read_text(field.value, facts.finish_reason) && good;
    } else if (field.key == "message") {
      static_cast<void>(read_text(field.value, words));
    } else if (field.key == "status_code") {
      code = read_code(field.value);
    }
  }
  if (facts.finish_reason == "abort") {
    facts.is_error = true;
    facts.error_message = words;
    facts.error_code = code;
  }
  return good;
}

bool read_meta(const element& from, EventFacts& facts) {
  object parts;
  if (from.get(parts) != simdjson::SUCCESS) {
    return from.is_null();
  }
  bool good = true;
  read_usage(parts, facts);
  for (const auto& field : parts) {
    if (field.key == "finish_reason") {
      good = read_finish(field.value, facts) && good;
    }
  }
  return good;
}

// Members of the two APIs without `choices`. Their text must be there: without it the document is
// of some other API.
bool read_own_member(std::string_view key, const element& value, base::ApiType api,
                     EventFacts& facts) {
  std::string_view unused;
  if (api == base::ApiType::kSglang) {
    if (key == "text") {
      facts.has_choice = value.get(facts.content) == simdjson::SUCCESS;
      return facts.has_choice;
    }
    return key != "meta_info" || read_meta(value, facts);
  }
  if (key == "video_path") {
    facts.has_choice = value.get(facts.content) == simdjson::SUCCESS;
    return facts.has_choice;
  }
  if (key == "video_bytes") {
    const bool there = value.get(unused) == simdjson::SUCCESS;
    facts.has_choice = facts.has_choice || there;
    return there || value.is_null();
  }
  return key != "video_id" || read_text(value, unused);
}

simdjson::error_code parse(std::string_view json, object& root) {
  constexpr std::size_t kKeepMax = std::size_t{4} << 20;
  if (json.empty()) {
    return simdjson::EMPTY;  // the parser may not be given a null pointer
  }
  Scratch& own = scratch();
  if (own.parser.capacity() > kKeepMax && json.size() < kKeepMax) {
    own.parser = simdjson::dom::parser();  // a giant document does not keep its memory
  }
  auto code = own.parser.parse(json.data(), json.size(), true).get(root);
  if (code == simdjson::UTF8_ERROR) {
    own.repaired.clear();
    text::append_utf8(own.repaired, json);
    code = own.parser.parse(own.repaired.data(), own.repaired.size(), true).get(root);
  }
  return code;
}

}  // namespace

EventFacts read_event_fully(std::string_view json, base::ApiType api, EventShape shape) {
  EventFacts facts;
  object root;
  if (parse(json, root) != simdjson::SUCCESS) {
    return facts;
  }
  const bool own = api == base::ApiType::kSglang || api == base::ApiType::kVideogen;
  bool good = true;
  bool is_error_object = false;
  std::string_view own_message;
  std::int32_t own_code = 0;
  for (const auto& field : root) {
    if (own) {
      good = read_own_member(field.key, field.value, api, facts) && good;
    }
    if (field.key == "choices" && !own) {
      good = read_choices(field.value, api, shape, facts) && good;
    } else if (field.key == "usage" && !own) {
      object usage;
      if (field.value.get(usage) == simdjson::SUCCESS) {
        read_usage(usage, facts);
      }
    } else if (field.key == "error") {
      read_error(field.value, facts);
    } else if (field.key == "object") {
      std::string_view kind;
      is_error_object = field.value.get(kind) == simdjson::SUCCESS && kind == "error";
    } else if (field.key == "message") {
      static_cast<void>(read_text(field.value, own_message));
    } else if (field.key == "code") {
      own_code = read_code(field.value);
    }
  }
  facts.is_error = facts.is_error || is_error_object;
  if (facts.error_message.empty()) {
    facts.error_message = own_message;
  }
  if (facts.error_code == 0) {
    facts.error_code = own_code;
  }
  good = good && (!own || facts.has_choice);
  if (!good && !facts.is_error) {
    return {};
  }
  facts.valid = true;
  return facts;
}

}  // namespace tutti::target
