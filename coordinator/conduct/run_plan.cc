#include "coordinator/conduct/run_plan.h"

#include <fmt/format.h>

namespace tutti::conduct {

base::Problems check(const RunPlan& plan) {
  base::Problems out;
  const auto refuse = [&out](std::string field, std::string value, std::string remedy) {
    out.push_back({"run plan", std::move(field), std::move(value), std::move(remedy)});
  };
  if (plan.phases.empty() || plan.phases.size() > kPhasesMax) {
    refuse("phases", fmt::format("{} phases", plan.phases.size()),
           fmt::format("a run has 1 to {} phases", kPhasesMax));
  }
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    for (base::Problem problem : plan::check(plan.phases[i].schedule)) {
      problem.field = fmt::format("phases[{}].{}", i, problem.field);
      out.push_back(std::move(problem));
    }
    if (plan.phases[i].issue_cap.ns < 0 || plan.phases[i].drain_timeout.ns < 0) {
      refuse(fmt::format("phases[{}]", i), plan.phases[i].name, "durations must not be negative");
    }
  }
  if (plan.agents_expected == 0 || plan.agents_expected > kAgentsMax) {
    refuse("agents_expected", fmt::format("{}", plan.agents_expected),
           fmt::format("must be 1 to {}", kAgentsMax));
  }
  if (plan.prefetch < -1 || plan.prefetch > kPrefetchMax) {
    refuse("prefetch", fmt::format("{}", plan.prefetch),
           fmt::format("must be -1 (measured), 0 (none) or up to {}", kPrefetchMax));
  }
  if (plan.connections_warm < -1 || plan.connections_warm > INT64_C(0xFFFFFFFF)) {
    refuse("connections_warm", fmt::format("{}", plan.connections_warm),
           "must be -1 (one for each slot) or a number of connections");
  }
  if (plan.heartbeat.ns <= 0 || plan.lost_after < plan.heartbeat * 2) {
    refuse("lost_after", fmt::format("{:.3f} s", plan.lost_after.to_seconds()),
           "must be at least two heartbeats, and a heartbeat more than 0");
  }
  if (plan.clock_error_max.ns <= 0) {
    refuse("clock_error_max", fmt::format("{} ns", plan.clock_error_max.ns), "must be more than 0");
  }
  return out;
}

}  // namespace tutti::conduct
