#pragma once

// PoissonArrivals: the gaps between timed queries and the offsets from phase start they add up to,
// bit-identical to the reference client's; vectors: tests/conformance/poisson_gaps.json. Endless,
// seeded, one owner, no locks.
//
//   gap = max(1, trunc(−ln(1 − u) / (target_qps / 1e9))) ns,  u in [0, 1) from MT19937, one u a gap
//
// Due offsets are the exact integer sums of the gaps. The reference keeps the sum as a double of
// seconds (offset += gap / 1e9), whose rounding errors pile up; that double, taken to the nearest
// nanosecond, equals the integer sum for all vectors. So commands carry the sum (exact, the same on
// every libm and however far a run goes) and offset_s() keeps the reference's double for proof.

#include <cstdint>

#include "common/base/random.h"
#include "common/base/time.h"

namespace tutti::plan {

class PoissonArrivals {
 public:
  // Longest gap and longest offset: a schedule beyond 146 years stays at that offset. Low enough
  // that instant + offset cannot overflow, and reached only by rates below 1e-8 queries a second.
  static constexpr std::int64_t kOffsetMaxNs = std::int64_t{1} << 62;

  // `target_qps` > 0, finite. `gaps_before` draws of the same seed are passed over: phases that
  // share one generator each start where the one before stopped.
  PoissonArrivals(double target_qps, std::uint64_t seed, std::uint64_t gaps_before = 0);

  // The gap before the next query, and its due offset from phase start: after n calls, Σ of n gaps.
  std::int64_t next_gap_ns();
  base::Duration due_offset() const { return {offset_ns_}; }
  // The reference's own accumulation, in seconds.
  double offset_s() const { return offset_s_; }

 private:
  double rate_per_ns_;
  base::Mt19937 random_;
  std::int64_t offset_ns_ = 0;
  double offset_s_ = 0.0;
};

}  // namespace tutti::plan
