#include "common/text/sse.h"

#include "common/text/utf8.h"

namespace tutti::text {

void SseParser::reset() {
  line_.clear();
  data_.clear();
  clear_event();
  after_cr_ = false;
  at_start_ = true;
  too_large_ = false;
  // One giant event must not pin its memory in a pooled parser for the rest of the run.
  if (line_.capacity() > kKeepCapacityMax) {
    line_ = std::string();
  }
  if (data_.capacity() > kKeepCapacityMax) {
    data_ = std::string();
  }
}

void SseParser::keep_partial(std::string_view piece) {
  if (piece.size() > line_max() - line_.size()) {
    too_large_ = true;
    line_.clear();
    return;
  }
  line_.append(piece);
}

void SseParser::take_field(std::string_view line, bool in_fed_bytes) {
  constexpr std::string_view kData = "data:";
  if (line.substr(0, kData.size()) == kData) {  // nearly always, and without a search
    line.remove_prefix(kData.size());
    line.remove_prefix(!line.empty() && line.front() == ' ' ? 1 : 0);
    add_data(line, in_fed_bytes);
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') {
    value.remove_prefix(1);
  }
  if (name == "data") {
    add_data(value, in_fed_bytes);
  } else if (name == "event") {
    type_.assign(value.substr(0, kCommentMax));
  } else if (colon == 0 && comment_.empty()) {
    comment_.assign(clip_utf8(value, kCommentMax));
  }
}

void SseParser::add_data(std::string_view value, bool in_fed_bytes) {
  const std::size_t have = !has_data_ ? 0 : (data_owned_ ? data_.size() : data_view_.size()) + 1;
  if (have > max_ || value.size() > max_ - have) {
    too_large_ = true;
    return;
  }
  if (!has_data_ && in_fed_bytes) {
    data_view_ = value;
    has_data_ = true;
    return;
  }
  own_data();
  if (has_data_) {
    data_.push_back('\n');
  } else {
    data_.clear();
  }
  data_.append(value);
  has_data_ = true;
  data_owned_ = true;
}

}  // namespace tutti::text
