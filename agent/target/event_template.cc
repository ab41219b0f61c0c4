// EventTemplate: a chunk that has the bytes of the one before around its text is not parsed again.

#include <charconv>
#include <cstring>

#include "agent/target/plain_text.h"
#include "agent/target/reply_event.h"
#include "common/base/fetch.h"
#include "common/text/utf8.h"

namespace tutti::target {
namespace {

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
  // SGLang's text is all text so far: what was learnt would never fit again.
  if (api == base::ApiType::kSglang || !facts.valid || !one_text || facts.is_error ||
      facts.has_usage || facts.two_reasonings || facts.tool_calls != nullptr ||
      !facts.finish_reason.empty() || misses_ >= kMissesMax || json.size() > kBytesMax ||
      json.find_first_of("\r\n") != std::string_view::npos) {  // Reply counts on there being none
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

void EventTemplate::fetch_lines() const {
  base::fetch_lines(prefix_.data(), prefix_.size());
  base::fetch_lines(suffix_.data(), suffix_.size());
}

void EventTemplate::reset() {
  prefix_.clear();
  suffix_.clear();
  misses_ = 0;
}

}  // namespace tutti::target
