#pragma once

// Capacity: can these agents hold this load? Shares every phase's slots over the agents and checks
// each share against what the agent said of its host: open files, and ephemeral ports and memory,
// which agents of one host share. Done before anything is sent; what fits and what cannot be held
// are both said with the arithmetic. Pure; no owner.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/conduct/run_plan.h"
#include "coordinator/roster/roster.h"

namespace tutti::conduct {

struct AgentShare {
  std::vector<std::uint32_t> slots;  // by phase
  std::uint32_t slots_max = 0;
  std::uint32_t connections_max = 0;  // 0: as many as slots, and as many again kept idle
  std::uint32_t connections_warm = 0;
  std::vector<std::string> source_addresses;
};

struct Capacity {
  std::vector<AgentShare> shares;     // in the order of `agents`
  std::vector<std::string> problems;  // empty: the load fits
  std::vector<std::string> budget;    // what it takes of what is there, for people
};

// Files an agent keeps for itself: logs, spool, epoll, timers, its link.
inline constexpr std::uint64_t kFilesKept = 64;
inline constexpr std::uint64_t kFilesKeptPerWorker = 16;
// The most one agent is given in a phase without a closed loop unless in_flight_max asks for more.
inline constexpr std::uint32_t kOpenSlotsMax = 16'384;

// `agents` in name order, at least one. A closed loop's C is split exactly (plan::split_slots).
// Phases without one get in_flight_max split likewise, or as much as each agent can hold.
Capacity share_capacity(const RunPlan& plan, const std::vector<const roster::Agent*>& agents);

}  // namespace tutti::conduct
