// How a run may end, and that each way leaves the right exit code, a readable folder and nobody
// behind: interrupts, dead agents, dead frontends, watchdogs.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct LongRun {
  std::string base;
  std::vector<std::string> words;
  std::string folder;
};

LongRun long_run(const std::string& name, const std::vector<std::string>& urls,
                 const std::vector<std::string>& more = {}) {
  LongRun setup;
  setup.base = fresh_folder(name);
  setup.folder = setup.base + "/run";
  setup.words = words_of({write_prompts(setup.base, 300), setup.folder, urls, 40, 100'000, more});
  return setup;
}

// `missing`: queries a lost agent may have issued and whose records nobody has.
void expect_readable_partial_folder(const std::string& folder, std::size_t missing = 0) {
  const json summary = read_json(folder + "/performance/result_summary.json");
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary["state"], "interrupted");
  EXPECT_EQ(summary["complete"], false);
  const auto issued = summary["n_samples_issued"].get<std::size_t>();
  EXPECT_GT(issued, 0U);
  EXPECT_LT(issued, 100000U);
  EXPECT_EQ(read_json(folder + "/sample_idx_map.json")["performance"].size(), issued);
  EXPECT_EQ(read_json(folder + "/metrics/final_snapshot.json")["state"], "interrupted");
  EXPECT_THAT(read_text(folder + "/report.txt"), HasSubstr("best-effort partial data"));
  std::size_t bad = 0;
  std::size_t issued_events = 0;
  for (const auto& event : read_jsonl(folder + "/events.jsonl")) {
    bad += event.is_discarded() ? 1U : 0U;
    issued_events += !event.is_discarded() && event["event_type"] == "sample.issued" ? 1U : 0U;
  }
  EXPECT_EQ(bad, 0U);
  EXPECT_EQ(issued_events, issued - missing);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr(".draft")));
  }
}

TEST(Ends, AnInterruptLetsWhatIsInFlightEndAndLeavesAValidPartialFolder) {
  for (const int number : {SIGINT, SIGTERM}) {
    const Mock mock(2, {"--ttft", "10ms", "--gap", "2ms", "--tokens", "8"});
    const LongRun setup = long_run("ends-interrupt", mock.urls());
    Program tutti(setup.words);
    ASSERT_TRUE(tutti.says("phase performance", 30'000)) << tutti.output();
    ASSERT_TRUE(tutti.says("done ", 30'000)) << tutti.output();
    poll(nullptr, 0, 1500);
    tutti.signal(number);
    EXPECT_EQ(tutti.wait(30'000), 130) << tutti.output();
    expect_readable_partial_folder(setup.folder);
    const json summary = read_json(setup.folder + "/performance/result_summary.json");
    EXPECT_EQ(summary["n_samples_completed"], summary["n_samples_issued"]);
    EXPECT_EQ(summary["n_samples_failed"], 0);
  }
}

TEST(Ends, ASecondInterruptCancelsWhatIsInFlight) {
  const Mock mock(1, {"--ttft", "60s"});
  const LongRun setup = long_run("ends-twice", mock.urls());
  Program tutti(setup.words);
  ASSERT_TRUE(tutti.says("phase performance", 30'000)) << tutti.output();
  poll(nullptr, 0, 1000);
  tutti.signal(SIGINT);
  ASSERT_TRUE(tutti.says("issuing stops", 10'000));
  tutti.signal(SIGINT);
  EXPECT_EQ(tutti.wait(20'000), 130) << tutti.output();
  const json summary = read_json(setup.folder + "/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_issued"], 40);
  EXPECT_EQ(summary["n_samples_failed"], 40);
}

TEST(Ends, AKilledAgentStopsTheRunByNameAndNobodyStaysBehind) {
  const Mock mock(2, {"--ttft", "20ms", "--gap", "2ms", "--tokens", "8"});
  const LongRun setup = long_run("ends-killed", mock.urls(), {"--local-agents", "3"});
  Program tutti(setup.words);
  ASSERT_TRUE(tutti.says("phase performance", 30'000)) << tutti.output();
  poll(nullptr, 0, 1000);
  const auto agents = agents_of(tutti.pid());
  ASSERT_EQ(agents.size(), 3U);
  kill(agents[1], SIGKILL);
  EXPECT_EQ(tutti.wait(60'000), 4) << tutti.output();
  EXPECT_THAT(tutti.output(), HasSubstr("signal 9"));
  const json summary = read_json(setup.folder + "/performance/result_summary.json");
  const auto dropped = summary["n_samples_dropped"].get<std::size_t>();
  EXPECT_GT(dropped, 0U) << "a killed agent had queries in flight";
  EXPECT_LE(dropped, 14U + 64U + 256U) << "at most its slots, its queue, a batch not yet sent";
  expect_readable_partial_folder(setup.folder, dropped);
  EXPECT_THAT(read_text(setup.folder + "/report.txt"), HasSubstr("INVALID"));
  EXPECT_THAT(read_text(setup.folder + "/report.txt"), testing::ContainsRegex("local-[012]"));
  for (const pid_t agent : agents) {
    EXPECT_NE(kill(agent, 0), 0) << "agent " << agent << " is still there";
  }
}

TEST(Ends, WhenEveryQueryFailsTheExitCodeSaysSo) {
  const Mock mock(1, {"--fault", "status:503"});
  const LongRun setup = long_run("ends-all-failed", mock.urls(), {});
  auto words = setup.words;
  *std::find(words.begin(), words.end(), "100000") = "200";
  const Ran ran = run_program(words);
  EXPECT_EQ(ran.exit_code, 4) << ran.output;
  const json summary = read_json(setup.folder + "/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_failed"], 200);
  EXPECT_THAT(read_text(setup.folder + "/report.txt"), HasSubstr("503"));
}

TEST(Ends, SomeFailuresAreCountedAndTheRestIsARun) {
  const Mock mock(
      1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "3", "--fault", "status:503@every:10"});
  const LongRun setup = long_run("ends-some-failed", mock.urls(), {});
  auto words = setup.words;
  *std::find(words.begin(), words.end(), "100000") = "400";
  const Ran ran = run_program(words);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  const json summary = read_json(setup.folder + "/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_issued"], 400);
  EXPECT_EQ(summary["n_samples_completed"], 400);
  EXPECT_EQ(summary["n_samples_failed"], 40);
}

TEST(Ends, FrontendsThatNobodyReachesAreNamedBeforeTheRun) {
  const std::string dead = fmt::format("http://127.0.0.1:{}", free_port());
  const LongRun setup = long_run("ends-unreachable", {dead});
  const Ran ran = run_program(setup.words);
  EXPECT_EQ(ran.exit_code, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr(dead));
  EXPECT_TRUE(std::filesystem::exists(setup.folder + "/config.yaml"));
  EXPECT_FALSE(std::filesystem::exists(setup.folder + "/performance/result_summary.json"));
}

TEST(Ends, AgentsThatDoNotComeAreCountedAfterTheWait) {
  const Mock mock(1);
  const LongRun setup = long_run(
      "ends-nobody", mock.urls(),
      {"--listen", fmt::format("tcp://127.0.0.1:{}", free_port()), "--expect-agents", "2"});
  Program tutti(setup.words);
  ASSERT_TRUE(tutti.says("listening for agents", 20'000));
  tutti.signal(SIGINT);
  EXPECT_EQ(tutti.wait(20'000), 130) << tutti.output();
}

TEST(Ends, TheRunTimeoutStopsARunWithFourAndKeepsWhatIsThere) {
  const Mock mock(1, {"--ttft", "10ms", "--gap", "2ms", "--tokens", "8"});
  const LongRun setup = long_run("ends-timeout", mock.urls(), {"--timeout", "3"});
  const Ran ran = run_program(setup.words);
  EXPECT_EQ(ran.exit_code, 4) << ran.output;
  expect_readable_partial_folder(setup.folder);
}

TEST(Ends, SilentFrontendsEndTheRunByTheIdleTimeout) {
  const Mock mock(1, {"--ttft", "300s"});
  const LongRun setup = long_run("ends-idle", mock.urls(),
                                 {"--endpoint-response-idle-timeout", "2", "--request-timeout",
                                  "60", "--timeouts.interrupted-teardown-grace-s", "1"});
  const Ran ran = run_program(setup.words);
  EXPECT_EQ(ran.exit_code, 4) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("40"));
}

TEST(Ends, ABindThatOtherHostsReachIsRefusedWithoutKeys) {
  const Mock mock(1);
  const LongRun setup =
      long_run("ends-bind", mock.urls(),
               {"--listen", fmt::format("tcp://0.0.0.0:{}", free_port()), "--expect-agents", "1"});
  const Ran ran = run_program(setup.words);
  EXPECT_EQ(ran.exit_code, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("insecure"));
}

}  // namespace
}  // namespace tutti::testing_support
