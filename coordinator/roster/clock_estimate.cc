#include "coordinator/roster/clock_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/check.h"

namespace tutti::roster {
namespace {

using base::Duration;
using base::Instant;

Duration drifted(double rate, Duration time) {
  return Duration::nanos(std::llround(rate * static_cast<double>(time.ns)));
}

Duration apart(Instant a, Instant b) { return a < b ? b - a : a - b; }

}  // namespace

// The agent read its clock between our two stamps, so with o = agent − coordinator
//   agent_sent − coordinator_received ≤ o ≤ agent_received − coordinator_sent,
// an interval of width rtt = (received − sent) − (agent's own time).
bool ClockEstimate::add(const ClockExchange& exchange) {
  const Duration whole = exchange.coordinator_received - exchange.coordinator_sent;
  const Duration inside = exchange.agent_sent - exchange.agent_received;
  const Duration rtt = whole - inside;
  if (whole.ns < 0 || inside.ns < 0 || rtt.ns < 0) {
    return false;
  }
  const Duration high = exchange.agent_received - exchange.coordinator_sent;
  const Duration low = exchange.agent_sent - exchange.coordinator_received;
  Point point;
  point.at = exchange.coordinator_sent + Duration::nanos(whole.ns / 2);
  point.offset = Duration::nanos(low.ns + (high.ns - low.ns) / 2);
  // Rounding, and the drift within the exchange itself.
  point.half = Duration::nanos(rtt.ns / 2 + 1) + drifted(kDriftMax, whole);

  const auto later = std::upper_bound(points_.begin(), points_.end(), point.at,
                                      [](Instant at, const Point& p) { return at < p.at; });
  points_.insert(later, point);
  rtt_min_ = exchanges_ == 0 ? rtt : std::min(rtt_min_, rtt);
  rtt_recent_ = exchanges_ == 0 ? rtt : rtt_recent_ + Duration{(rtt.ns - rtt_recent_.ns) / 8};
  ++exchanges_;
  if (points_.size() > kPointsMax) {
    thin();
  }
  measure_drift();
  return true;
}

// Of all points within one stretch the narrowest stays; equal stretches keep the run covered from
// end to end.
void ClockEstimate::thin() {
  const Duration span = points_.back().at - points_.front().at;
  const Duration stretch = Duration::nanos(span.ns / static_cast<std::int64_t>(kPointsMax / 2) + 1);
  std::vector<Point> kept;
  kept.reserve(kPointsMax + 1);
  std::int64_t last = -1;
  for (const Point& point : points_) {
    const std::int64_t number = (point.at - points_.front().at).ns / stretch.ns;
    if (number != last) {
      kept.push_back(point);
      last = number;
    } else if (point.half < kept.back().half) {
      kept.back() = point;
    }
  }
  points_ = std::move(kept);
}

const ClockEstimate::Point& ClockEstimate::narrowest(std::size_t first, std::size_t last) const {
  std::size_t best = first;
  for (std::size_t i = first + 1; i < last; ++i) {
    if (points_[i].half < points_[best].half) {
      best = i;
    }
  }
  return points_[best];
}

// Slope between the best exchange of the first third and the best of the last third; two intervals
// of half widths h₁, h₂ at distance t bound the slope to ± (h₁ + h₂) / t.
void ClockEstimate::measure_drift() {
  drift_ = 0;
  drift_error_ = kDriftMax;
  if (points_.size() < 3) {
    return;
  }
  const std::size_t third = points_.size() / 3;
  const Point& early = narrowest(0, third);
  const Point& late = narrowest(points_.size() - third, points_.size());
  const Duration between = late.at - early.at;
  if (between.ns <= 0) {
    return;
  }
  const double span = static_cast<double>(between.ns);
  const double error = static_cast<double>((early.half + late.half).ns) / span;
  if (error >= kDriftMax) {
    return;
  }
  drift_ = static_cast<double>((late.offset - early.offset).ns) / span;
  drift_error_ = std::max(error, kDriftErrorMin);
}

ClockOffset ClockEstimate::offset_at(Instant coordinator) const {
  TUTTI_CHECK(!points_.empty());
  const Point* best = nullptr;
  Duration best_error{};
  for (const Point& point : points_) {
    const Duration error = point.half + drifted(drift_error_, apart(point.at, coordinator));
    if (best == nullptr || error < best_error) {
      best = &point;
      best_error = error;
    }
  }
  return ClockOffset{best->offset + drifted(drift_, coordinator - best->at), best_error};
}

Instant ClockEstimate::to_agent(Instant coordinator) const {
  return coordinator + offset_at(coordinator).value;
}

// o changes by at most kDriftMax of the time between the two guesses, so the second is exact to a
// few nanoseconds unless the clocks are hours apart; the third settles those.
Instant ClockEstimate::to_coordinator(Instant agent) const {
  TUTTI_CHECK(!points_.empty());
  Instant guess = agent - points_.back().offset;
  for (int i = 0; i < 2; ++i) {
    guess = agent - offset_at(guess).value;
  }
  return guess;
}

}  // namespace tutti::roster
