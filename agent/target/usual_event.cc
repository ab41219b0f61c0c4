#include "agent/target/usual_event.h"

#include <cstdint>
#include <cstring>

#include "agent/target/known_form.h"
#include "agent/target/plain_text.h"

namespace tutti::target {
namespace {

constexpr int kDepthMax = 16;  // of values nobody asked for

// Compared without a call, as the length is known to the compiler.
template <std::size_t N>
bool is(std::string_view key, const char (&name)[N]) {
  return key.size() == N - 1 && std::memcmp(key.data(), name, N - 1) == 0;
}

// A cursor over JSON text. Every step skips blank space before it; false: it is not there.
class Cursor {
 public:
  explicit Cursor(std::string_view json, ValueTrace* trace)
      : at_(json.data()), end_(json.data() + json.size()), trace_(trace) {}

  ValueTrace* trace() const { return trace_; }

  // The next character that is not blank, 0 at the end.
  char peek() {
    if (at_ == end_ || *at_ <= ' ') [[unlikely]] {
      skip_blank();
    }
    return at_ < end_ ? *at_ : '\0';
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) {
      skip_blank();
      if (at_ == end_ || *at_ != c) {
        return false;
      }
    }
    ++at_;
    return true;
  }
  bool at_end() { return peek() == '\0' && at_ == end_; }

  bool word(std::string_view text) {
    peek();
    const bool there = static_cast<std::size_t>(end_ - at_) >= text.size() &&
                       std::memcmp(at_, text.data(), text.size()) == 0;
    at_ += there ? text.size() : 0;
    return there;
  }

  // One that stands for itself, without its quotes: a name, or one that decides what is read.
  bool name(std::string_view& text) {
    if (!take('"')) {
      return false;
    }
    const char* const to = plain_end(at_, end_);
    text = {at_, static_cast<std::size_t>(to - at_)};
    if (to == end_ || *to != '"') {
      return false;
    }
    at_ = to + 1;
    return true;
  }

  // The same as a value.
  bool string(std::string_view& text) {
    if (!name(text)) {
      return false;
    }
    if (trace_ != nullptr) [[unlikely]] {
      trace_->note(text, true);
    }
    return true;
  }

  // A whole number from 0 with at most 18 digits.
  bool count(std::uint64_t& value) {
    peek();
    const char* const from = at_;
    const bool good = take_plain_count(at_, end_, value);
    if (trace_ != nullptr) [[unlikely]] {
      trace_->note({from, static_cast<std::size_t>(at_ - from)}, false);
    }
    return good;
  }

  // The members of an object. `value(key)` takes what follows the colon.
  template <class Value>
  bool members(Value&& value) {
    if (!take('{')) {
      return false;
    }
    if (peek() == '}') {
      return take('}');
    }
    std::string_view key;
    do {
      if (!name(key) || !take(':') || !value(key)) {
        return false;
      }
    } while (peek() == ',' && take(','));
    return take('}');
  }

  // Any value, looked at only for being one.
  bool skip(int depth = kDepthMax) {
    std::string_view text;
    std::uint64_t number = 0;
    switch (peek()) {
      case '"':
        return string(text);
      case 'n':
        return word("null");
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case '{':
        return depth > 0 && members([this, depth](std::string_view) { return skip(depth - 1); });
      case '[':
        return depth > 0 && skip_array(depth);
      default:
        return count(number);
    }
  }

  // The rest of an array whose first value was taken.
  bool skip_rest(int depth = kDepthMax) {
    while (peek() == ',' && take(',')) {
      if (!skip(depth - 1)) {
        return false;
      }
    }
    return take(']');
  }

 private:
  [[gnu::noinline]] void skip_blank() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
      ++at_;
    }
  }
  bool skip_array(int depth) {
    ++at_;
    return take(']') || (skip(depth - 1) && skip_rest(depth));
  }

  const char* at_;
  const char* end_;
  ValueTrace* trace_;  // null: nobody learns
};

bool take_text(Cursor& json, std::string_view& text) {
  text = {};
  return json.peek() == '"' ? json.string(text) : json.word("null");
}

bool take_count(Cursor& json, EventFacts& facts, std::int32_t EventFacts::*to) {
  std::uint64_t value = 0;
  facts.*to = -1;
  if (json.peek() == 'n') {
    if (json.trace() != nullptr) [[unlikely]] {
      json.trace()->none_goes_to(to);
    }
    return json.word("null");
  }
  if (!json.count(value)) {
    return false;
  }
  if (json.trace() != nullptr) [[unlikely]] {
    json.trace()->last_goes_to(to);
  }
  facts.*to = clamped_count(value);
  return true;
}

bool take_usage(Cursor& json, EventFacts& facts) {
  if (json.peek() == 'n') {
    return json.word("null");
  }
  facts.has_usage = true;
  return json.members([&json, &facts](std::string_view key) {
    if (is(key, "prompt_tokens")) {
      return take_count(json, facts, &EventFacts::prompt_tokens);
    }
    if (is(key, "completion_tokens")) {
      return take_count(json, facts, &EventFacts::completion_tokens);
    }
    if (!is(key, "completion_tokens_details") || json.peek() != '{') {
      return json.skip();
    }
    bool found = false;  // the first of its name counts
    return json.members([&json, &facts, &found](std::string_view detail) {
      const bool wanted = !found && is(detail, "reasoning_tokens");
      found = found || wanted;
      return wanted ? take_count(json, facts, &EventFacts::reasoning_tokens) : json.skip();
    });
  });
}

bool take_message(Cursor& json, EventFacts& facts) {
  if (json.peek() == 'n') {
    return json.word("null");
  }
  std::string_view reasoning_content;
  std::string_view reasoning;
  const bool good = json.members([&](std::string_view key) {
    if (is(key, "content")) {
      return take_text(json, facts.content);
    }
    if (is(key, "reasoning_content")) {
      return take_text(json, reasoning_content);
    }
    if (is(key, "reasoning")) {
      return take_text(json, reasoning);
    }
    if (is(key, "tool_calls")) {
      return json.peek() == '[' ? json.take('[') && json.take(']') : json.word("null");
    }
    return json.skip();
  });
  facts.reasoning = reasoning_content.empty() ? reasoning : reasoning_content;
  facts.two_reasonings = !reasoning_content.empty() && !reasoning.empty();
  if (json.trace() != nullptr && reasoning_content.data() != nullptr &&
      reasoning.data() != nullptr) {
    json.trace()->refuse();  // which of the two counts, their values say
  }
  return good;
}

// One or more, of which the first speaks.
bool take_choices(Cursor& json, base::ApiType api, EventShape shape, EventFacts& facts) {
  const bool chat = api == base::ApiType::kOpenAiChat;
  bool message_seen = false;
  facts.has_choice = true;
  return json.take('[') && json.members([&](std::string_view key) {
    const bool is_message = shape == EventShape::kChunk ? is(key, "delta") : is(key, "message");
    if (chat && is_message) {
      const bool first = !message_seen;
      message_seen = true;
      return first && take_message(json, facts);
    }
    if (!chat && is(key, "text")) {
      return take_text(json, facts.content);
    }
    return is(key, "finish_reason") ? take_text(json, facts.finish_reason) : json.skip();
  }) && json.skip_rest();
}

}  // namespace

bool read_usual_event(std::string_view json, base::ApiType api, EventShape shape, EventFacts& facts,
                      ValueTrace* trace) {
  facts = {};
  if (api != base::ApiType::kOpenAiChat && api != base::ApiType::kOpenAiCompletions) {
    return false;  // other documents, left whole to the full reading
  }
  Cursor cursor(json, trace);
  const bool good = cursor.members([&](std::string_view key) {
    if (is(key, "choices")) {
      return !facts.has_choice && take_choices(cursor, api, shape, facts);
    }
    if (is(key, "usage")) {
      return take_usage(cursor, facts);
    }
    if (is(key, "object")) {
      std::string_view kind;
      return cursor.name(kind) && kind != "error";
    }
    if (is(key, "error")) {
      return cursor.word("null");
    }
    return !is(key, "message") && !is(key, "code") && cursor.skip();
  });
  facts.valid = good && facts.has_choice && cursor.at_end();
  return facts.valid;
}

EventFacts read_event(std::string_view json, base::ApiType api, EventShape shape) {
  EventFacts facts;
  return read_usual_event(json, api, shape, facts) ? facts : read_event_fully(json, api, shape);
}

EventFacts read_whole_reply(std::string_view json, base::ApiType api, KnownForm* form) {
  EventFacts facts;
  if (form == nullptr) {
    return read_event(json, api, EventShape::kWhole);
  }
  if (form->read(json, api, facts)) {
    return facts;
  }
  if (!form->learns()) {
    return read_event(json, api, EventShape::kWhole);
  }
  ValueTrace trace;
  if (!read_usual_event(json, api, EventShape::kWhole, facts, &trace)) {
    return read_event_fully(json, api, EventShape::kWhole);
  }
  form->learn(json, api, trace, facts);
  return facts;
}

}  // namespace tutti::target
