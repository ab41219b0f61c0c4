#pragma once

// RunHost: the hands of the coordinator. Turns sockets, signals, child processes and time into
// events of a RunMachine and performs its commands; feeds every batch to the ledger first. It
// decides nothing about the run. Main thread only; blocks until the run has ended.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/data/body_set.h"
#include "common/sys/signals.h"
#include "coordinator/conduct/local_agents.h"
#include "coordinator/conduct/peers.h"
#include "coordinator/conduct/run_machine.h"
#include "coordinator/console/live_view.h"
#include "coordinator/console/terminal.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/run_facts.h"

namespace tutti::conduct {

// What an agent said of itself, and when it came here.
struct ProgressSeen {
  AgentKey agent = 0;
  base::Instant at{};
  wire::Progress progress;
};
// Called when a phase starts, before its first query, and every few seconds while it lasts: the
// phase and its records so far, failures included. On the main thread; must not throw.
using PhaseWatch = std::function<void(const report::PhaseFacts& phase, std::uint64_t stored,
                                      std::uint64_t failed)>;

struct HostSettings {
  RunPlan plan;
  std::string folder;  // the run folder; exists
  const data::BodySet* bodies = nullptr;
  std::string_view model;              // packed, for agents that count; outlives the run
  std::vector<std::string> frontends;  // for the live view, without secrets
  std::vector<std::string> dial;
  std::optional<std::string> listen;
  std::uint32_t local_agents = 0;
  std::uint32_t workers = 0;            // of local agents; 0: their default
  std::optional<wire::KeyPair> keys;    // for agents over tcp …
  std::vector<std::string> agent_keys;  // … and theirs
  bool insecure = false;
  bool show_progress = true;
  std::vector<ProgressSeen>* progress_log = nullptr;  // appended to when given; outlives the run
  std::optional<std::string> rendezvous;              // file that tells agents where `listen` is
  PhaseWatch watch;
};

// What is known when the run is over; `ledger` holds the records, clocks set.
struct RunOutcome {
  Outcome outcome;
  std::vector<report::PhaseFacts> phases;
  std::vector<report::AgentFacts> agents;
  base::Instant started_at{};
  base::Instant ended_at{};
  std::int64_t started_wall_ns = 0;
  bool interrupted_by_user = false;
  std::vector<std::string> budget;  // RunMachine::budget()
  ledger::Ledger ledger;
};

// kSetup when the run could not begin at all (an endpoint that cannot be bound, no agent binary).
base::Result<RunOutcome> conduct_run(HostSettings settings, const base::Clock& clock,
                                     sys::StopSignals& signals);

}  // namespace tutti::conduct
