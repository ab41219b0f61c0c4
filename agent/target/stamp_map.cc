#include "agent/target/stamp_map.h"

#include <algorithm>

namespace tutti::target {

bool StampMap::agrees(base::Instant before, std::int64_t wall_ns, base::Instant after) const {
  const std::int64_t moved = wall_ns - before.ns - offset_ns_;
  const base::Duration wide = after - before;
  return known_ && moved <= kAgrees.ns + wide.ns && moved >= -kAgrees.ns && wide <= kHeldUp;
}

void StampMap::learn(base::Instant before, std::int64_t wall_ns, base::Instant after) {
  const std::int64_t offset = wall_ns - (before.ns + (after.ns - before.ns) / 2);
  const std::int64_t moved = offset - offset_ns_;
  if (known_ && (moved > kStep.ns || moved < -kStep.ns)) {
    // A stamp from before a step forward now maps too early, from before a step back too late by
    // the step: both lie before this instant.
    trusted_from_ = after + base::Duration{std::clamp<std::int64_t>(-moved, 0, kOldest.ns)};
  }
  offset_ns_ = offset;
  known_ = true;
}

base::Instant StampMap::map(std::int64_t stamp_ns, base::Instant read_at) const {
  const base::Instant at{stamp_ns - offset_ns_};
  const bool usable =
      known_ && at <= read_at && read_at - at <= kOldest && at >= trusted_from_ && at.is_set();
  return usable ? at : base::Instant{};
}

void learn_offset(StampMap& map, base::Instant read_at, std::int64_t read_wall_ns,
                  const base::Clock& clock) {
  constexpr int kReadings = 4;
  base::Instant before = clock.mono();
  if (map.agrees(read_at, read_wall_ns, before)) {
    return;
  }
  base::Instant best_before{};
  base::Instant best_after = base::kFarFuture;
  std::int64_t best_wall_ns = 0;
  for (int i = 0; i < kReadings; ++i) {
    const std::int64_t wall_ns = clock.wall_unix_ns();
    const base::Instant after = clock.mono();
    if (after - before < best_after - best_before) {
      best_before = before;
      best_after = after;
      best_wall_ns = wall_ns;
    }
    if (after - before <= StampMap::kAgrees) {
      break;
    }
    before = after;
  }
  map.learn(best_before, best_wall_ns, best_after);
}

}  // namespace tutti::target
