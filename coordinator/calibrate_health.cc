#include "coordinator/calibrate_health.h"

#include <algorithm>
#include <map>

namespace tutti {

HealthSeen health_in(const std::vector<HealthNote>& notes, base::Instant from, base::Instant to) {
  struct Sum {
    double busy_s = 0;
    double covered_s = 0;
  };
  HealthSeen out;
  std::map<std::uint64_t, Sum> by_agent;
  for (const HealthNote& note : notes) {
    const wire::Health& health = note.health;
    out.records_lost = std::max(out.records_lost, health.records_lost);
    if (!health.to.is_set()) {
      continue;
    }
    const double overlap_s = (std::min(health.to, to) - std::max(health.from, from)).to_seconds();
    if (overlap_s <= 0) {
      continue;
    }
    Sum& sum = by_agent[note.agent];
    sum.busy_s += overlap_s * std::max(health.cpu_busiest_worker, health.cpu_session);
    sum.covered_s += overlap_s;
    if (overlap_s * 2 >= (health.to - health.from).to_seconds()) {
      out.read_lag_p99 = std::max(out.read_lag_p99, health.read_lag_p99);
    }
  }
  for (const auto& [agent, sum] : by_agent) {
    out.cpu_busiest = std::max(out.cpu_busiest, sum.busy_s / sum.covered_s);
    out.agents += sum.covered_s * 2 >= (to - from).to_seconds() ? 1U : 0U;
  }
  return out;
}

}  // namespace tutti
