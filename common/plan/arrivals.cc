#include "common/plan/arrivals.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace tutti::plan {

PoissonArrivals::PoissonArrivals(double target_qps, std::uint64_t seed, std::uint64_t gaps_before)
    : rate_per_ns_(target_qps / 1e9), random_(seed) {
  TUTTI_CHECK(std::isfinite(target_qps) && target_qps > 0.0);
  for (std::uint64_t i = 0; i < gaps_before; ++i) {
    random_.next_double();
  }
}

std::int64_t PoissonArrivals::next_gap_ns() {
  const double drawn = random_.exponential(rate_per_ns_);
  // The comparison also catches +inf (a rate so small that the quotient overflows).
  const std::int64_t gap = drawn >= static_cast<double>(kOffsetMaxNs)
                               ? kOffsetMaxNs
                               : std::max<std::int64_t>(1, static_cast<std::int64_t>(drawn));
  offset_ns_ = gap > kOffsetMaxNs - offset_ns_ ? kOffsetMaxNs : offset_ns_ + gap;
  offset_s_ += static_cast<double>(gap) / 1e9;
  return gap;
}

}  // namespace tutti::plan
