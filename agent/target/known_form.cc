#include "agent/target/known_form.h"

#include <cstring>

#include "agent/target/plain_text.h"

namespace tutti::target {
bool KnownForm::read(std::string_view json, base::ApiType api, EventFacts& facts) {
  if (gap_count_ == 0 || api != api_) {
    return false;
  }
  const char* at = json.data();
  const char* const end = at + json.size();
  const char* known = between_.data();
  facts = facts_;
  for (std::size_t i = 0; i < gap_count_; ++i) {
    const Gap& gap = gaps_[i];
    if (static_cast<std::size_t>(end - at) < gap.before ||
        std::memcmp(at, known, gap.before) != 0) {
      return false;
    }
    at += gap.before;
    known += gap.before;
    if (gap.is_text) {
      const char* const to = plain_end(at, end);
      if (gap.text != nullptr) {
        facts.*gap.text = {at, static_cast<std::size_t>(to - at)};
      }
      at = to;  // the bytes that follow begin with the quote
      continue;
    }
    std::uint64_t value = 0;
    if (!take_plain_count(at, end, value)) {
      return false;
    }
    if (gap.count != nullptr) {
      facts.*gap.count = clamped_count(value);
    }
  }
  const auto left = static_cast<std::size_t>(between_.data() + between_.size() - known);
  if (static_cast<std::size_t>(end - at) != left || std::memcmp(at, known, left) != 0) {
    return false;
  }
  worth_.note_hit();
  return true;
}

void KnownForm::learn(std::string_view json, base::ApiType api, const ValueTrace& trace,
                      const EventFacts& facts) {
  gap_count_ = 0;
  if (!trace.is_whole()) {
    return;
  }
  between_.clear();
  std::size_t from = 0;
  for (const ValueTrace::Value& value : trace) {
    const auto at = static_cast<std::size_t>(value.bytes.data() - json.data());
    Gap& gap = gaps_[gap_count_++];
    gap = {static_cast<std::uint32_t>(at - from), value.is_text, nullptr, value.count};
    for (auto text : {&EventFacts::content, &EventFacts::reasoning, &EventFacts::finish_reason}) {
      if (value.is_text && (facts.*text).data() == value.bytes.data()) {
        gap.text = text;
      }
    }
    between_.append(json.substr(from, at - from));
    from = at + value.bytes.size();
  }
  between_.append(json.substr(from));
  if (between_.size() > kBytesMax) {
    gap_count_ = 0;
  }
  facts_ = facts;
  facts_.content = facts_.reasoning = facts_.finish_reason = {};
  facts_.prompt_tokens = facts_.completion_tokens = facts_.reasoning_tokens = -1;
  api_ = api;
}

}  // namespace tutti::target
