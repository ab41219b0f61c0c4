#pragma once

// RunPlan: everything a run needs to know before its first agent says hello. Made once by the host
// from the checked config and never changed. Durations of 0 mean "no limit" where the comment says
// so, and nowhere else.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/id.h"
#include "common/base/result.h"
#include "common/base/time.h"
#include "common/plan/schedule.h"
#include "common/wire/messages.h"

namespace tutti::conduct {

struct RunPhase {
  std::string name;  // "warmup", "performance", or the accuracy data set's name
  plan::PhaseSpec schedule{};
  base::Duration issue_cap{};      // stop issuing after this long, then drain; 0: no cap
  base::Duration drain_timeout{};  // from the end of issuing; expiry ends the run; 0: no limit
  // Of trajectories: issuing stops when one is over and none is left to begin.
  bool ends_with_first_user = false;
};

struct Timeouts {
  base::Duration gather = base::Duration::seconds(60);    // until every agent has joined
  base::Duration prepare = base::Duration::seconds(300);  // bodies shipped, connections open
  base::Duration clock = base::Duration::seconds(10);     // for enough ping exchanges before arming
  base::Duration answer = base::Duration::seconds(10);    // Armed, Recalled, Drained when due
  base::Duration grace = base::Duration::seconds(30);     // from an asked stop to the abort
  base::Duration abort = base::Duration::seconds(10);     // from the abort to giving up on agents
  base::Duration arm_lead = base::Duration::millis(300);  // ArmPhase to phase start, at least
  base::Duration response_idle{};  // no reply at all for this long ends the run; 0: off
  base::Duration run{};            // the whole run, from its first event; 0: no limit
};

// What losing an agent in a phase does. kContinue: the others go on, each with the slots it had.
enum class AgentLoss : std::uint8_t { kStop, kContinue };

// Facts of the rendered body set (data::BodySet).
struct BodyFacts {
  std::string hash;
  std::uint64_t bytes = 0;
  std::uint32_t rows = 0;
};

// Who counts the tokens of replies: kAuto decides by the agents' hosts (counting_place.h).
enum class CountingWhere : std::uint8_t { kCoordinator, kAgents, kAuto };

struct CountingPlan {
  CountingWhere where = CountingWhere::kCoordinator;
  wire::ReplyCounting terms{};  // for the agents; not wanted(): no tokenizer counts
};

struct RunPlan {
  base::Id run{};
  std::vector<RunPhase> phases;
  std::uint32_t agents_expected = 1;

  // Commands queued at an agent beyond its slots: −1 follows what is measured (prefetch.h), 0 is
  // one command for one free slot, n > 0 is always n.
  std::int64_t prefetch = -1;
  base::Duration heartbeat = base::Duration::millis(500);
  base::Duration lost_after = base::Duration::millis(2500);
  AgentLoss on_agent_loss = AgentLoss::kStop;
  base::Duration clock_error_max = base::Duration::millis(10);

  CountingPlan counting{};

  std::string note;  // report::run_note(): kept by the agents, for tutti report --from-spools

  // Same for every agent, except that connections_max and connections_warm come from below.
  wire::TargetSpec target{};
  BodyFacts bodies{};
  // Queries in flight over all agents in phases without a closed loop; 0: what the agents can hold.
  std::uint32_t in_flight_max = 0;
  // Over all agents: 0 means as many as there are slots.
  std::uint32_t connections_max = 0;
  // Opened before the first phase, over all agents: −1 means one for each slot of that phase.
  std::int64_t connections_warm = -1;

  Timeouts timeouts{};
};

inline constexpr std::uint32_t kAgentsMax = 1024;
inline constexpr std::size_t kPhasesMax = 64;
inline constexpr std::int64_t kPrefetchMax = 8192;

// What is wrong with `plan`, all of it.
base::Problems check(const RunPlan& plan);

}  // namespace tutti::conduct
