#pragma once

// StampMap: where on the monotonic clock a kernel receive stamp (CLOCK_REALTIME) lies. The offset
// between the two clocks is compared after reads, before their stamps are mapped, and learnt anew
// when it moved, so a step of wall time is seen before a stamp is believed: a stamp that may be
// from before the step, lies in the future or is older than a second is not used. Pure; owned by
// one worker thread.

#include <cstdint>

#include "common/base/time.h"

namespace tutti::target {

class StampMap {
 public:
  // Two clock reads in a row lie this close; beyond, the offset is worth learning again.
  static constexpr base::Duration kAgrees = base::Duration::micros(2);
  // A reader that was held up for no longer than this need not learn again.
  static constexpr base::Duration kHeldUp = base::Duration::micros(20);
  // More is a step and not the clock being steered.
  static constexpr base::Duration kStep = base::Duration::millis(1);
  static constexpr base::Duration kOldest = base::Duration::seconds(1);

  // `wall_ns` was read right after `mono`: the known offset still holds.
  bool agrees(base::Instant mono, std::int64_t wall_ns) const {
    const std::int64_t moved = wall_ns - mono.ns - offset_ns_;
    return known_ && moved <= kAgrees.ns && moved >= -kAgrees.ns;
  }
  // It was read between the other two: it may still hold. A wide bracket cannot tell a step that
  // fits into it.
  bool agrees(base::Instant before, std::int64_t wall_ns, base::Instant after) const;
  // `wall_ns` was read between the other two.
  void learn(base::Instant before, std::int64_t wall_ns, base::Instant after);
  // The instant of `stamp_ns`, never after `read_at`, or unset: not usable.
  base::Instant map(std::int64_t stamp_ns, base::Instant read_at) const;

 private:
  std::int64_t offset_ns_ = 0;  // wall − monotonic
  base::Instant trusted_from_{};
  bool known_ = false;
};

// After `read_wall_ns`, read right after `read_at`, did not agree: learns from the closest of a few
// readings of both clocks, unless this thread was only held up between those two.
void learn_offset(StampMap& map, base::Instant read_at, std::int64_t read_wall_ns,
                  const base::Clock& clock);

}  // namespace tutti::target
