#pragma once

// AgentHost: the hands of an agent. Turns the socket, the engine, the disk and signals into events
// of an AgentMachine and performs its commands. It decides nothing about a run. Main thread only;
// blocks.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/sys/signals.h"

namespace tutti::session {

struct AgentSettings {
  std::optional<std::string> connect;  // dial a coordinator here …
  std::optional<std::string> listen;   // … or bind here and wait to be dialled
  std::string name;
  std::uint32_t workers = 1;
  std::vector<std::string> source_addresses;  // instead of the run's; checked by serve()
  std::string cache_folder;
  std::string spool_folder;
  std::string video_folder;      // of raw videos (target/video_folder.h); empty: none
  std::string keys_file;         // our key pair; with it …
  std::string coordinator_file;  // … the coordinator's public key
  bool insecure = false;
  // A batch system that ends a job tells every process at once. In a run, the first SIGTERM leaves
  // the coordinator this long to end it in order; zero leaves at once, and so does its death.
  base::Duration term_grace{};
  base::Duration patience = base::Duration::seconds(60);  // for the coordinator's first word
};

// With `connect`: joins one run and returns when it is over. With `listen`: serves one run after
// another until a signal comes; a run that ends badly is logged and does not end the agent.
base::ExitCode serve(const AgentSettings& settings, const base::Clock& clock,
                     sys::StopSignals& signals);

}  // namespace tutti::session
