#include "coordinator/roster/clock_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/check.h"

namespace tutti::roster {
namespace {

using base::Duration;
using base::Instant;

constexpr int kDoublingsMax = 64;
constexpr double kMovedMax = 1e18;  // 31 years in ns: room to add two of them

Duration apart(Instant a, Instant b) { return a < b ? b - a : a - b; }

Duration half(Duration d) { return Duration::nanos(d.ns / 2); }

// An offset known within [low, high]; bounds that cross (an agent whose stamps contradict one
// another at one instant) give everything between them.
ClockOffset within(Duration low, Duration high) {
  if (high < low) {
    std::swap(low, high);
  }
  return ClockOffset{low + half(high - low), Duration::nanos((high - low).ns / 2 + 1)};
}

}  // namespace

// How far the offset can have moved within `time`, rounded up.
Duration ClockEstimate::moved(Duration time) const {
  return Duration::nanos(static_cast<std::int64_t>(
      std::ceil(std::min(rate_max_ * static_cast<double>(time.ns), kMovedMax))));
}

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
  Point point;
  point.at = exchange.coordinator_sent + half(whole);
  // Drift within the exchange itself, and rounding.
  const Duration margin = moved(whole) + Duration::nanos(1);
  point.seen_low = point.low = exchange.agent_sent - exchange.coordinator_received - margin;
  point.seen_high = point.high = exchange.agent_received - exchange.coordinator_sent + margin;

  const auto later = std::upper_bound(points_.begin(), points_.end(), point.at,
                                      [](Instant at, const Point& p) { return at < p.at; });
  const auto place = static_cast<std::size_t>(later - points_.begin());
  points_.insert(later, point);
  rtt_min_ = exchanges_ == 0 ? rtt : std::min(rtt_min_, rtt);
  if (exchanges_ > 0) {
    const std::int64_t off = std::llabs((rtt - rtt_recent_).ns);
    rtt_spread_ = rtt_spread_ + Duration{(off - rtt_spread_.ns) / 4};
  }
  rtt_recent_ = exchanges_ == 0 ? rtt : rtt_recent_ + Duration{(rtt.ns - rtt_recent_.ns) / 8};
  ++exchanges_;
  bool agree = settle(place);
  for (int i = 0; i < kDoublingsMax && !agree; ++i) {
    rate_max_ *= 2;
    agree = settle_all();
  }
  if (points_.size() > kPointsMax) {
    thin();
  }
  return true;
}

// True when it became narrower.
bool ClockEstimate::narrow(Point& point, const Point& by) const {
  const Duration most = moved(apart(point.at, by.at));
  const Duration low = std::max(point.low, by.low - most);
  const Duration high = std::min(point.high, by.high + most);
  const bool narrower = low != point.low || high != point.high;
  point.low = low;
  point.high = high;
  return narrower;
}

// A new point, and what it says about the others. Neighbours know what all beyond them know, so it
// goes on from neighbour to neighbour and ends where nothing new is said. False: no offset agrees
// with all of them at this rate.
bool ClockEstimate::settle(std::size_t from) {
  if (from > 0) {
    narrow(points_[from], points_[from - 1]);
  }
  if (from + 1 < points_.size()) {
    narrow(points_[from], points_[from + 1]);
  }
  bool agree = points_[from].low <= points_[from].high;
  for (std::size_t i = from; i > 0 && narrow(points_[i - 1], points_[i]); --i) {
    agree = agree && points_[i - 1].low <= points_[i - 1].high;
  }
  for (std::size_t i = from + 1; i < points_.size() && narrow(points_[i], points_[i - 1]); ++i) {
    agree = agree && points_[i].low <= points_[i].high;
  }
  return agree;
}

bool ClockEstimate::settle_all() {
  for (Point& point : points_) {
    point.low = point.seen_low;
    point.high = point.seen_high;
  }
  for (std::size_t i = 1; i < points_.size(); ++i) {
    narrow(points_[i], points_[i - 1]);
  }
  for (std::size_t i = points_.size() - 1; i > 0; --i) {
    narrow(points_[i - 1], points_[i]);
  }
  return std::all_of(points_.begin(), points_.end(),
                     [](const Point& point) { return point.low <= point.high; });
}

// Of all points within one stretch the one that saw most stays, with what it saw alone: what its
// neighbours taught it rests on a rate that a later exchange may prove wrong. Equal stretches keep
// the run covered from end to end; the first and the newest stay too.
void ClockEstimate::thin() {
  const Duration span = points_.back().at - points_.front().at;
  const Duration stretch = Duration::nanos(span.ns / static_cast<std::int64_t>(kPointsMax / 2) + 1);
  const Instant first = points_.front().at;
  const auto width = [](const Point& point) { return point.seen_high - point.seen_low; };
  std::vector<Point> kept{points_.front()};
  kept.reserve(kPointsMax + 1);
  std::int64_t last = -1;
  for (std::size_t i = 1; i + 1 < points_.size(); ++i) {
    const std::int64_t number = (points_[i].at - first).ns / stretch.ns;
    if (number != last) {
      kept.push_back(points_[i]);
      last = number;
    } else if (width(points_[i]) < width(kept.back())) {
      kept.back() = points_[i];
    }
  }
  kept.push_back(points_.back());
  points_ = std::move(kept);
  settle_all();  // they agreed with more beside them
}

// Two offsets known within ± e₁, ± e₂ at distance t bound the slope between them to
// ± (e₁ + e₂) / t.
double ClockEstimate::drift() const {
  if (points_.size() < 2 || drift_error() >= rate_max_) {
    return 0;
  }
  const Point& first = points_.front();
  const Point& last = points_.back();
  const ClockOffset early = within(first.low, first.high);
  const ClockOffset late = within(last.low, last.high);
  return static_cast<double>((late.value - early.value).ns) /
         static_cast<double>((last.at - first.at).ns);
}

double ClockEstimate::drift_error() const {
  if (points_.size() < 2 || points_.front().at == points_.back().at) {
    return rate_max_;
  }
  const Point& first = points_.front();
  const Point& last = points_.back();
  const Duration both = within(first.low, first.high).error + within(last.low, last.high).error;
  return std::min(rate_max_,
                  static_cast<double>(both.ns) / static_cast<double>((last.at - first.at).ns));
}

ClockOffset ClockEstimate::offset_at(Instant coordinator) const {
  TUTTI_CHECK(!points_.empty());
  const auto right = std::upper_bound(points_.begin(), points_.end(), coordinator,
                                      [](Instant at, const Point& p) { return at < p.at; });
  const Point& near = right == points_.begin() ? *right : *(right - 1);
  Point here = near;
  here.at = coordinator;
  const Duration most = moved(apart(coordinator, near.at));
  here.low = near.low - most;
  here.high = near.high + most;
  if (right != points_.end()) {
    narrow(here, *right);
  }
  return within(here.low, here.high);
}

Instant ClockEstimate::to_agent(Instant coordinator) const {
  return coordinator + offset_at(coordinator).value;
}

// o changes by at most rate_max() of the time between the two guesses, so the second is exact to a
// few nanoseconds unless the clocks are hours apart; the third settles those.
Instant ClockEstimate::to_coordinator(Instant agent) const {
  TUTTI_CHECK(!points_.empty());
  Instant guess = agent - points_.back().low;
  for (int i = 0; i < 3; ++i) {
    guess = agent - offset_at(guess).value;
  }
  return guess;
}

}  // namespace tutti::roster
