#include "coordinator/calibrate_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr double kLeapMin = 1.3;
constexpr double kLeapMax = 8;
constexpr double kLeapUnknown = 2;
constexpr double kShareAimedAt = 0.95;  // of the limit: past it lies the first failure
constexpr double kSmallest = 1.0 / 64;  // of the first load: below it nothing holds

}  // namespace

void LoadSearch::tell(bool held, double used) {
  const double load = *next_;
  if (held) {
    best_ = std::max(best_, load);
  } else {
    fell_short_ = fell_short_ ? std::min(*fell_short_, load) : load;
  }
  next_.reset();
  if (best_ == 0) {
    if (load > range_.first * kSmallest && load > 1) {
      next_ = std::max(1.0, load / 4);
    }
    return;
  }
  if (!fell_short_) {
    const double leap =
        used > 0 ? std::clamp(kShareAimedAt / used, kLeapMin, kLeapMax) : kLeapUnknown;
    if (best_ < range_.most) {
      next_ = std::min(range_.most, best_ * leap);
    }
    return;
  }
  if (*fell_short_ > best_ * range_.precision && *fell_short_ - best_ >= 2) {
    next_ = std::sqrt(best_ * *fell_short_);
  }
}

std::string shortfall(const StepSeen& seen, const StepLimits& limits) {
  if (seen.failed > 0) {
    return fmt::format("{} of {} queries failed: {}", seen.failed, seen.queries, seen.failure);
  }
  if (seen.lost > 0) {
    return fmt::format("{} records were lost", seen.lost);
  }
  if (seen.agents_silent > 0) {
    return fmt::format("{} agents told nothing of their health", seen.agents_silent);
  }
  if (seen.cpu_busiest > limits.cpu_busiest_max) {
    return fmt::format("the busiest agent thread used {:.2f} of a core, the limit is {:.2f}",
                       seen.cpu_busiest, limits.cpu_busiest_max);
  }
  if (seen.lag_p99 > limits.lag_p99_max) {
    return fmt::format("issued − due had a p99 of {:.3f} ms, the limit is {:.3f} ms",
                       seen.lag_p99.to_seconds() * 1e3, limits.lag_p99_max.to_seconds() * 1e3);
  }
  if (seen.in_flight_share < limits.in_flight_share_min) {
    return fmt::format("in flight was {:.2f} % of the target, the limit is {:.2f} %",
                       seen.in_flight_share * 100, limits.in_flight_share_min * 100);
  }
  if (seen.achieved_per_s < seen.offered_per_s * limits.achieved_share_min) {
    return fmt::format(
        "{:.0f} of {:.0f} events/s came about: client and null server share this host, and it had "
        "no more to give",
        seen.achieved_per_s, seen.offered_per_s);
  }
  return {};
}

std::optional<HeadRoom> head_room(const Measured& measured, const Expected& expected,
                                  std::uint32_t agents) {
  std::optional<HeadRoom> least;
  const double scale = static_cast<double>(agents) / std::max(1U, measured.agents);
  std::string untold;
  const auto consider = [&](std::optional<double> load, const Capacity& capacity,
                            const char* what) {
    if (!load || *load <= 0) {
      return;
    }
    if (capacity.best <= 0) {
      untold += fmt::format("{}{}", untold.empty() ? "" : ", ", what);
    }
    const double most = capacity.best * scale;
    if (!least || most / *load < least->factor) {
      least = HeadRoom{most / *load,
                       capacity.at_least,
                       fmt::format("{}: {:.0f} of {}{:.0f}", what, *load,
                                   capacity.at_least ? "at least " : "", most),
                       {}};
    }
  };
  consider(expected.events_per_s, measured.events_per_s, "stream events/s");
  consider(expected.requests_per_s, measured.requests_per_s, "requests/s");
  consider(expected.streams, measured.streams, "streams held");
  if (!untold.empty()) {
    return HeadRoom{0, false, {}, untold};
  }
  return least;
}

}  // namespace tutti
