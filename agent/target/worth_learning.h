#pragma once

// WorthLearning: whether to learn what was just read, after it was not what had been learnt before.
// Learning costs about as much as reading: what differs every time is soon let be, and tried again
// now and then, for a date in it changes once a second and everything else may stay. Any thread.

#include <cstdint>

namespace tutti::target {

class WorthLearning {
 public:
  void note_hit() { misses_ = 0; }
  // Asked once per miss.
  bool learns() { return ++misses_ <= kAlways || misses_ % kNowAndThen == 0; }

 private:
  static constexpr std::uint32_t kAlways = 8;
  static constexpr std::uint32_t kNowAndThen = 64;

  std::uint32_t misses_ = 0;
};

}  // namespace tutti::target
