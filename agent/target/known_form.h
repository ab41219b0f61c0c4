#pragma once

// KnownForm: the form of the whole reply before. A server writes all its replies with the same
// members in the same order, and other values. Once read_usual_event has read one, the next that
// has the same bytes between its values is read by comparing those and taking the values. Exact:
// the reading that taught it would do the same steps. One per worker; owned by its thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/target/reply_event.h"
#include "agent/target/worth_learning.h"
#include "common/base/vocabulary.h"

namespace tutti::target {

// The values of a document in their order, as read_usual_event comes by them.
class ValueTrace {
 public:
  static constexpr std::size_t kMax = 24;

  struct Value {
    std::string_view bytes;                     // of a text: without its quotes
    std::int32_t EventFacts::*count = nullptr;  // where a count goes; null: nobody asks for it
    bool is_text = false;
  };

  void note(std::string_view bytes, bool is_text) {
    if (size_ < kMax) {
      values_[size_] = {bytes, nullptr, is_text};
    }
    ++size_;
  }
  // A name may come twice: the last one counts.
  void last_goes_to(std::int32_t EventFacts::*count) {
    none_goes_to(count);
    if (size_ > 0 && size_ <= kMax) {
      values_[size_ - 1].count = count;
    }
  }
  void none_goes_to(std::int32_t EventFacts::*count) {
    for (Value& value : values_) {
      value.count = value.count == count ? nullptr : value.count;
    }
  }
  void refuse() { size_ = kMax + 1; }  // values decide what is read of this document
  bool is_whole() const { return size_ <= kMax; }
  const Value* begin() const { return values_.data(); }
  const Value* end() const { return values_.data() + size_; }

 private:
  std::array<Value, kMax> values_{};
  std::size_t size_ = 0;
};

class KnownForm {
 public:
  static constexpr std::size_t kBytesMax = 4096;  // between the values

  // Of a whole reply. False: it has another form, `facts` mean nothing.
  bool read(std::string_view json, base::ApiType api, EventFacts& facts);
  // Asked after each miss.
  bool learns() { return worth_.learns(); }
  // A document that read_usual_event has read, and its values.
  void learn(std::string_view json, base::ApiType api, const ValueTrace& trace,
             const EventFacts& facts);

 private:
  struct Gap {
    std::uint32_t before = 0;  // bytes between the value before and this one
    bool is_text = false;
    std::string_view EventFacts::*text = nullptr;
    std::int32_t EventFacts::*count = nullptr;
  };

  std::string between_;  // all bytes that are no value
  std::array<Gap, ValueTrace::kMax> gaps_{};
  std::size_t gap_count_ = 0;
  EventFacts facts_;  // without values
  base::ApiType api_ = base::ApiType::kOpenAiChat;
  WorthLearning worth_;
};

}  // namespace tutti::target
