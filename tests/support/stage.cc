#include "tests/support/stage.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>

namespace tutti::testing_support {

double seconds_since(SteadyClock::time_point then) {
  return std::chrono::duration<double>(SteadyClock::now() - then).count();
}

void sleep_until(SteadyClock::time_point then, double seconds) {
  poll(nullptr, 0, std::max(0, static_cast<int>((seconds - seconds_since(then)) * 1e3)));
}

RebuiltRun rebuild(const std::vector<std::string>& spools, const std::string& folder) {
  std::vector<std::string> words{"tutti", "report", "--report-dir", folder, "--from-spools"};
  words.insert(words.end(), spools.begin(), spools.end());
  RebuiltRun out;
  out.ran = run_program(words);
  if (out.ran.exit_code == 4) {
    out.summary = read_json(folder + "/performance/result_summary.json");
  }
  return out;
}

Stage::Stage(const StageSettings& settings)
    : mock(1, settings.mock),
      base(fresh_folder(settings.name)),
      folder(base + "/run"),
      address(fmt::format("tcp://127.0.0.1:{}", free_port())) {
  OnlineRun run{write_prompts(base, 100), folder,           mock.urls(),
                settings.concurrency,     settings.queries, {}};
  run.more = {"--listen", address, "--expect-agents", std::to_string(settings.agents)};
  run.more.insert(run.more.end(), settings.more.begin(), settings.more.end());
  coordinator = std::make_unique<Program>(words_of(run));
  for (std::size_t i = 0; i + settings.absent < settings.agents; ++i) {
    agents.push_back(start_agent(fmt::format("agent-{}", i), spool(i)));
  }
}

std::unique_ptr<Program> Stage::start_agent(const std::string& agent,
                                            const std::string& spool_folder) {
  return std::make_unique<Program>(
      std::vector<std::string>{"tutti-agent", "--connect", address, "--name", agent, "--cache-dir",
                               base + "/cache", "--spool-dir", spool_folder});
}

std::string Stage::spool(std::size_t agent) const {
  return fmt::format("{}/spool-{}", base, agent);
}

std::vector<std::string> Stage::spools() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    out.push_back(spool(i));
  }
  return out;
}

std::size_t Stage::spooled_files(std::size_t agent) const {
  std::size_t files = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(spool(agent), error), end; it != end; ++it) {
    ++files;
  }
  return files;
}

testing::AssertionResult Stage::runs(double finished) const {
  for (int i = 0; i < 1000; ++i) {
    if (mock.metric("tutti_mock_finished_total") >= finished) {
      return testing::AssertionSuccess();
    }
    poll(nullptr, 0, 20);
  }
  return testing::AssertionFailure() << "the run does not get going\n" << coordinator->output();
}

testing::AssertionResult Stage::serves(double at_once) const {
  for (int i = 0; i < 1000; ++i) {
    if (mock.metric("tutti_mock_active_requests") == at_once) {
      return testing::AssertionSuccess();
    }
    poll(nullptr, 0, 20);
  }
  return testing::AssertionFailure() << mock.metric("tutti_mock_active_requests")
                                     << " requests are being served, not " << at_once;
}

testing::AssertionResult Stage::is_quiet_10_s_after(SteadyClock::time_point then) const {
  sleep_until(then, 10);
  const double asked = mock.metric("tutti_mock_completions_total");
  const double active = mock.metric("tutti_mock_active_requests");
  sleep_until(then, 10.5);
  const double asked_later = mock.metric("tutti_mock_completions_total");
  if (active == 0 && asked == asked_later) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << active << " requests are still served, and "
                                     << asked_later - asked << " new ones came in half a second";
}

nlohmann::json Stage::summary() const {
  return read_json(folder + "/performance/result_summary.json");
}

nlohmann::json Stage::agent_in(const nlohmann::json& summary, std::size_t agent) const {
  for (const auto& each : summary["distributed"]["agents"]) {
    if (each["name"] == fmt::format("agent-{}", agent)) {
      return each;
    }
  }
  return {};
}

}  // namespace tutti::testing_support
