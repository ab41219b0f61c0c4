#include "coordinator/conduct/prefetch.h"

#include <algorithm>
#include <cmath>

#include "coordinator/conduct/run_plan.h"

namespace tutti::conduct {

using base::Duration;
using base::Instant;

void Prefetch::completed(std::uint64_t queries, Instant now) {
  const std::int64_t window = window_of(now);
  constexpr auto kCells = static_cast<std::int64_t>(kWindows);
  if (!measured_ || window - newest_ >= kCells) {
    cells_.fill(0);
    newest_ = window;
    measured_ = true;
  }
  while (newest_ < window) {
    ++newest_;
    cells_[static_cast<std::size_t>(newest_ % kCells)] = 0;
  }
  cells_[static_cast<std::size_t>(newest_ % kCells)] += queries;
}

double Prefetch::rate(Instant now) const {
  constexpr auto kCells = static_cast<std::int64_t>(kWindows);
  if (!measured_ || window_of(now) - newest_ >= kCells) {
    return 0;
  }
  const std::uint64_t best = *std::max_element(cells_.begin(), cells_.end());
  return static_cast<double>(best) / kWindow.to_seconds();
}

std::uint64_t Prefetch::depth(Duration delay, Instant now) const {
  if (setting_ >= 0) {
    return static_cast<std::uint64_t>(std::min(setting_, kPrefetchMax));
  }
  if (slots_ == 0) {
    return 0;
  }
  if (!measured_) {
    return std::clamp<std::uint64_t>(slots_, kDepthMin, kUnmeasuredMax);
  }
  const double wanted = std::ceil(2.0 * rate(now) * delay.to_seconds());
  const double most = static_cast<double>(kPrefetchMax);
  return std::max(kDepthMin, static_cast<std::uint64_t>(std::clamp(wanted, 0.0, most)));
}

std::uint64_t Prefetch::lot(Duration delay, Instant now) const {
  return setting_ >= 0 || !measured_ ? 0 : depth(delay, now);
}

}  // namespace tutti::conduct
