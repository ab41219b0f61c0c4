// Cables that are pulled, in network namespaces: an agent's host cut off from its coordinator for
// less and for more than lost_after, and a frontend's host that vanishes without FIN or RST. What
// was recorded is all there or in a spool, the verdict names who was lost, nobody goes on loading
// the frontends, and queries to a vanished host end by their timeout's name.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/hosts.h"
#include "tests/support/mortal_mock.h"
#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Net = Hosts::Net;

constexpr double kLostAfterS = 3;

void sleep_s(double seconds) { poll(nullptr, 0, static_cast<int>(seconds * 1e3)); }

// agent-1 on host 1, agent-2 on host 2; coordinator and frontend on the hub, the frontend on the
// data net, so that a cut control cable leaves it in reach.
struct Stage {
  Stage(const std::string& name, int samples)
      : hosts(2),
        mock({"--ttft", "20ms", "--gap", "2ms", "--tokens", "8"}, Hosts::hub(Net::kData)),
        base(fresh_folder(name)),
        folder(base + "/run") {
    const std::string address = fmt::format("tcp://{}:7700", Hosts::hub(Net::kControl));
    coordinator = std::make_unique<Program>(words_of(
        {.data = write_prompts(base, 50),
         .folder = folder,
         .urls = {mock.url()},
         .queries = static_cast<std::size_t>(samples),
         .more = {"--listen", address, "--expect-agents", "2", "--distributed.lost-after-s",
                  fmt::format("{}", kLostAfterS), "--insecure-agents"}}));
    for (std::size_t host = 1; host <= 2; ++host) {
      const Hosts::Visit visit(hosts, host);
      agents.push_back(std::make_unique<Program>(
          std::vector<std::string>{"tutti-agent", "--connect", address, "--insecure", "--name",
                                   fmt::format("agent-{}", host), "--cache-dir", base + "/cache",
                                   "--spool-dir", spool(host)}));
    }
  }
  std::string spool(std::size_t host) const { return fmt::format("{}/spool-{}", base, host); }
  json summary() const { return read_json(folder + "/performance/result_summary.json"); }

  Hosts hosts;
  MortalMock mock;
  std::string base;
  std::string folder;
  std::unique_ptr<Program> coordinator;
  std::vector<std::unique_ptr<Program>> agents;
};

class CutHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = Hosts::missing(); !missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << missing;
    }
  }
};

TEST_F(CutHosts, ACutShorterThanLostAfterCostsNothingButTime) {
  Stage stage("cut-short", 2500);
  ASSERT_TRUE(stage.mock.reaches("tutti_mock_finished_total", 300)) << stage.coordinator->output();
  stage.hosts.cut(1, Net::kControl);
  stage.hosts.cut(1, Net::kData);
  sleep_s(kLostAfterS / 3);
  stage.hosts.mend(1, Net::kControl);
  stage.hosts.mend(1, Net::kData);
  ASSERT_EQ(stage.coordinator->wait(25'000), 0)
      << stage.coordinator->output() << stage.agents[0]->output();
  const json summary = stage.summary();
  EXPECT_EQ(summary["verdict"]["valid"], true) << summary["verdict"];
  EXPECT_EQ(summary["n_samples_completed"], 2500);
  EXPECT_EQ(summary["n_samples_failed"], 0);
  EXPECT_EQ(summary["distributed"]["phases"][0]["missing"], 0);
  EXPECT_EQ(summary["distributed"]["phases"][0]["doubled"], 0);
  EXPECT_EQ(stage.mock.metric("tutti_mock_completions_total"), 2500);
  for (const auto& agent : stage.agents) {
    EXPECT_EQ(agent->wait(10'000), 0) << agent->output();
  }
}

TEST_F(CutHosts, ALongerCutLosesTheAgentByNameAndKeepsItsSpool) {
  Stage stage("cut-long", 1'000'000);
  ASSERT_TRUE(stage.mock.reaches("tutti_mock_finished_total", 300)) << stage.coordinator->output();
  stage.hosts.cut(1, Net::kControl);  // it still reaches the frontend
  EXPECT_EQ(stage.coordinator->wait(20'000), 4) << stage.coordinator->output();
  // Both sides count from the last word they heard, so both are through by now, or nearly.
  EXPECT_EQ(stage.agents[0]->wait(10'000), 4) << stage.agents[0]->output();
  EXPECT_EQ(stage.agents[1]->wait(10'000), 0) << stage.agents[1]->output();
  const double issued = stage.mock.metric("tutti_mock_completions_total");
  stage.hosts.mend(1, Net::kControl);
  sleep_s(1);
  EXPECT_EQ(stage.mock.metric("tutti_mock_completions_total"), issued) << "an orphan goes on";
  EXPECT_EQ(stage.mock.metric("tutti_mock_active_requests"), 0);

  const json summary = stage.summary();
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(summary["verdict"]["reasons"].dump(), HasSubstr("agent agent-1 was lost"));
  EXPECT_THAT(stage.agents[0]->output(), HasSubstr("records are kept in " + stage.spool(1)));
  const Ran rebuilt = run_program({"tutti", "report", "--report-dir", stage.base + "/rebuilt",
                                   "--from-spools", stage.spool(1)});
  EXPECT_EQ(rebuilt.exit_code, 4) << rebuilt.output;
  const json spooled = read_json(stage.base + "/rebuilt/performance/result_summary.json");
  double in_the_run[3] = {0, 0, 0};
  for (const auto& agent : summary["distributed"]["agents"]) {
    in_the_run[agent["name"] == "agent-1" ? 1 : 2] = agent["completed"].get<double>();
  }
  const auto in_the_spool = spooled["n_samples_completed"].get<double>();
  EXPECT_GE(in_the_spool, in_the_run[1]);
  EXPECT_EQ(in_the_run[2] + in_the_spool, issued) << "no reply is without a record";
}

// The frontends on host 1 vanish: no FIN, no RST, no ICMP. Those in flight and those that follow on
// kept connections end by the request timeout, those that connect anew by the connect timeout.
TEST_F(CutHosts, AFrontendsHostThatVanishesEndsItsQueriesByTimeoutAndName) {
  const Hosts hosts(1);
  const MortalMock good({"--ttft", "20ms", "--gap", "2ms", "--tokens", "8"},
                        Hosts::hub(Net::kData));
  std::unique_ptr<MortalMock> far;
  {
    const Hosts::Visit visit(hosts, 1);
    far = std::make_unique<MortalMock>(
        std::vector<std::string>{"--ttft", "20ms", "--gap", "2ms", "--tokens", "8"}, "10.80.0.11");
  }
  const std::string base = fresh_folder("cut-frontend");
  const int samples = 1500;
  Program run(words_of({.data = write_prompts(base, 50),
                        .folder = base + "/run",
                        .urls = {good.url(), far->url()},
                        .concurrency = 10,
                        .queries = static_cast<std::size_t>(samples),
                        .more = {"--request-timeout", "2", "--connect-timeout", "1"}}));
  ASSERT_TRUE(good.reaches("tutti_mock_finished_total", 150)) << run.output();
  hosts.cut(1, Net::kData);
  ASSERT_EQ(run.wait(28'000), 0) << run.output();
  const json summary = read_json(base + "/run/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_completed"], samples);
  EXPECT_EQ(summary["distributed"]["phases"][0]["missing"], 0);
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(summary["verdict"]["warnings"].dump(), HasSubstr("frontend " + far->url()));
  std::vector<std::string> causes;
  for (const auto& failure : summary["failures"]) {
    EXPECT_EQ(failure["endpoint"], far->url());
    causes.push_back(failure["cause"].get<std::string>());
  }
  EXPECT_THAT(causes, testing::Contains("request timeout"));
  EXPECT_THAT(causes, testing::Each(testing::AnyOf("request timeout", "connect timeout")));
  EXPECT_GT(summary["distributed"]["endpoints"][1]["failed"], 4);
}

}  // namespace
}  // namespace tutti::testing_support
