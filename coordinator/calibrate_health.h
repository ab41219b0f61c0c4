#pragma once

// What the agents told of their health in the window of one step of `tutti calibrate`. Pure; no
// owner. Agents run on this host, so window and intervals are on one clock.

#include <cstdint>
#include <vector>

#include "common/base/time.h"
#include "common/wire/health.h"

namespace tutti {

struct HealthNote {
  std::uint64_t agent = 0;  // any number that tells agents apart
  wire::Health health;
};

struct HealthSeen {
  // Busiest thread of any agent, 0…1 of a core: per agent the mean of its intervals, weighted by
  // how much of each lies in the window.
  double cpu_busiest = 0;
  base::Duration read_lag_p99{};  // worst interval of those with at least half in the window
  std::uint64_t records_lost = 0;
  // Agents whose intervals cover at least half the window. Of the others too little is known.
  std::uint32_t agents = 0;
};

// From all of a step's notes, in any order: an interval is told after its end, so what lies in the
// window may come after it. A note that closes no interval tells of lost records only.
HealthSeen health_in(const std::vector<HealthNote>& notes, base::Instant from, base::Instant to);

}  // namespace tutti
