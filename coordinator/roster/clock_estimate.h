#pragma once

// ClockEstimate: how far one agent's monotonic clock is from the coordinator's, with a bound that
// holds. Each ping exchange gives an interval that contains the true offset, however unequal the
// two ways are. Between exchanges the offset moves by at most rate_max() of the time, however the
// clocks are being slewed; so every exchange narrows what is known around it, and the bound is what
// all of them leave. Pure arithmetic: no clock, bounded memory. Owned by the coordinator's main
// thread.

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
  // Two hosts may drift apart this fast: kernels slew a clock by at most 500 ppm.
  static constexpr double kDriftMax = 500e-6;
  // An exchange a second for two hours; then twice the time between them, and so on.
  static constexpr std::size_t kPointsMax = 8192;

  // Something known: the offset was within [low, high] at one instant.
  struct Point {
    base::Instant at{};         // coordinator's clock, middle of the exchange
    base::Duration seen_low{};  // by this exchange alone
    base::Duration seen_high{};
    base::Duration low{};  // by all of them
    base::Duration high{};
  };

  // False when the stamps are impossible (a reply before its question): nothing was taken.
  bool add(const ClockExchange& exchange);

  std::size_t exchanges() const { return exchanges_; }
  // The smallest round trip seen, without the agent's own time; 0 before the first exchange.
  base::Duration rtt_min() const { return rtt_min_; }
  // Smoothed over about eight exchanges: what a question costs these days.
  base::Duration rtt_recent() const { return rtt_recent_; }
  // Mean distance of a round trip from that, smoothed over about four.
  base::Duration rtt_spread() const { return rtt_spread_; }
  // Mean over the time seen: relative rate of the agent's clock minus one, and how far it may be
  // off; 0 ± rate_max() until two exchanges say more.
  double drift() const;
  double drift_error() const;
  // kDriftMax, or more when no slower change explains what was seen (a clock that was stepped).
  double rate_max() const { return rate_max_; }

  // At an instant of the coordinator's clock. Needs at least one exchange (TUTTI_CHECK).
  ClockOffset offset_at(base::Instant coordinator) const;
  base::Instant to_agent(base::Instant coordinator) const;
  // To map a record, map one stamp and shift the others by the same amount: their differences are
  // exact and must stay so.
  base::Instant to_coordinator(base::Instant agent) const;

  // By time; what offset_at stands on.
  const std::vector<Point>& points() const { return points_; }

 private:
  base::Duration moved(base::Duration time) const;
  bool narrow(Point& point, const Point& by) const;
  bool settle(std::size_t from);
  bool settle_all();
  void thin();

  std::vector<Point> points_;
  std::size_t exchanges_ = 0;
  base::Duration rtt_min_{};
  base::Duration rtt_recent_{};
  base::Duration rtt_spread_{};
  double rate_max_ = kDriftMax;
};

}  // namespace tutti::roster
