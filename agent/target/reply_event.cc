#include "agent/target/reply_event.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "agent/target/plain_text.h"
#include "common/text/utf8.h"

namespace tutti::target {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;
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

// Where the text of the first `"key": "` begins, or npos.
std::size_t text_after(std::string_view json, std::string_view key) {
  constexpr std::string_view kBlank = " \t\r\n";
  std::size_t at = json.find(key);
  if (at == std::string_view::npos) {
    return at;
  }
  at = json.find_first_not_of(kBlank, at + key.size());
  if (at == std::string_view::npos || json[at] != ':') {
    return std::string_view::npos;
  }
  at = json.find_first_not_of(kBlank, at + 1);
  return at == std::string_view::npos || json[at] != '"' ? std::string_view::npos : at + 1;
}

std::size_t closing_quote(std::string_view json, std::size_t from) {
  for (std::size_t i = from; i < json.size(); ++i) {
    if (json[i] == '"') {
      return i;
    }
    i += json[i] == '\\' ? 1U : 0U;
  }
  return std::string_view::npos;
}

// Reads 4 hex digits at `at`; −1 when they are not there.
std::int32_t hex4(std::string_view raw, std::size_t at) {
  if (at + 4 > raw.size()) {
    return -1;
  }
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(raw.data() + at, raw.data() + at + 4, value, 16);
  return problem == std::errc() && end == raw.data() + at + 4 ? static_cast<std::int32_t>(value)
                                                              : -1;
}

void append_code_point(std::string& out, std::uint32_t c) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

// `\uXXXX` (at points at the X's), with its second half if it is a pair. 0: not decodable here.
std::size_t append_unicode_escape(std::string_view raw, std::size_t at, std::string& out) {
  const std::int32_t unit = hex4(raw, at);
  if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) {
    return 0;
  }
  if (unit < 0xD800 || unit > 0xDFFF) {
    append_code_point(out, static_cast<std::uint32_t>(unit));
    return 4;
  }
  const std::int32_t low = raw.substr(at + 4, 2) == "\\u" ? hex4(raw, at + 6) : -1;
  if (low < 0xDC00 || low > 0xDFFF) {
    return 0;
  }
  append_code_point(out, 0x10000U + ((static_cast<std::uint32_t>(unit) & 0x3FFU) << 10) +
                             (static_cast<std::uint32_t>(low) & 0x3FFU));
  return 10;
}

// The character a one-letter escape stands for, or 0.
char plain_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

}  // namespace

EventFacts read_event_fully(std::string_view json, base::ApiType api, EventShape shape) {
  EventFacts facts;
  object root;
  if (parse(json, root) != simdjson::SUCCESS) {
    return facts;
  }
  bool good = true;
  bool is_error_object = false;
  std::string_view own_message;
  std::int32_t own_code = 0;
  for (const auto& field : root) {
    if (field.key == "choices") {
      good = read_choices(field.value, api, shape, facts) && good;
    } else if (field.key == "usage") {
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
  if (!good && !facts.is_error) {
    return {};
  }
  facts.valid = true;
  return facts;
}

bool EventTemplate::match(std::string_view json, TextKind& kind, std::string_view& text) {
  const std::size_t around = prefix_.size() + suffix_.size();
  if (prefix_.empty() || json.size() < around ||
      std::memcmp(json.data(), prefix_.data(), prefix_.size()) != 0 ||
      std::memcmp(json.data() + json.size() - suffix_.size(), suffix_.data(), suffix_.size()) !=
          0 ||
      !decode(json.substr(prefix_.size(), json.size() - around), text)) {
    return false;
  }
  kind = kind_;
  misses_ = 0;
  return true;
}

// False: not the inside of one valid JSON string, or not simple enough to say.
bool EventTemplate::decode(std::string_view raw, std::string_view& text) {
  if (is_plain(raw)) {
    text = raw;
    return true;
  }
  bool escaped = false;
  bool ascii = true;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const auto c = static_cast<unsigned char>(raw[i]);
    if (c == '"' || c < 0x20) {
      return false;
    }
    ascii = ascii && c < 0x80;
    if (c == '\\') {
      escaped = true;
      ++i;  // what is escaped is judged below
    }
  }
  if (!ascii && !text::is_utf8(raw)) {
    return false;
  }
  if (!escaped) {
    text = raw;
    return true;
  }
  decoded_.clear();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      decoded_.push_back(raw[i]);
      continue;
    }
    if (++i == raw.size()) {
      return false;
    }
    if (raw[i] == 'u') {
      const std::size_t taken = append_unicode_escape(raw, i + 1, decoded_);
      if (taken == 0) {
        return false;
      }
      i += taken;
    } else if (const char c = plain_escape(raw[i]); c != 0) {
      decoded_.push_back(c);
    } else {
      return false;
    }
  }
  text = decoded_;
  return true;
}

// Why this is exact: where there is no backslash every quote of a valid document opens or closes a
// string. So a key that occurs once as `"key"` outside the text is the member the full reading
// found, and any other valid string in its place gives the same document but for that text.
void EventTemplate::learn(std::string_view json, const EventFacts& facts, base::ApiType api) {
  constexpr std::uint8_t kMissesMax = 8;
  constexpr std::size_t kBytesMax = 4096;
  const bool one_text = facts.content.empty() != facts.reasoning.empty();
  if (!facts.valid || !one_text || facts.is_error || facts.has_usage || facts.two_reasonings ||
      facts.tool_calls != nullptr || !facts.finish_reason.empty() || misses_ >= kMissesMax ||
      json.size() > kBytesMax) {
    return;
  }
  const bool is_content = facts.reasoning.empty();
  std::string_view key = is_content ? "\"content\"" : "\"reasoning_content\"";
  if (api == base::ApiType::kOpenAiCompletions) {
    key = "\"text\"";
  } else if (!is_content && json.find(key) == std::string_view::npos) {
    key = "\"reasoning\"";
  }
  const std::size_t from = text_after(json, key);
  const std::size_t to = from == std::string_view::npos ? from : closing_quote(json, from);
  if (to == std::string_view::npos) {
    return;
  }
  const std::string_view before = json.substr(0, from);
  const std::string_view after = json.substr(to);
  std::string_view text;
  if (before.find('\\') != std::string_view::npos || after.find('\\') != std::string_view::npos ||
      after.find(key) != std::string_view::npos || !decode(json.substr(from, to - from), text) ||
      text != (is_content ? facts.content : facts.reasoning)) {
    return;
  }
  prefix_.assign(before);
  suffix_.assign(after);
  kind_ = is_content ? TextKind::kContent : TextKind::kReasoning;
  ++misses_;
}

void EventTemplate::reset() {
  prefix_.clear();
  suffix_.clear();
  misses_ = 0;
}

}  // namespace tutti::target
