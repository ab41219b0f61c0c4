#pragma once

// StampMap: where on the monotonic clock a kernel receive stamp (CLOCK_REALTIME) lies. The offset
// between the two clocks is compared at every read and learnt anew when it moved, so a step of wall
// time is seen before a stamp is believed: a stamp that may be from before the step, lies in the
// future or is older than a second is not used. Pure; owned by one worker thread.

#include <cstdint>

#include "common/base/time.h"

namespace tutti::target {

class StampMap {
 public:
  // Two clock reads in a row lie this close; beyond, the offset is worth learning again.
  static constexpr base::Duration kAgrees = base::Duration::micros(2);
  // More is a step and not the clock being steered.
  static constexpr base::Duration kStep = base::Duration::millis(1);
  static constexpr base::Duration kOldest = base::Duration::seconds(1);

  // `wall_ns` was read right after `mono`: the known offset still holds.
  bool agrees(base::Instant mono, std::int64_t wall_ns) const;
  // `wall_ns` was read between the other two.
  void learn(base::Instant before, std::int64_t wall_ns, base::Instant after);
  // The instant of `stamp_ns`, never after `read_at`, or unset: not usable.
  base::Instant map(std::int64_t stamp_ns, base::Instant read_at) const;

 private:
  std::int64_t offset_ns_ = 0;  // wall − monotonic
  base::Instant trusted_from_{};
  bool known_ = false;
};

// Learns from the closest of a few readings of both clocks.
void learn_offset(StampMap& map, const base::Clock& clock);

}  // namespace tutti::target
