#pragma once

// A Scenario is everything that decides a simulated run; simulate() plays it to the end and reports
// every broken promise. Equal scenarios give equal reports, to the last bit of the trace hash.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/conduct/run_plan.h"
#include "tests/sim/agent_node.h"
#include "tests/sim/coordinator_node.h"
#include "tests/sim/network.h"
#include "tests/sim/planted.h"
#include "tests/sim/witness.h"
#include "tests/sim/world.h"

namespace tutti::sim {

enum class FaultKind : std::uint8_t {
  kStop,
  kWatchdogStop,
  kAgentCrash,
  kAgentSignal,
  kPartition,  // of one agent, healed after `lasts`
  kCoordinatorCrash,
  kAgentFreeze,        // for `lasts`, as SIGSTOP and SIGCONT do
  kCoordinatorFreeze,  // the same
  kCoordinatorSlow,    // for `lasts` it runs a tenth of the time
  kDiskFull,           // the coordinator's: from now on it can store nothing
  kLateAgent,          // one more agent calls, under a name of its own or a taken one
};

struct Fault {
  FaultKind kind = FaultKind::kStop;
  Instant at{};
  std::size_t agent = 0;  // index
  Duration lasts{};
};

struct Scenario {
  std::uint64_t seed = 0;
  conduct::RunPlan plan;
  std::size_t agents = 1;
  std::size_t absent = 0;  // of those expected, how many never come
  NetworkOptions network{};
  EngineOptions engine{};
  CountingOptions counting{};
  double clock_drift_max = 50e-6;
  bool listening = false;
  bool bodies_cached = false;
  std::vector<Fault> faults;
  Planted planted = Planted::kNothing;
  Duration limit = Duration::seconds(600);  // the run and its agents must have ended by then

  // Nothing that happens in it may disturb the run.
  bool quiet() const;
  // Whatever of it ends the run early is a lost agent.
  bool only_agents_fail() const;
};

// A random one.
Scenario draw_scenario(std::uint64_t seed);
// The same world, and its warm-up and performance play conversations.
Scenario draw_conversations(std::uint64_t seed);

struct Report {
  std::vector<std::string> complaints;
  std::uint64_t hash = 0;
  std::uint64_t happened = 0;
  std::string description;
  std::string tail;  // of the trace
  bool finished = false;
  conduct::Outcome outcome;
  std::vector<PhaseTruth> phases;
  std::vector<conduct::PhaseTotals> totals;  // of the phases that ended
  std::uint64_t illegal = 0;                 // events the machines had no use for
  std::uint64_t counts = 0;                  // of tokens, in the ledger
  Duration took{};
};

Report simulate(const Scenario& scenario);
// What was played, which promises were broken, and how it ended: for people.
std::string explain(const Report& report);

// The smallest plan: one closed-loop performance phase.
conduct::RunPlan plain_plan(std::size_t agents, std::uint32_t concurrency, base::Seq total);

}  // namespace tutti::sim
