#pragma once

// Budget: what a load takes of each host (ports, files, memory) against what its agents said they
// have, as sentences with the arithmetic: one for what fits, one with a remedy for what does not.
// Also which source addresses each agent uses. Part of capacity.h; pure, no owner.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/conduct/capacity.h"

namespace tutti::conduct {

// Distinct HOST:PORT among the run's frontends, with the largest part of a host's connections that
// one of them gets: ports are counted per such destination.
struct Destinations {
  struct One {
    std::string authority;
    double part = 0;
    bool literal_v4 = false;
    bool literal_v6 = false;
  };
  std::vector<One> all;
  double part_max() const;
};
Destinations destinations_of(const wire::TargetSpec& target);

// Fills source_addresses of every share: the agent's own choice, else those of the run that are its
// host's. Names addresses that are nobody's, agents that have none, frontends out of reach.
void share_sources(const RunPlan& plan, const std::vector<const roster::Agent*>& agents,
                   Capacity& out);

void check_ports(const RunPlan& plan, const std::vector<const roster::Agent*>& agents,
                 Capacity& out);
void check_memory(const RunPlan& plan, const std::vector<const roster::Agent*>& agents,
                  Capacity& out);

// Memory of one open stream on each way, user space and kernel: measured by tests/bench at 4,000
// streams with a reply under way, and rounded up. Of an agent beside its streams: rings, queues.
inline constexpr std::uint64_t kStreamBytesDirect = std::uint64_t{16} << 10;
inline constexpr std::uint64_t kStreamBytesMulti = std::uint64_t{32} << 10;
inline constexpr std::uint64_t kAgentBytes = std::uint64_t{64} << 20;

// "a", "a and b", "a, b and 3 more".
std::string names_text(const std::vector<std::string>& names);

}  // namespace tutti::conduct
