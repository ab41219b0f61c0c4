#include "agent/target/reply.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "common/base/fetch.h"
#include "common/text/utf8.h"

namespace tutti::target {
namespace {

constexpr std::size_t kJsonReplyBytesMax = std::size_t{16} << 20;
constexpr std::size_t kVideoReplyBytesMax = std::size_t{64} << 20;
constexpr std::uint64_t kOutputBytesMax = std::uint64_t{16} << 20;  // a record must fit a frame
constexpr std::uint32_t kContentEventsMax = 4'000'000;
constexpr std::size_t kFinishTextMax = 256;
constexpr std::size_t kKeepBodyMax = std::size_t{256} << 10;
constexpr int kHttpOk = 200;
constexpr int kErrorStatusUnknown = 502;  // an error inside a 200 that gives no usable code

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size()) == 0) {
    return a.size() == b.size();
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && std::tolower(static_cast<unsigned char>(a[i])) !=
                            std::tolower(static_cast<unsigned char>(b[i]))) {
      return false;
    }
  }
  return true;
}

std::string_view trim(std::string_view s) {
  if (!s.empty() && s.front() > ' ' && s.back() > ' ') {
    return s;  // nearly always
  }
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t from = s.find_first_not_of(kBlank);
  return from == std::string_view::npos ? std::string_view()
                                        : s.substr(from, s.find_last_not_of(kBlank) - from + 1);
}

wire::FinishReason finish_reason(std::string_view word) {
  using wire::FinishReason;
  if (word.empty()) {
    return FinishReason::kNone;
  }
  if (word == "stop") {
    return FinishReason::kStop;
  }
  if (word == "length") {
    return FinishReason::kLength;
  }
  if (word == "tool_calls") {
    return FinishReason::kToolCalls;
  }
  if (word == "content_filter") {
    return FinishReason::kContentFilter;
  }
  return word == "function_call" ? FinishReason::kFunctionCall : FinishReason::kOther;
}

// A pooled reply must not keep the memory of one outsized answer.
void empty(std::string& buffer) {
  if (buffer.capacity() > kKeepBodyMax) {
    buffer = std::string();
  } else {
    buffer.clear();
  }
}

}  // namespace

Reply::Reply(base::ApiType api, const VideoFolder* videos, KnownForm* form)
    : api_(api), videos_(videos), form_(form) {}

void Reply::start(bool want_stream, bool stamp_every_chunk) {
  if (body_kind_ == Body::kEvents) {  // nothing else touches these, and they are many cache lines
    sse_.reset();
    template_.reset();
    tools_.reset();
    gaps_.clear();
  }
  empty(body_);
  message_.clear();
  for (std::string* text : {&output_.content_first, &output_.content_rest, &output_.reasoning_first,
                            &output_.reasoning_rest, &output_.tool_calls}) {
    empty(*text);
  }
  chunk_at_.clear();  // came from a record
  finish_text_.clear();
  arriving_at_ = first_token_at_ = last_token_at_ = last_byte_at_ = base::Instant{};
  text_bytes_ = 0;
  events_ = content_events_ = content_chunks_ = reasoning_chunks_ = malformed_events_ = 0;
  prompt_tokens_ = completion_tokens_ = reasoning_tokens_ = -1;
  http_status_ = error_status_ = 0;
  body_kind_ = Body::kUnknown;
  finish_ = wire::FinishReason::kNone;
  want_stream_ = want_stream;
  stamp_every_chunk_ = stamp_every_chunk;
  says_event_stream_ = says_json_ = done_ = error_seen_ = broken_ = false;
}

void Reply::fetch_lines() const {
  template_.fetch_lines();
  gaps_.fetch_lines();
  const std::string& text =
      output_.content_rest.empty() ? output_.reasoning_rest : output_.content_rest;
  base::fetch_lines(text.data() + text.size(), 1);
}

void Reply::on_header(int http_status, std::string_view content_type) {
  http_status_ = http_status;
  const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
  says_event_stream_ = same_word(type, "text/event-stream");
  says_json_ = same_word(type, "application/json");
  if (http_status != kHttpOk) {
    body_kind_ = Body::kError;
  }
}

// The body's first byte says what it is; the header only decides what that byte leaves open. No
// JSON reply begins like an SSE field, and no SSE field begins with a brace.
void Reply::choose_body(std::string_view bytes) {
  if (api_ == base::ApiType::kVideogen) {
    body_kind_ = Body::kJson;  // never a stream; a raw video is told at the end
    return;
  }
  switch (bytes.front()) {
    case '{':
    case '[':
      body_kind_ = Body::kJson;
      return;
    case ':':
    case 'd':
    case 'e':
    case 'i':
    case 'r':
      body_kind_ = Body::kEvents;
      return;
    default:
      body_kind_ = says_event_stream_ ? Body::kEvents : Body::kJson;
  }
}

void Reply::on_body(std::string_view bytes, base::Instant at) {
  last_byte_at_ = arriving_at_ = at;
  if (body_kind_ == Body::kUnknown) {
    // Blank space and a BOM mean nothing in front of either kind.
    const std::size_t from = bytes.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (from == std::string_view::npos) {
      return;
    }
    bytes.remove_prefix(from);
    choose_body(bytes);
  }
  if (broken_) {
    return;
  }
  switch (body_kind_) {
    case Body::kEvents:
      if (take_known_event(bytes)) {
        return;
      }
      if (!sse_.feed(bytes, [this](const text::SseEvent& event) { on_event(event); })) {
        broken_ = true;
        set_message("an event of the stream is larger than 16 MiB");
      }
      return;
    case Body::kJson:
      if (api_ == base::ApiType::kVideogen) {
        keep_whole(bytes, kVideoReplyBytesMax, "the reply is larger than 64 MiB");
      } else {
        keep_whole(bytes, kJsonReplyBytesMax, "the reply is larger than 16 MiB");
      }
      return;
    case Body::kError:
      keep_body(bytes, wire::kErrorTextMax);
      return;
    case Body::kUnknown:
      return;
  }
}

// Nearly every read of a stream: one event of one line, which differs from the one before in its
// text alone. A template has no line ends, and a text that it takes has none, so the one line needs
// no looking for.
bool Reply::take_known_event(std::string_view bytes) {
  constexpr std::string_view kField = "data: ";
  constexpr std::string_view kEnd = "\n\n";
  constexpr std::size_t kAround = kField.size() + kEnd.size();
  TextKind kind{};
  std::string_view text;
  if (done_ || bytes.size() <= kAround || !sse_.between_events() ||
      std::memcmp(bytes.data(), kField.data(), kField.size()) != 0 ||
      std::memcmp(bytes.data() + bytes.size() - kEnd.size(), kEnd.data(), kEnd.size()) != 0 ||
      !template_.match(bytes.substr(kField.size(), bytes.size() - kAround), kind, text)) {
    return false;
  }
  ++events_;
  take_template_text(kind, text);
  return true;
}

void Reply::take_template_text(TextKind kind, std::string_view text) {
  if (!text.empty()) {
    take_text(kind, text);
    count_token();
  }
}

void Reply::keep_body(std::string_view bytes, std::size_t bytes_max) {
  body_.append(bytes.substr(0, bytes_max - body_.size()));
}

void Reply::keep_whole(std::string_view bytes, std::size_t bytes_max, std::string_view words) {
  keep_body(bytes, bytes_max);
  if (body_.size() == bytes_max) {
    broken_ = true;
    set_message(words);
  }
}

void Reply::on_event(const text::SseEvent& event) {
  if (broken_) {
    return;
  }
  if (!event.type.empty() && same_word(event.type, "error") && !done_) {
    on_error_event(event);
    return;
  }
  const std::string_view data = trim(event.data);
  if (data.empty()) {
    return;
  }
  if (data == "[DONE]") {
    malformed_events_ += done_ ? 1U : 0U;
    done_ = true;
    return;
  }
  if (done_) {
    ++malformed_events_;  // the end marker is the end: what follows is counted and not believed
    return;
  }
  ++events_;
  TextKind kind{};
  std::string_view text;
  if (template_.match(data, kind, text)) {
    take_template_text(kind, text);
    return;
  }
  const EventFacts facts = read_event(data, api_, EventShape::kChunk);
  if (!facts.valid) {
    ++malformed_events_;
    return;
  }
  take(facts);
  template_.learn(data, facts, api_);
}

void Reply::on_error_event(const text::SseEvent& event) {
  ++events_;
  EventFacts facts = read_event(event.data, api_, EventShape::kChunk);
  if (facts.error_message.empty()) {
    facts.error_message = event.comment.empty() ? event.data : event.comment;
  }
  take_error(facts);
}

void Reply::take(const EventFacts& facts) {
  // A frame of SGLang whose count of tokens stands still is no token, whatever its text says.
  const bool stands =
      api_ == base::ApiType::kSglang && facts.completion_tokens == std::max(completion_tokens_, 0);
  take_usage(facts);
  if (facts.is_error) {
    take_error(facts);
  }
  take_finish(facts.finish_reason);
  const bool has_tools = facts.tool_calls != nullptr;
  if (api_ == base::ApiType::kSglang) {
    if (!facts.content.empty() && take_all_text(facts.content) && !stands) {
      count_token();
    }
    return;
  }
  if (!facts.content.empty()) {
    take_text(TextKind::kContent, facts.content);
  }
  if (!facts.reasoning.empty()) {
    take_text(TextKind::kReasoning, facts.reasoning);
  }
  if (has_tools && !tools_.add(*facts.tool_calls)) {
    broken_ = true;
    set_message("the reply's tool calls are too many or too large");
  }
  if (!facts.content.empty() || !facts.reasoning.empty() || has_tools) {
    count_token();  // once per event, whatever it bears
  }
}

void Reply::take_finish(std::string_view word) {
  if (word.empty()) {
    return;
  }
  finish_ = finish_reason(word);
  finish_text_.clear();
  if (finish_ == wire::FinishReason::kOther) {
    finish_text_.assign(text::clip_utf8(word, kFinishTextMax));
  }
}

void Reply::take_text(TextKind kind, std::string_view text) {
  text_bytes_ += text.size();
  if (text_bytes_ > kOutputBytesMax) {
    broken_ = true;
    set_message("the reply's text is larger than 16 MiB");
    return;
  }
  const bool is_content = kind == TextKind::kContent;
  std::uint32_t& chunks = is_content ? content_chunks_ : reasoning_chunks_;
  std::string& first = is_content ? output_.content_first : output_.reasoning_first;
  std::string& rest = is_content ? output_.content_rest : output_.reasoning_rest;
  (chunks == 0 ? first : rest).append(text);
  ++chunks;
}

// All text so far, of which only the end is new. A server that decodes too early may take back what
// it said (half a character): the last word counts. False: it did not grow.
bool Reply::take_all_text(std::string_view text) {
  std::string& first = output_.content_first;
  std::string& rest = output_.content_rest;
  const std::size_t kept = first.size() + rest.size();
  if (text.substr(0, first.size()) == first &&
      text.substr(std::min(first.size(), text.size()), rest.size()) == rest) {
    if (text.size() > kept) {
      take_text(TextKind::kContent, text.substr(kept));
    }
    return text.size() > kept;
  }
  const std::string_view head = text::clip_utf8(text, first.size());
  first.assign(head);
  rest.assign(text.substr(head.size()));
  text_bytes_ = text.size();
  content_chunks_ += text.size() > kept ? 1U : 0U;
  content_chunks_ = std::max(content_chunks_, rest.empty() ? 1U : 2U);
  return text.size() > kept;
}

void Reply::count_token() {
  if (content_events_ == kContentEventsMax) {
    broken_ = true;
    set_message("the stream has more than 4,000,000 content events");
    return;
  }
  const base::Duration gap = arriving_at_ - last_token_at_;
  last_token_at_ = arriving_at_;
  if (++content_events_ == 1) {
    first_token_at_ = arriving_at_;
  } else if (stamp_every_chunk_) {
    keep_stamp();
  } else {
    gaps_.add(gap);
  }
}

// Out of line, as a chunk shall not pay for its registers when no stamp is kept.
[[gnu::noinline]] void Reply::keep_stamp() { chunk_at_.push_back(arriving_at_); }

// Usage may come with every chunk; the last word counts, member by member.
void Reply::take_usage(const EventFacts& facts) {
  const auto keep = [](std::int32_t& to, std::int32_t from) { to = from >= 0 ? from : to; };
  keep(prompt_tokens_, facts.prompt_tokens);
  keep(completion_tokens_, facts.completion_tokens);
  keep(reasoning_tokens_, facts.reasoning_tokens);
}

void Reply::take_error(const EventFacts& facts) {
  if (error_seen_) {
    return;  // the first error is the cause
  }
  error_seen_ = true;
  error_status_ = facts.error_code != 0 ? facts.error_code : kErrorStatusUnknown;
  set_message("error in a 200 reply", facts.error_message);
}

void Reply::set_message(std::string_view what, std::string_view detail) {
  message_.assign(what);
  if (!detail.empty()) {
    message_.append(": ");
    // Clipped before repair too: a replaced byte grows threefold, nothing grows unbounded.
    text::append_utf8(message_, detail.substr(0, wire::kErrorTextMax));
  }
  message_.resize(text::clip_utf8(message_, wire::kErrorTextMax).size());
}

}  // namespace tutti::target
