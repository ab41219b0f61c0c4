#include "common/stats/percentile.h"

#include "common/base/check.h"

namespace tutti::stats {

std::uint64_t percentile_index(std::uint64_t n, double percentile) {
  TUTTI_CHECK(n > 0 && percentile >= 0.0 && percentile <= 100.0);
  const double fraction = percentile / 100.0;
  return static_cast<std::uint64_t>(fraction * static_cast<double>(n - 1));
}

}  // namespace tutti::stats
