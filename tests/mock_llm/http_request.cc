#include "tests/mock_llm/http_request.h"

#include <algorithm>
#include <charconv>

namespace tutti::mock_llm {
namespace {

constexpr std::uint32_t kChunkLineMax = 4096;
constexpr std::uint32_t kSkippedMax = 64 << 10;
constexpr std::uint32_t kSizeDigitsMax = 15;  // keeps a size below 2^60

bool is_token_byte(char c) {
  // RFC 9110 5.6.2 tchar.
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == y; });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

// The next line without its LF or CRLF; `text` moves past it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  return line;
}

// True when the comma-separated list holds `word` (given in lower case).
bool list_has(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (equals_ignoring_case(trim(list.substr(0, comma)), word)) {
      return true;
    }
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

Route route_of(std::string_view path) {
  if (path == "/v1/chat/completions") {
    return Route::kChat;
  }
  if (path == "/v1/completions") {
    return Route::kCompletions;
  }
  if (path == "/generate") {
    return Route::kGenerate;
  }
  if (path == "/v1/videos/generations") {
    return Route::kVideos;
  }
  if (path == "/v1/models") {
    return Route::kModels;
  }
  if (path == "/health") {
    return Route::kHealth;
  }
  return path == "/metrics" ? Route::kMetrics : Route::kUnknown;
}

Refusal parse_request_line(std::string_view line, RequestHead& head) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) {
    return {400, "the request line is not METHOD TARGET VERSION"};
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (method.empty() || !std::all_of(method.begin(), method.end(), is_token_byte)) {
    return {400, "the method is not a token"};
  }
  const auto visible = [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7F; };
  if (target.empty() || !std::all_of(target.begin(), target.end(), visible)) {
    return {400, "the request target is empty or holds blanks"};
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool http = version.substr(0, 5) == "HTTP/";
    return http ? Refusal{505, "only HTTP/1.0 and HTTP/1.1 are spoken here"}
                : Refusal{400, "the request line does not end in an HTTP version"};
  }
  head.http11 = version == "HTTP/1.1";
  head.keep_alive = head.http11;
  head.method = method == "POST" ? Method::kPost : method == "GET" ? Method::kGet : Method::kOther;
  std::string_view path = target;
  if (path.substr(0, 7) == "http://") {  // absolute form, as a proxy would be sent
    const std::size_t slash = path.find('/', 7);
    path = slash == std::string_view::npos ? "/" : path.substr(slash);
  }
  head.route = route_of(path.substr(0, path.find('?')));
  return {};
}

Refusal set_length(std::string_view value, RequestHead& head) {
  std::uint64_t length = 0;
  const char* end = value.data() + value.size();
  const auto [stop, code] = std::from_chars(value.data(), end, length);
  if (code != std::errc{} || stop != end) {
    return {400, "Content-Length is not a number"};
  }
  if (head.has_length && head.content_length != length) {
    return {400, "two different Content-Length headers"};
  }
  head.has_length = true;
  head.content_length = length;
  return {};
}

Refusal take_header(std::string_view line, RequestHead& head, bool& has_host) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || name.empty() ||
      !std::all_of(name.begin(), name.end(), is_token_byte)) {
    return {400, "a header line is not NAME: VALUE"};
  }
  const std::string_view value = trim(line.substr(colon + 1));
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
  };
  if (std::any_of(value.begin(), value.end(), is_control)) {
    return {400, "a header value holds control characters"};
  }
  if (equals_ignoring_case(name, "content-length")) {
    return set_length(value, head);
  }
  if (equals_ignoring_case(name, "transfer-encoding")) {
    if (head.chunked || !equals_ignoring_case(value, "chunked")) {
      return {501, "the only Transfer-Encoding understood is chunked"};
    }
    head.chunked = true;
  } else if (equals_ignoring_case(name, "connection")) {
    if (list_has(value, "close")) {
      head.keep_alive = false;
    } else if (list_has(value, "keep-alive")) {
      head.keep_alive = true;
    }
  } else if (equals_ignoring_case(name, "expect")) {
    if (!equals_ignoring_case(value, "100-continue")) {
      return {417, "the only Expect understood is 100-continue"};
    }
    head.expects_continue = head.http11;
  } else if (equals_ignoring_case(name, "x-tutti-fault")) {
    head.fault = std::string(value);
  } else if (equals_ignoring_case(name, "host")) {
    if (has_host) {
      return {400, "two Host headers"};
    }
    has_host = true;
  }
  return {};
}

}  // namespace

std::size_t find_head_end(std::string_view text, std::size_t from) {
  // A head ends with an empty line; lines end in CRLF or a bare LF.
  for (std::size_t at = from; (at = text.find('\n', at)) != std::string_view::npos; ++at) {
    if (at + 1 < text.size() && text[at + 1] == '\n') {
      return at + 2;
    }
    if (at + 2 < text.size() && text[at + 1] == '\r' && text[at + 2] == '\n') {
      return at + 3;
    }
  }
  return std::string_view::npos;
}

Refusal parse_head(std::string_view text, RequestHead& head) {
  head = RequestHead{};
  if (const Refusal bad = parse_request_line(take_line(text), head); bad.status != 0) {
    return bad;
  }
  bool has_host = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) {
      break;
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return {400, "a header line is folded"};
    }
    if (const Refusal bad = take_header(line, head, has_host); bad.status != 0) {
      return bad;
    }
  }
  if (head.chunked && head.has_length) {
    return {400, "both Content-Length and Transfer-Encoding"};
  }
  if (head.chunked && !head.http11) {
    return {400, "Transfer-Encoding in an HTTP/1.0 request"};
  }
  if (head.http11 && !has_host) {
    return {400, "an HTTP/1.1 request needs a Host header"};
  }
  return {};
}

void ChunkedBody::refuse(int status, std::string_view reason) {
  state_ = State::kBad;
  refusal_ = {status, reason};
}

void ChunkedBody::end_size_line() {
  if (size_digits_ == 0) {
    refuse(400, "a chunk without a size");
    return;
  }
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  size_digits_ = 0;
  line_bytes_ = 0;
}

void ChunkedBody::on_size_byte(char c, std::size_t body_bytes, std::size_t body_bytes_max) {
  const char small = lower(c);
  if ((small >= '0' && small <= '9') || (small >= 'a' && small <= 'f')) {
    const int digit = small <= '9' ? small - '0' : small - 'a' + 10;
    left_ = (size_digits_ == 0 ? 0 : left_ * 16) + static_cast<std::uint64_t>(digit);
    if (++size_digits_ > kSizeDigitsMax) {
      refuse(400, "a chunk size with too many digits");
    } else if (left_ > body_bytes_max - std::min(body_bytes, body_bytes_max)) {
      refuse(413, "the body is larger than this server takes");
    }
  } else if (c == ';' || c == ' ' || c == '\t') {
    state_ = State::kExtension;
  } else if (c == '\n') {
    end_size_line();
  } else if (c != '\r') {
    refuse(400, "a chunk size is not hexadecimal");
  }
}

// Extension and trailer lines are skipped, but not without end.
void ChunkedBody::on_line_byte(char c) {
  if (c != '\n') {
    line_bytes_ += c != '\r' ? 1 : 0;
    if (++skipped_bytes_ > kSkippedMax || line_bytes_ > kChunkLineMax) {
      refuse(400, "a chunk extension or trailer is too long");
    }
    return;
  }
  if (state_ == State::kExtension) {
    end_size_line();
  } else {
    state_ = line_bytes_ == 0 ? State::kDone : State::kTrailer;
    line_bytes_ = 0;
  }
}

std::size_t ChunkedBody::feed(std::string_view bytes, std::size_t body_bytes_max,
                              std::string& body) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::kDone && state_ != State::kBad) {
    switch (state_) {
      case State::kSize:
        on_size_byte(bytes[at++], body.size(), body_bytes_max);
        break;
      case State::kData: {
        const std::size_t take = std::min<std::size_t>(left_, bytes.size() - at);
        body.append(bytes.substr(at, take));
        at += take;
        left_ -= take;
        state_ = left_ == 0 ? State::kDataEnd : State::kData;
        break;
      }
      case State::kDataEnd:
        if (bytes[at] == '\n') {
          state_ = State::kSize;
        } else if (bytes[at] != '\r') {
          refuse(400, "chunk data is longer than its size");
          break;
        }
        ++at;
        break;
      default:
        on_line_byte(bytes[at++]);
        break;
    }
  }
  return at;
}

void RequestReader::reset() {
  state_ = State::kHead;
  body_is_held_ = false;
  continue_sent_ = false;
  chunks_ = ChunkedBody{};
  refusal_ = {};
  body_ = {};
  held_.clear();
}

void RequestReader::refuse(const Refusal& refusal) {
  state_ = State::kRefused;
  refusal_ = refusal;
}

bool RequestReader::take_continue() {
  if (state_ != State::kBody || !head_.expects_continue || continue_sent_) {
    return false;
  }
  continue_sent_ = true;
  return true;
}

void RequestReader::start_body() {
  if (head_.content_length > limits_.body_bytes_max) {
    refuse({413, "the body is larger than this server takes"});
    return;
  }
  const bool has_body = head_.chunked || head_.content_length > 0;
  state_ = has_body ? State::kBody : State::kComplete;
}

std::size_t RequestReader::feed_head(std::string_view bytes) {
  // RFC 9112 2.2: an empty line before the request line is forgiven.
  std::size_t blank = 0;
  while (held_.empty() && blank < bytes.size() && (bytes[blank] == '\r' || bytes[blank] == '\n')) {
    ++blank;
  }
  bytes.remove_prefix(blank);
  std::string_view text = bytes;
  const std::size_t before = held_.size();
  if (before != 0) {
    // Never more than the limit and one byte: the rest is not ours to keep.
    held_.append(
        bytes.substr(0, limits_.head_bytes_max + 1 - std::min(before, limits_.head_bytes_max)));
    text = held_;
  }
  const std::size_t end = find_head_end(text, before > 2 ? before - 2 : 0);
  if (end == std::string_view::npos || end > limits_.head_bytes_max) {
    if (text.size() > limits_.head_bytes_max) {
      refuse({431, "the request head is larger than this server takes"});
    } else if (before == 0) {
      held_.assign(bytes);
    }
    return blank + bytes.size();
  }
  const Refusal bad = parse_head(text.substr(0, end), head_);
  held_.clear();
  if (bad.status != 0) {
    refuse(bad);
  } else {
    start_body();
  }
  return blank + end - before;
}

std::size_t RequestReader::feed_body(std::string_view bytes) {
  if (head_.chunked) {
    body_is_held_ = true;
    const std::size_t taken = chunks_.feed(bytes, limits_.body_bytes_max, held_);
    if (chunks_.refusal().status != 0) {
      refuse(chunks_.refusal());
    } else if (chunks_.is_done()) {
      state_ = State::kComplete;
    }
    return taken;
  }
  const std::size_t wanted = static_cast<std::size_t>(head_.content_length) - held_.size();
  const std::size_t take = std::min(wanted, bytes.size());
  if (!body_is_held_ && take == wanted) {
    body_ = bytes.substr(0, take);  // whole: no copy
    state_ = State::kComplete;
    return take;
  }
  if (!bytes.empty()) {
    body_is_held_ = true;
    held_.append(bytes.substr(0, take));
    if (take == wanted) {
      state_ = State::kComplete;
    }
  }
  return take;
}

std::size_t RequestReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  if (state_ == State::kHead && !bytes.empty()) {
    taken = feed_head(bytes);
  }
  if (state_ == State::kBody && taken < bytes.size()) {
    taken += feed_body(bytes.substr(taken));
  }
  return taken;
}

}  // namespace tutti::mock_llm
