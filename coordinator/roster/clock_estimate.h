#pragma once

// ClockEstimate: how far one agent's monotonic clock is from the coordinator's, with a bound that
// holds. Each ping exchange gives an interval that contains the true offset, however unequal the
// two ways are; the estimate carries the narrowest one to the asked instant along the measured
// drift. Pure arithmetic: no clock, bounded memory. Owned by the coordinator's main thread.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/time.h"

namespace tutti::roster {

// One ping: two stamps of each clock.
struct ClockExchange {
  base::Instant coordinator_sent{};
  base::Instant agent_received{};
  base::Instant agent_sent{};
  base::Instant coordinator_received{};
};

struct ClockOffset {
  base::Duration value{};  // agent − coordinator
  base::Duration error{};  // the true offset is within value ± error
};

class ClockEstimate {
 public:
  // Until two far-apart exchanges bound the drift more tightly, two hosts may drift apart this
  // fast: kernels slew a clock by at most 500 ppm.
  static constexpr double kDriftMax = 500e-6;
  // A drift measured over the whole run says little about its own wander: never trust it further.
  static constexpr double kDriftErrorMin = 10e-6;
  static constexpr std::size_t kPointsMax = 512;

  // False when the stamps are impossible (a reply before its question): nothing was taken.
  bool add(const ClockExchange& exchange);

  std::size_t exchanges() const { return exchanges_; }
  // The smallest round trip seen, without the agent's own time; 0 before the first exchange.
  base::Duration rtt_min() const { return rtt_min_; }
  // Smoothed over about eight exchanges: what a question costs these days.
  base::Duration rtt_recent() const { return rtt_recent_; }
  // Relative rate of the agent's clock minus one, and how far it may be off.
  double drift() const { return drift_; }
  double drift_error() const { return drift_error_; }

  // At an instant of the coordinator's clock. Needs at least one exchange (TUTTI_CHECK).
  ClockOffset offset_at(base::Instant coordinator) const;
  base::Instant to_agent(base::Instant coordinator) const;
  // To map a record, map one stamp and shift the others by the same amount: their differences are
  // exact and must stay so.
  base::Instant to_coordinator(base::Instant agent) const;

 private:
  struct Point {
    base::Instant at{};       // coordinator's clock, middle of the exchange
    base::Duration offset{};  // middle of the interval
    base::Duration half{};    // half its width: rtt / 2
  };

  void thin();
  void measure_drift();
  const Point& narrowest(std::size_t first, std::size_t last) const;

  std::vector<Point> points_;  // by time
  std::size_t exchanges_ = 0;
  base::Duration rtt_min_{};
  base::Duration rtt_recent_{};
  double drift_ = 0;
  double drift_error_ = kDriftMax;
};

}  // namespace tutti::roster
