#include "agent/target/known_head.h"

#include <algorithm>
#include <cstring>

#include "agent/target/http_reader.h"

namespace tutti::target {
namespace {

constexpr std::size_t kDigitsMax = 18;  // fit 63 bits

bool begins_with(std::string_view bytes, const std::string& with) {
  return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
}

}  // namespace

std::size_t KnownHead::match(std::string_view bytes) {
  if (before_.empty() || !begins_with(bytes, before_)) {
    return 0;
  }
  std::size_t at = before_.size();
  if (!after_.empty()) {
    std::int64_t length = 0;
    const std::size_t stop = std::min(bytes.size(), at + kDigitsMax);
    for (; at < stop && bytes[at] >= '0' && bytes[at] <= '9'; ++at) {
      length = length * 10 + (bytes[at] - '0');
    }
    // What follows the digits is no digit, so one too many does not match either.
    if (at == before_.size() || !begins_with(bytes.substr(at), after_)) {
      return 0;
    }
    facts_.content_length = length;
    at += after_.size();
  }
  worth_.note_hit();
  return at;
}

void KnownHead::learn(std::string_view head, std::string_view length, const HeadFacts& facts,
                      std::string_view content_type) {
  if (head.size() > kBytesMax || !worth_.learns()) {
    return;
  }
  const std::size_t split =
      length.empty() ? head.size() : static_cast<std::size_t>(length.data() - head.data());
  before_.assign(head.substr(0, split));
  after_.assign(head.substr(split + length.size()));
  content_type_.assign(content_type);
  facts_ = facts;
  lines_ = static_cast<std::size_t>(std::count(head.begin(), head.end(), '\n'));
}

// ---- HttpReader's part

// At the begin of bytes that may be a whole header: either it is the known one, or the reading that
// follows may learn it.
bool HttpReader::take_known_head(std::string_view& bytes) {
  head_at_ = nullptr;
  const bool roomy = std::min(limits_.line_bytes_max, head_left_) > 2 * KnownHead::kBytesMax;
  if (state_ != State::kStatusLine || !kept_.empty() || !roomy) {
    return false;
  }
  const std::size_t size = known_->match(bytes);
  if (size == 0) {
    head_at_ = bytes.data();
    return false;
  }
  bytes.remove_prefix(size);
  header_bytes_ += size;
  head_left_ -= size - known_->lines();
  head_ = known_->facts();
  content_type_.assign(known_->content_type());
  return true;
}

void HttpReader::learn_head(const char* end) {
  if (lengths_said_ <= 1) {
    known_->learn({head_at_, static_cast<std::size_t>(end - head_at_)},
                  lengths_said_ == 1 ? length_said_ : std::string_view(), head_, content_type_);
  }
}

}  // namespace tutti::target
