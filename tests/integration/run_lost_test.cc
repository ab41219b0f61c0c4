// What dies in the middle of a run, with real processes over tcp, and what is left: a killed
// coordinator, a frozen agent, a spool without room. After each no record that an agent made is
// missing, and nobody keeps loading the frontends.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/stage.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr double kLostAfterS = 2;

// Long enough never to end by itself.
StageSettings two_agents(const std::string& name) {
  StageSettings settings;
  settings.name = name;
  settings.more = {"--distributed.lost-after-s", fmt::format("{}", kLostAfterS)};
  return settings;
}

// The agents let what is in flight end, so no reply is cut: records of all spools = completions
// that the mock has answered, to the last one.
TEST(Lost, AKilledCoordinatorsRunIsRebuiltWholeFromTheSpools) {
  Stage stage(two_agents("lost-coordinator"));
  ASSERT_TRUE(stage.runs(150));
  stage.coordinator->signal(SIGKILL);
  const auto killed_at = Clock::now();
  EXPECT_EQ(stage.coordinator->wait(5'000), 128 + SIGKILL);
  for (const auto& agent : stage.agents) {
    EXPECT_EQ(agent->wait(9'000), 4) << agent->output();
    EXPECT_THAT(agent->output(), HasSubstr("lost the coordinator"));
  }
  EXPECT_GT(seconds_since(killed_at), kLostAfterS - 0.5);
  const double issued = stage.mock.metric("tutti_mock_completions_total");
  sleep_until(killed_at, 10);
  EXPECT_EQ(stage.mock.metric("tutti_mock_completions_total"), issued) << "an orphan goes on";
  EXPECT_EQ(stage.mock.metric("tutti_mock_cancelled_total"), 0);
  const double finished = stage.mock.metric("tutti_mock_finished_total");
  EXPECT_EQ(finished, issued);

  const std::vector<std::string> both{stage.spool(0), stage.spool(1)};
  const RebuiltRun all = rebuild(both, stage.folder);
  ASSERT_EQ(all.ran.exit_code, 4) << all.ran.output;
  EXPECT_EQ(all.summary["n_samples_completed"], finished);
  EXPECT_EQ(all.summary["n_samples_failed"], 0);
  EXPECT_EQ(all.summary["verdict"]["valid"], false);
  EXPECT_THAT(all.summary["verdict"]["reasons"][0]["text"].get<std::string>(),
              HasSubstr("coordinator was lost"));
  EXPECT_EQ(all.summary["run_config"]["load_pattern"]["target_concurrency"], 20);
  EXPECT_EQ(all.summary["distributed"]["endpoints"][0]["url"], stage.mock.urls()[0]);
  EXPECT_TRUE(std::filesystem::exists(stage.folder + "/config.yaml")) << "the lost run's own";
  EXPECT_EQ(read_json(stage.folder + "/sample_idx_map.json")["performance"].size(), finished);
  std::size_t completed = 0;
  for (const auto& event : read_jsonl(stage.folder + "/events.jsonl")) {
    completed += event["event_type"] == "sample.complete" ? 1U : 0U;
  }
  EXPECT_EQ(completed, finished);

  EXPECT_EQ(rebuild(both, stage.folder).ran.exit_code, 3) << "a report is never written over";
  const RebuiltRun twice =
      rebuild({stage.spool(1), stage.spool(0), stage.spool(1)}, stage.base + "/twice");
  EXPECT_EQ(twice.summary["n_samples_completed"], finished);
  EXPECT_EQ(twice.summary["latency"], all.summary["latency"]);
}

// The frozen agent's records that the coordinator has, and those that it made after its thaw and
// nobody wanted, are the ones in its spool; the other agent's are in the run's report.
TEST(Lost, AFrozenAgentIsNamedAndItsRecordsAreInItsSpool) {
  Stage stage(two_agents("lost-frozen"));
  ASSERT_TRUE(stage.runs(200));
  stage.agents[1]->signal(SIGSTOP);
  EXPECT_EQ(stage.coordinator->wait(12'000), 4) << stage.coordinator->output();
  const json summary = read_json(stage.folder + "/performance/result_summary.json");
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(summary["verdict"]["reasons"].dump(), HasSubstr("agent agent-1 was lost"));
  stage.agents[1]->signal(SIGCONT);
  EXPECT_EQ(stage.agents[0]->wait(9'000), 0) << stage.agents[0]->output();
  EXPECT_EQ(stage.agents[1]->wait(9'000), 4) << stage.agents[1]->output();

  EXPECT_EQ(stage.spooled_files(0), 0U) << "the coordinator has all of it, and said goodbye";
  const RebuiltRun frozen = rebuild({stage.spool(1)}, stage.base + "/frozen");
  ASSERT_EQ(frozen.ran.exit_code, 4) << frozen.ran.output;
  double in_the_run[2] = {0, 0};
  for (const auto& agent : summary["distributed"]["agents"]) {
    in_the_run[agent["name"] == "agent-1" ? 1 : 0] = agent["completed"].get<double>();
  }
  const auto in_the_spool = frozen.summary["n_samples_completed"].get<double>();
  EXPECT_GE(in_the_spool, in_the_run[1]);
  EXPECT_EQ(in_the_run[0] + in_the_spool, stage.mock.metric("tutti_mock_completions_total"));
}

// A limit on the size of files stands in for a full disk: it needs no privileges and fails the same
// writes, with another errno.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignored, &old_);  // children keep it: the write fails instead
    const rlimit small{bytes, before_.rlim_max};
    held_ = setrlimit(RLIMIT_FSIZE, &small) == 0;
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    sigaction(SIGXFSZ, &old_, nullptr);
  }
  bool held() const { return held_; }

 private:
  rlimit before_{};
  struct sigaction old_ {};
  bool held_ = false;
};

// A run with one agent that can write no file above `bytes`; what the agent said.
std::string run_without_room(const std::string& base, const std::string& name, rlim_t bytes,
                             std::size_t samples) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "8"});
  const std::string folder = base + "/" + name;
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  std::unique_ptr<Program> agent;
  {
    const FileSizeLimit limit(bytes);
    EXPECT_TRUE(limit.held());
    agent = std::make_unique<Program>(
        std::vector<std::string>{"tutti-agent", "--connect", address, "--name", "full",
                                 "--cache-dir", base + "/cache", "--spool-dir", folder + "-spool"});
  }
  Program coordinator(words_of({base + "/prompts.jsonl",
                                folder,
                                mock.urls(),
                                20,
                                samples,
                                {"--listen", address, "--expect-agents", "1"}}));
  EXPECT_EQ(coordinator.wait(14'000), 0) << coordinator.output();
  EXPECT_EQ(agent->wait(5'000), 0) << agent->output();
  const json summary = read_json(folder + "/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_completed"], samples);
  EXPECT_EQ(summary["verdict"]["valid"], true);
  return agent->output();
}

TEST(Lost, ASpoolWithoutRoomIsSaidAndTheRunGoesOn) {
  const std::string base = fresh_folder("lost-room");
  std::filesystem::rename(write_prompts(base, 20), base + "/prompts.jsonl");
  // Room for the body set, not for all records: what is stored with the coordinator goes. Half of
  // it holds what comes in a second, which is how far the coordinator may be behind on a busy host.
  const std::string little = run_without_room(base, "little", 131'072, 8000);
  EXPECT_THAT(little, HasSubstr("the spool needs room"));
  EXPECT_THAT(little, testing::Not(HasSubstr("without a copy here")));
  // None at all; the body set is in the cache by now.
  const std::string none = run_without_room(base, "none", 64, 300);
  EXPECT_THAT(none, HasSubstr("File too large"));
  EXPECT_THAT(none, HasSubstr("records go on to the coordinator without a copy here"));
}

TEST(Lost, ReportRefusesByName) {
  const std::string base = fresh_folder("lost-refused");
  EXPECT_EQ(run_program({"tutti", "report"}).exit_code, 1);
  EXPECT_EQ(run_program({"tutti", "report", "--from-spools"}).exit_code, 1);
  EXPECT_EQ(run_program({"tutti", "report", "--from-spools", base, "--run", "x"}).exit_code, 1);
  const Ran unknown = run_program({"tutti", "report", "--from-spools", base, "--out", "x"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.output, HasSubstr("knows no \"--out\""));
  const Ran empty = run_program({"tutti", "report", "--from-spools", base});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.output, HasSubstr("no spooled batch or note is here"));
  EXPECT_EQ(run_program({"tutti", "report", "--from-spools", base + "/none"}).exit_code, 2);
}

}  // namespace
}  // namespace tutti::testing_support
