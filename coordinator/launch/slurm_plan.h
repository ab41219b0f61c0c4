#pragma once

// What `tutti slurm` starts: from options and Slurm's variables to the command lines of the
// coordinator's and the agents' steps, or, inside one step for all, of this task. Every place is
// said in full (-N -n --nodelist): variables of an outer step would otherwise decide. Pure.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace tutti::launch {

using Words = std::vector<std::string>;
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// Below the ephemeral ports, and taken by none of the services such jobs run.
inline constexpr std::uint16_t kDefaultPort = 5870;

struct Programs {
  std::string tutti = "tutti";
  std::string agent = "tutti-agent";
};

struct LaunchOptions {
  std::optional<std::string> job;          // none: the allocation we are in
  std::optional<std::string> hosts;        // host list; none: all of the allocation
  std::optional<std::string> agents_on;    // host list; none: all of `hosts`
  std::optional<std::string> coordinator;  // none: the first of `hosts`
  std::uint16_t port = kDefaultPort;       // where the coordinator listens …
  std::optional<std::string> shared;       // … unless they meet through a file in this folder
  std::string keys;  // folder that all hosts see, with coordinator.key and agent.key; empty: none
  bool insecure = false;
  std::uint32_t workers = 0;   // I/O threads of each agent; 0: as the programs choose
  std::uint32_t wait_s = 300;  // how long agents and coordinator look for each other
  std::uint32_t grace_s = 25;  // from the first signal to the kill
  std::string srun = "srun";
  Words srun_words;  // for every srun line, last, so that they win
  Words benchmark;   // "benchmark …"
};

struct Launch {
  std::string coordinator_host;
  std::vector<std::string> agent_hosts;  // the coordinator's own included when it has an agent
  Words coordinator_line;
  Words agents_line;  // empty: the only agent is beside the coordinator
};

// `private_folder`: a folder of this run alone, on `shared`; its file "coordinator" is the
// rendezvous. kUsage or kInput with the remedy.
base::Result<Launch> plan_launch(const LaunchOptions& options, const Environment& environment,
                                 const Programs& programs, const std::string& private_folder);

// The command of one task of a step that runs coordinator and agents together: rank 0 is the
// coordinator with an agent beside it, the others are agents that dial the step's first host.
base::Result<Words> plan_task(const LaunchOptions& options, const Environment& environment,
                              const Programs& programs);

}  // namespace tutti::launch
