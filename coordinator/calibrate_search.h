#pragma once

// The reasoning of `tutti calibrate`: which load to try next, whether a load was driven honestly,
// and how a config's load stands against what was measured. Pure; no owner.

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/time.h"

namespace tutti {

// The highest load that holds, by growing until one does not, then by halving the gap in ratio.
class LoadSearch {
 public:
  struct Range {
    double first = 1;
    double most = 1;          // never asked for more
    double precision = 1.15;  // done when what fell short is within this ratio of what held
  };
  explicit LoadSearch(Range range) : range_(range), next_(range.first) {}

  // Nothing: no more to be learnt.
  std::optional<double> next() const { return next_; }
  // Outcome of next(). `used` is the share of the scarcest limit that a load which held took (CPU
  // of the busiest thread over its limit; 0: not known): it says how far to leap.
  void tell(bool held, double used);

  double best() const { return best_; }  // 0: nothing held
  std::optional<double> fell_short() const { return fell_short_; }
  bool reached_most() const { return best_ >= range_.most; }

 private:
  Range range_;
  std::optional<double> next_;
  double best_ = 0;
  std::optional<double> fell_short_;
};

// What one step showed in its window.
struct StepSeen {
  std::uint64_t queries = 0;  // ended in the whole step
  std::uint64_t failed = 0;
  std::uint64_t lost = 0;      // records that never came
  std::string failure;         // the first one's words
  double offered_per_s = 0;    // events the step stood for
  double achieved_per_s = 0;   // events seen
  double in_flight_share = 1;  // mean in flight over the target; 1 where there is no target
  base::Duration lag_p99{};    // issued − due
  double cpu_busiest = 0;      // 0…1, mean of the busiest thread of any agent
  base::Duration read_lag_p99{};
  std::uint32_t agents_silent = 0;  // told too little of their health in the window
};

// The client-health limits of the verdict, and two that keep a bottleneck elsewhere apart.
struct StepLimits {
  base::Duration lag_p99_max = base::Duration::millis(1);
  double cpu_busiest_max = 0.8;
  double achieved_share_min = 0.95;
  double in_flight_share_min = 0.999;
};

// Why the step was not driven honestly, in words with both numbers; empty: it was.
std::string shortfall(const StepSeen& seen, const StepLimits& limits);

// What a config asks of all agents together; nothing where that cannot be told.
struct Expected {
  std::optional<double> events_per_s;    // content events of streams
  std::optional<double> requests_per_s;  // without streaming
  std::optional<double> streams;         // held at once
};
struct Capacity {
  double best = 0;        // 0: nothing was driven honestly
  bool at_least = false;  // the search ended before it met a limit
};
struct Measured {  // of all calibrated agents together
  Capacity events_per_s;
  Capacity requests_per_s;
  Capacity streams;
  std::uint32_t agents = 1;
};
struct HeadRoom {
  double factor = 0;      // capacity over load, the least of those that apply
  bool at_least = false;  // that capacity is only known to be no smaller
  std::string by;         // which one that is
  std::string untold;     // of what nothing was measured: no factor can be told; empty: it can
};
// Capacity per agent × `agents` over what is expected. Nothing when nothing is expected.
std::optional<HeadRoom> head_room(const Measured& measured, const Expected& expected,
                                  std::uint32_t agents);

}  // namespace tutti
