#pragma once

// Stage: one coordinator and its agents over tcp against one mock, all real processes, for tests
// that kill, freeze and slow them. Each agent has a spool folder of its own. And what such tests
// ask afterwards: who still loads the frontends, what the spools hold. One thread.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {

using SteadyClock = std::chrono::steady_clock;
double seconds_since(SteadyClock::time_point then);
void sleep_until(SteadyClock::time_point then, double seconds);

struct StageSettings {
  std::string name;
  std::size_t agents = 2;
  std::size_t concurrency = 20;
  std::size_t queries = 1'000'000;
  std::vector<std::string> mock = {"--ttft", "20ms", "--gap", "2ms", "--tokens", "8"};
  std::vector<std::string> more = {};  // of the coordinator
  std::size_t absent = 0;              // of the agents, how many are not started here
};

struct RebuiltRun {
  Ran ran;
  nlohmann::json summary;
};
// tutti report --from-spools SPOOLS… --report-dir FOLDER
RebuiltRun rebuild(const std::vector<std::string>& spools, const std::string& folder);

struct Stage {
  explicit Stage(const StageSettings& settings);

  std::unique_ptr<Program> start_agent(const std::string& agent, const std::string& spool_folder);
  std::string spool(std::size_t agent) const;
  std::vector<std::string> spools() const;
  std::size_t spooled_files(std::size_t agent) const;
  // Until so many completions have been answered, or are being served.
  testing::AssertionResult runs(double finished) const;
  testing::AssertionResult serves(double at_once) const;
  // Waits until 10 s after `then`, and sees that nothing is asked of the frontends any more.
  testing::AssertionResult is_quiet_10_s_after(SteadyClock::time_point then) const;
  nlohmann::json summary() const;
  // Of agent-N, in that summary.
  nlohmann::json agent_in(const nlohmann::json& summary, std::size_t agent) const;

  Mock mock;
  std::string base;
  std::string folder;
  std::string address;
  std::unique_ptr<Program> coordinator;
  std::vector<std::unique_ptr<Program>> agents;
};

}  // namespace tutti::testing_support
