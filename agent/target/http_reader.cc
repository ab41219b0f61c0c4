#include "agent/target/http_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace tutti::target {
namespace {

constexpr std::string_view kHttp1 = "HTTP/1.";
constexpr std::size_t kStatusLineMin = std::string_view("HTTP/1.1 200").size();
constexpr std::size_t kContentTypeMax = 256;
constexpr std::size_t kShownMax = 48;      // of the peer's bytes in a problem
constexpr std::size_t kHexDigitsMax = 15;  // fits 63 bits
constexpr int kSwitchingProtocols = 101;

bool blank(char c) { return c == ' ' || c == '\t'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

bool same(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() &&
         std::equal(a.begin(), a.end(), lower.begin(), [](char c, char low) {
           return c == low || (c >= 'A' && c <= 'Z' && static_cast<char>(c + 32) == low);
         });
}

// Nearly every server writes a name in one of two ways, and those cost one comparison each.
template <std::size_t N>
bool named(std::string_view name, const char (&lower)[N], const char (&usual)[N]) {
  return name.size() == N - 1 &&
         (std::memcmp(name.data(), usual, N - 1) == 0 ||
          std::memcmp(name.data(), lower, N - 1) == 0 || same(name, {lower, N - 1}));
}

// The peer's bytes in a message: short, and printable.
std::string shown(std::string_view bytes) {
  std::string text(bytes.substr(0, kShownMax));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return bytes.size() > kShownMax ? text + "..." : text;
}

// Calls `take` for every member of a comma-separated list; stops when it says false.
template <class Take>
bool each_member(std::string_view list, Take&& take) {
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view member = trimmed(list.substr(0, comma));
    if (!member.empty() && !take(member)) {
      return false;
    }
    if (comma == std::string_view::npos) {
      return true;
    }
    list.remove_prefix(comma + 1);
  }
}

constexpr std::array<std::int8_t, 256> hex_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (unsigned i = 0; i < 16; ++i) {
    values[static_cast<unsigned char>("0123456789abcdef"[i])] = static_cast<std::int8_t>(i);
    values[static_cast<unsigned char>("0123456789ABCDEF"[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}

// -1: not a digit.
int hex_value(char c) {
  static constexpr std::array<std::int8_t, 256> kValues = hex_values();
  return kValues[static_cast<unsigned char>(c)];
}

}  // namespace

void HttpReader::start() {
  kept_.clear();
  problem_.clear();
  header_bytes_ = 0;
  head_left_ = limits_.head_bytes_max;
  any_byte_ = false;
  cr_seen_ = false;
  keeps_alive_ = false;
  state_ = State::kStatusLine;
  begin_head();
}

void HttpReader::begin_head() {
  content_type_.clear();
  head_ = {};
  head_at_ = nullptr;
  lengths_said_ = 0;
  last_field_ = Field::kNone;
}

HttpReader::Found HttpReader::bad(std::string problem) {
  problem_ = std::move(problem);
  state_ = State::kBad;
  return Found::kBad;
}

HttpReader::Found HttpReader::next(std::string_view& bytes, std::string_view& body) {
  any_byte_ = any_byte_ || !bytes.empty();
  if (state_ == State::kChunkSize && kept_.empty() && read_plain_chunk_size(bytes)) {
    return take_span(bytes, body);
  }
  if (state_ <= State::kField && known_ != nullptr && take_known_head(bytes)) {
    return end_head();
  }
  while (true) {
    Found found = Found::kMore;
    switch (state_) {
      case State::kChunkData:
        return take_span(bytes, body);
      case State::kChunkEnd:
        found = read_chunk_end(bytes);
        break;
      case State::kChunkSize:
        found = read_chunk_line(bytes);
        break;
      case State::kStatusLine:
      case State::kField:
      case State::kTrailer:
        found = read_line(bytes);
        break;
      case State::kCounted:
        return take_span(bytes, body);
      case State::kUntilClose:
        body = std::exchange(bytes, {});
        return body.empty() ? Found::kMore : Found::kBody;
      case State::kDone:
        return Found::kDone;
      case State::kBad:
        return Found::kBad;
    }
    if (found != Found::kMore || bytes.empty()) {
      // A step that took the last byte may have ended the reply.
      return found == Found::kMore && state_ == State::kDone ? Found::kDone : found;
    }
  }
}

HttpReader::Found HttpReader::take_span(std::string_view& bytes, std::string_view& body) {
  body = bytes.substr(0, left_);
  bytes.remove_prefix(body.size());
  left_ -= body.size();
  if (left_ == 0) {
    if (state_ == State::kCounted) {
      state_ = State::kDone;
    } else if (bytes.size() >= 2 && bytes[0] == '\r' && bytes[1] == '\n') {
      bytes.remove_prefix(2);  // the usual case: the line end came along
      state_ = State::kChunkSize;
    } else {
      state_ = State::kChunkEnd;
    }
  }
  return body.empty() ? Found::kMore : Found::kBody;
}

HttpReader::Ending HttpReader::finish() {
  switch (state_) {
    case State::kDone:
      return Ending::kWhole;
    case State::kUntilClose:
      state_ = State::kDone;
      return Ending::kWhole;
    case State::kBad:
      return Ending::kBad;
    case State::kStatusLine:
    case State::kField:
      return any_byte_ ? Ending::kCutHead : Ending::kNothing;
    default:
      return Ending::kCutBody;
  }
}

// ---- lines -----------------------------------------------------------------------------------

// A line without its end. `bytes_max` counts what comes before the LF. A whole line stays a view
// into `bytes`; a cut one is put together in kept_, which the caller empties.
HttpReader::Line HttpReader::take_line(std::string_view& bytes, std::size_t bytes_max,
                                       std::string_view& line) {
  const void* hit = bytes.empty() ? nullptr : std::memchr(bytes.data(), '\n', bytes.size());
  const std::size_t size =
      hit == nullptr ? bytes.size()
                     : static_cast<std::size_t>(static_cast<const char*>(hit) - bytes.data());
  if (kept_.size() + size > bytes_max) {
    return Line::kTooLong;
  }
  if (hit == nullptr) {
    kept_.append(bytes);
    bytes = {};
    head_at_ = nullptr;
    return Line::kPart;
  }
  line = bytes.substr(0, size);
  bytes.remove_prefix(size + 1);
  if (!kept_.empty()) {
    kept_.append(line);
    line = kept_;
  }
  return Line::kWhole;
}

namespace {

std::string_view without_cr(std::string_view line) {
  return !line.empty() && line.back() == '\r' ? line.substr(0, line.size() - 1) : line;
}

}  // namespace

// Seen as the bytes come, so that a peer that speaks something else is not waited for. What is kept
// was looked at when it came.
bool HttpReader::begins_well(std::string_view bytes) {
  const std::string_view want = kHttp1.substr(std::min(kept_.size(), kHttp1.size()));
  if (bytes.substr(0, want.size()) == want) {
    return true;
  }
  const std::string_view part = bytes.substr(0, std::min(want.size(), bytes.find('\n')));
  const auto [at, wanted] = std::mismatch(part.begin(), part.end(), want.begin());
  if (at == part.end()) {
    return true;
  }
  const auto before = static_cast<std::ptrdiff_t>(kHttp1.size() - want.size());
  bad(fmt::format("byte {} of the reply is 0x{:02x}, where \"HTTP/1.\" has 0x{:02x}",
                  before + (at - part.begin()), static_cast<unsigned char>(*at),
                  static_cast<unsigned char>(*wanted)));
  return false;
}

HttpReader::Found HttpReader::read_line(std::string_view& bytes) {
  if (state_ == State::kStatusLine && !begins_well(bytes)) {
    return Found::kBad;
  }
  std::string_view line;
  const std::size_t bytes_max = std::min(limits_.line_bytes_max, head_left_);
  switch (take_line(bytes, bytes_max, line)) {
    case Line::kPart:
      return Found::kMore;
    case Line::kTooLong:
      return bad(bytes_max == limits_.line_bytes_max
                     ? fmt::format("a header line is longer than {} bytes", bytes_max)
                     : fmt::format("the header is larger than {} bytes", limits_.head_bytes_max));
    case Line::kWhole:
      break;
  }
  const std::size_t line_bytes = line.size() + 1;
  head_left_ -= line.size();
  line = without_cr(line);
  // The blank line after the last chunk is framing, not header.
  header_bytes_ += state_ == State::kTrailer && line.empty() ? 0 : line_bytes;
  bool good = true;
  Found found = Found::kMore;
  if (state_ == State::kStatusLine) {
    good = read_status_line(line);
  } else if (line.empty()) {
    found = end_head();
    if (found == Found::kHead && head_at_ != nullptr) {
      learn_head(bytes.data());
    }
  } else if (state_ == State::kField) {
    good = read_field(line);
  }
  kept_.clear();
  return good ? found : Found::kBad;
}

bool HttpReader::read_status_line(std::string_view line) {
  const auto at = [line](std::size_t i) { return line[i]; };
  if (line.size() < kStatusLineMin || !digit(at(7)) || at(8) != ' ' || !digit(at(9)) ||
      !digit(at(10)) || !digit(at(11)) || (line.size() > kStatusLineMin && at(12) != ' ')) {
    bad(fmt::format(R"(the status line "{}" is not "HTTP/1.x NNN reason")", shown(line)));
    return false;
  }
  head_.http_1_0 = at(7) == '0';
  head_.status = (at(9) - '0') * 100 + (at(10) - '0') * 10 + (at(11) - '0');
  if (head_.status < 100) {
    bad(fmt::format("the status {} is not one", head_.status));
    return false;
  }
  state_ = State::kField;
  return true;
}

bool HttpReader::read_field(std::string_view line) {
  if (blank(line.front())) {
    if (last_field_ == Field::kOther) {
      return true;  // goes on a field that is not read
    }
    bad(fmt::format("a folded header line \"{}\" {}", shown(line),
                    last_field_ == Field::kNone ? "follows no field"
                                                : "goes on a field that decides the framing"));
    return false;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || blank(line[colon - 1])) {
    bad(fmt::format(R"(the header line "{}" is not "name: value")", shown(line)));
    return false;
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  last_field_ = Field::kOurs;
  switch (name.size()) {
    case 10:
      if (named(name, "connection", "Connection")) {
        read_connection(value);
        return true;
      }
      break;
    case 12:
      if (named(name, "content-type", "Content-Type")) {
        content_type_.assign(value.substr(0, kContentTypeMax));
        return true;
      }
      break;
    case 14:
      if (named(name, "content-length", "Content-Length")) {
        return read_content_length(value);
      }
      break;
    case 17:
      if (named(name, "transfer-encoding", "Transfer-Encoding")) {
        return read_transfer_encoding(value);
      }
      break;
    default:
      break;
  }
  last_field_ = Field::kOther;
  return true;
}

bool HttpReader::read_content_length(std::string_view value) {
  std::int64_t length = -1;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, length);
  if (error != std::errc{} || stop != end || length < 0 || !digit(value.front())) {
    bad(fmt::format("Content-Length \"{}\" is not a length", shown(value)));
    return false;
  }
  if (head_.content_length >= 0 && head_.content_length != length) {
    bad(fmt::format("two Content-Length: {} and {}", head_.content_length, length));
    return false;
  }
  head_.content_length = length;
  length_said_ = value;
  ++lengths_said_;
  return true;
}

bool HttpReader::read_transfer_encoding(std::string_view value) {
  const bool good = each_member(value, [this](std::string_view coding) {
    const bool is_chunked = same(coding, "chunked");
    if ((!is_chunked && !same(coding, "identity")) || head_.chunked) {
      return false;
    }
    head_.chunked = is_chunked;
    return true;
  });
  if (!good) {
    bad(fmt::format("Transfer-Encoding \"{}\" is not understood; chunked is", shown(value)));
  }
  return good;
}

void HttpReader::read_connection(std::string_view value) {
  each_member(value, [this](std::string_view option) {
    head_.says_close = head_.says_close || same(option, "close");
    head_.says_keep_alive = head_.says_keep_alive || same(option, "keep-alive");
    return true;
  });
}

// The blank line: of an interim reply, of the header, or of the trailers.
HttpReader::Found HttpReader::end_head() {
  if (state_ == State::kTrailer) {
    state_ = State::kDone;
    return Found::kDone;
  }
  if (head_.status < 200 && head_.status != kSwitchingProtocols) {
    state_ = State::kStatusLine;
    begin_head();
    return Found::kMore;
  }
  const bool bodiless = head_.status < 200 || head_.status == 204 || head_.status == 304;
  const bool stays = !head_.says_close && (!head_.http_1_0 || head_.says_keep_alive);
  keeps_alive_ = stays && head_.status != kSwitchingProtocols;
  if (bodiless) {
    state_ = State::kDone;
  } else if (head_.chunked) {
    // Both lengths: the chunks count, and the connection is not trusted any further.
    keeps_alive_ = keeps_alive_ && head_.content_length < 0;
    state_ = State::kChunkSize;
  } else if (head_.content_length >= 0) {
    left_ = static_cast<std::uint64_t>(head_.content_length);
    state_ = left_ == 0 ? State::kDone : State::kCounted;
  } else {
    keeps_alive_ = false;
    state_ = State::kUntilClose;
  }
  return Found::kHead;
}

// ---- chunks ----------------------------------------------------------------------------------

HttpReader::Found HttpReader::read_chunk_line(std::string_view& bytes) {
  std::string_view line;
  switch (take_line(bytes, limits_.chunk_line_bytes_max, line)) {
    case Line::kPart:
      return Found::kMore;
    case Line::kTooLong:
      return bad(
          fmt::format("a chunk's size line is longer than {} bytes", limits_.chunk_line_bytes_max));
    case Line::kWhole:
      break;
  }
  const bool good = read_chunk_size(without_cr(line));
  kept_.clear();
  return good ? Found::kMore : Found::kBad;
}

// The usual case, which needs no search for the line's end: a few digits and CR LF, all there.
bool HttpReader::read_plain_chunk_size(std::string_view& bytes) {
  constexpr std::size_t kBytesMax = 8;
  if (bytes.size() < kBytesMax || limits_.chunk_line_bytes_max < kBytesMax) {
    return false;
  }
  std::uint64_t size = 0;
  const char* at = bytes.data();
  const char* const end = at + kBytesMax - 2;
  for (int value = 0; at < end && (value = hex_value(*at)) >= 0; ++at) {
    size = size << 4 | static_cast<unsigned>(value);
  }
  if (size == 0 || at[0] != '\r' || at[1] != '\n') {
    return false;
  }
  bytes.remove_prefix(static_cast<std::size_t>(at + 2 - bytes.data()));
  left_ = size;
  state_ = State::kChunkData;
  return true;
}

bool HttpReader::read_chunk_size(std::string_view line) {
  std::uint64_t size = 0;
  std::size_t digits = 0;  // without leading zeros
  std::size_t at = 0;
  for (int value = 0; at < line.size() && (value = hex_value(line[at])) >= 0; ++at) {
    size = size << 4 | static_cast<unsigned>(value);
    digits += size != 0 ? 1U : 0U;
    if (digits > kHexDigitsMax) {
      bad(fmt::format("the chunk size \"{}\" is too large", shown(line)));
      return false;
    }
  }
  const std::string_view rest = line.substr(at);
  const std::string_view extension = trimmed(rest);
  if (at == 0 || (!extension.empty() && extension.front() != ';')) {
    bad(fmt::format("\"{}\" is not a chunk size", shown(line)));
    return false;
  }
  left_ = size;
  state_ = size == 0 ? State::kTrailer : State::kChunkData;
  return true;
}

HttpReader::Found HttpReader::read_chunk_end(std::string_view& bytes) {
  if (bytes.empty()) {
    return Found::kMore;
  }
  if (!cr_seen_ && bytes.front() == '\r') {
    cr_seen_ = true;
    bytes.remove_prefix(1);
    if (bytes.empty()) {
      return Found::kMore;
    }
  }
  if (bytes.front() != '\n') {
    return bad(
        fmt::format("0x{:02x} where a chunk's line end should be: its data is longer than "
                    "its size says",
                    static_cast<unsigned char>(bytes.front())));
  }
  bytes.remove_prefix(1);
  cr_seen_ = false;
  state_ = State::kChunkSize;
  return Found::kMore;
}

}  // namespace tutti::target
