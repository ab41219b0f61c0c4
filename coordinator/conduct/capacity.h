#pragma once

// Capacity: can these agents hold this load? Shares every phase's slots over the agents and checks
// each share against what the agent said of its host: open files, and ephemeral ports and memory,
// which agents of one host share. Slots that nobody asked for are chosen so that they fit. Done
// before anything is sent; what fits and what cannot be held are both said with the arithmetic.
// Pure; no owner.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/conduct/run_plan.h"
#include "coordinator/roster/roster.h"

namespace tutti::conduct {

struct AgentShare {
  std::vector<std::uint32_t> slots;  // by phase
  std::uint32_t slots_max = 0;
  std::uint32_t slots_asked = 0;      // of slots_max; the rest was chosen here
  std::uint32_t connections_max = 0;  // 0: one frontend, so one for each slot is the most
  std::uint32_t connections_warm = 0;
  std::uint32_t connections_used = 0;  // the most in use at once, idle ones apart
  std::vector<std::string> source_addresses;
};

struct Capacity {
  std::vector<AgentShare> shares;     // in the order of `agents`
  std::vector<std::string> problems;  // empty: the load fits
  std::vector<std::string> budget;    // what it takes of what is there, for people
  std::vector<std::string> warnings;  // settings that are held only in part
  double used_percent = 0;   // the most taken of any agent's files or any host's ports or memory
  double asked_percent = 0;  // likewise, without the slots chosen here
};

// What the console says of it: every line when what was asked for takes more than half of
// something, else one line for all. Nothing if the agents said nothing of their hosts.
std::vector<std::string> spoken_budget(const Capacity& capacity);
inline constexpr double kSpokenPercent = 50;

// Files an agent keeps for itself: logs, spool, epoll, timers, its link.
inline constexpr std::uint64_t kFilesKept = 64;
inline constexpr std::uint64_t kFilesKeptPerWorker = 16;
// The most one agent is given in a phase without a closed loop unless in_flight_max asks for more.
inline constexpr std::uint32_t kOpenSlotsMax = 16'384;
// The rest is for ports in TIME_WAIT, for uneven frontends, and for what else the host does.
inline constexpr double kChosenPart = 0.9;

// `agents` in name order, at least one. A closed loop's C is split exactly (plan::split_slots).
// Phases without one get in_flight_max split likewise, or as much as each agent can hold: at most
// kOpenSlotsMax, its open files, and its even part of kChosenPart of its host's ports and memory.
Capacity share_capacity(const RunPlan& plan, const std::vector<const roster::Agent*>& agents);

}  // namespace tutti::conduct
