#include "coordinator/conduct/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "common/base/check.h"

namespace tutti::conduct {
namespace {

using base::Duration;
using base::Instant;
using ledger::ClockKnot;
using ledger::ClockMap;
using roster::ClockEstimate;
using roster::ClockOffset;

ClockKnot knot_at(const ClockEstimate& clock, Instant at) {
  const ClockOffset offset = clock.offset_at(at);
  return ClockKnot{at + offset.value, Duration{-offset.value.ns}, offset.error};
}

// How far the map may be from the truth at an instant of the coordinator's clock.
Duration off_by(const ClockMap& map, const ClockEstimate& clock, Instant at) {
  const ClockOffset offset = clock.offset_at(at);
  const std::int64_t apart = map.shift_at(at + offset.value).ns + offset.value.ns;
  return offset.error + Duration{std::llabs(apart)};
}

// The bound is taken at every exchange and knot. Between two such instants, d apart, the map is
// straight and the offset moves by at most rate_max() of the time: it cannot leave the larger of
// the two bounds by more than rate_max() · d / 2.
Duration bound_of(const ClockMap& map, const ClockEstimate& clock, std::vector<Instant> looks) {
  std::sort(looks.begin(), looks.end());
  Duration worst{};
  Duration before{};
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const Duration here = off_by(map, clock, looks[i]);
    worst = std::max(worst, here);
    if (i > 0) {
      const double gap = static_cast<double>((looks[i] - looks[i - 1]).ns);
      const Duration bow{static_cast<std::int64_t>(std::ceil(clock.rate_max() * gap / 2))};
      worst = std::max(worst, std::max(before, here) + bow);
    }
    before = here;
  }
  return worst;
}

}  // namespace

ClockMap fit_clock(const ClockEstimate& clock, Instant to) {
  TUTTI_CHECK(clock.exchanges() > 0);
  const Instant from = clock.points().front().at;
  const Duration span{std::max<std::int64_t>(1, (to - from).ns)};
  const std::int64_t stretches =
      std::clamp<std::int64_t>(span.ns / 1'000'000'000, 1, kClockStretchesMax);
  ClockMap map;
  map.exchanges = clock.exchanges();
  map.drift = -clock.drift();
  map.drift_error = clock.drift_error();
  std::vector<Instant> looks;
  for (std::int64_t i = 0; i <= stretches; ++i) {
    looks.push_back(from + Duration{span.ns / stretches * i + span.ns % stretches * i / stretches});
    map.knots.push_back(knot_at(clock, looks.back()));
  }
  for (const ClockEstimate::Point& point : clock.points()) {
    if (point.at < from + span) {
      looks.push_back(point.at);
    }
  }
  map.error = bound_of(map, clock, std::move(looks));
  map.offset = Duration{-clock.offset_at(from + Duration{span.ns / 2}).value.ns};
  return map;
}

}  // namespace tutti::conduct
