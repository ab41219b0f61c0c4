#include "tests/bench/raw_reply.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tutti::bench {
namespace {

constexpr std::string_view kEventPrefix = "data: {";
constexpr std::string_view kStampKey = "\"tutti_sent_ns\":";
constexpr std::size_t kHeadMax = 64 << 10;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool starts_with_name(std::string_view line, std::string_view name) {
  return line.size() > name.size() &&
         std::equal(name.begin(), name.end(), line.begin(),
                    [](char want, char is) { return want == lower(is); });
}

}  // namespace

std::uint64_t ReplyScanner::take_events() {
  const std::uint64_t events = events_;
  events_ = 0;
  return events;
}

void ReplyScanner::reset() {
  state_ = State::kHead;
  keeps_ = true;
  status_ = 0;
  matched_ = 0;
  head_.clear();
}

void ReplyScanner::scan(std::string_view data) {
  std::size_t at = 0;
  while (at < data.size()) {
    if (matched_ < 0) {
      const void* line_end = std::memchr(data.data() + at, '\n', data.size() - at);
      if (line_end == nullptr) {
        return;
      }
      at = static_cast<std::size_t>(static_cast<const char*>(line_end) - data.data()) + 1;
      matched_ = 0;
      continue;
    }
    const char c = data[at++];
    if (c != kEventPrefix[static_cast<std::size_t>(matched_)]) {
      matched_ = c == '\n' ? 0 : -1;
    } else if (++matched_ == static_cast<int>(kEventPrefix.size())) {
      ++events_;
      matched_ = -1;
      if (stamps_ != nullptr) {
        // An event cut by the end of a read is not stamped; the sample stays fair without it.
        const std::string_view line = data.substr(at, data.find('\n', at) - at);
        const std::size_t key = line.rfind(kStampKey);
        std::int64_t stamp = 0;
        if (key != std::string_view::npos &&
            std::from_chars(line.data() + key + kStampKey.size(), line.data() + line.size(), stamp)
                    .ec == std::errc{}) {
          stamps_->push_back(stamp);
        }
      }
    }
  }
}

void ReplyScanner::read_header(std::string_view line) {
  if (starts_with_name(line, "content-length:")) {
    std::string_view value = line.substr(15);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    if (std::from_chars(value.data(), value.data() + value.size(), left_).ec != std::errc{}) {
      state_ = State::kBad;
    } else {
      state_ = left_ == 0 ? State::kDone : State::kLength;
    }
  } else if (starts_with_name(line, "transfer-encoding: chunked")) {
    state_ = State::kSize;
  } else if (starts_with_name(line, "connection: close")) {
    keeps_ = false;
  }
}

void ReplyScanner::read_head(std::string_view head) {
  left_ = 0;
  size_seen_ = false;
  state_ = State::kBad;  // until a header says how long the body is
  if (head.size() < 12 || head.substr(0, 7) != "HTTP/1." ||
      std::from_chars(head.data() + 9, head.data() + 12, status_).ec != std::errc{}) {
    return;
  }
  std::size_t at = head.find('\n') + 1;
  while (at < head.size()) {
    const std::size_t end = head.find('\n', at);
    // The end of the line is part of what is compared: names above are prefixes.
    read_header(head.substr(at, end - at));
    at = end + 1;
  }
}

std::size_t ReplyScanner::feed_head(std::string_view bytes) {
  const std::size_t before = head_.size();
  std::string_view text = bytes;
  if (before != 0) {
    head_.append(bytes);
    text = head_;
  }
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (before == 0) {
      head_.assign(bytes);
    }
    if (head_.size() > kHeadMax) {
      state_ = State::kBad;
    }
    return bytes.size();
  }
  read_head(text.substr(0, end + 2));
  head_.clear();
  return end + 4 - before;
}

std::size_t ReplyScanner::feed_chunk(std::string_view bytes) {
  const char c = bytes.front();
  switch (state_) {
    case State::kSize: {
      const char small = lower(c);
      const bool digit = c >= '0' && c <= '9';
      if (digit || (small >= 'a' && small <= 'f')) {
        left_ = left_ * 16 + static_cast<std::uint64_t>(digit ? c - '0' : small - 'a' + 10);
        size_seen_ = true;
      } else if (c == '\n' && size_seen_) {
        size_seen_ = false;
        line_empty_ = true;
        state_ = left_ == 0 ? State::kTrailer : State::kData;
      } else if (c != '\r') {
        state_ = State::kBad;
      }
      return 1;
    }
    case State::kData: {
      const std::size_t take = std::min<std::size_t>(left_, bytes.size());
      scan(bytes.substr(0, take));
      left_ -= take;
      state_ = left_ == 0 ? State::kDataEnd : State::kData;
      return take;
    }
    case State::kDataEnd:
      state_ = c == '\n' ? State::kSize : state_;
      return 1;
    default:  // kTrailer: an empty line ends the answer
      if (c == '\n') {
        state_ = line_empty_ ? State::kDone : State::kTrailer;
        line_empty_ = true;
      } else if (c != '\r') {
        line_empty_ = false;
      }
      return 1;
  }
}

std::size_t ReplyScanner::feed(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::kDone && state_ != State::kBad) {
    const std::string_view rest = bytes.substr(at);
    if (state_ == State::kHead) {
      at += feed_head(rest);
    } else if (state_ == State::kLength) {
      const std::size_t take = std::min<std::size_t>(left_, rest.size());
      scan(rest.substr(0, take));
      left_ -= take;
      at += take;
      state_ = left_ == 0 ? State::kDone : State::kLength;
    } else {
      at += feed_chunk(rest);
    }
  }
  return at;
}

}  // namespace tutti::bench
