// A host that was suspended in the middle of a run, an agent's or the coordinator's: its monotonic
// clock cannot tell, but the run says so by name, at once, and keeps what it has. The sleep is
// played by a preloaded library (tests/support/wall_step.cc).

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "tests/support/mortal_mock.h"
#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Whose host sleeps.
class Suspended : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "SKIPPED: a sanitizer's runtime takes no library before itself";
#endif
  }
};

TEST_P(Suspended, IsNamedAndTheRunEndsInOrder) {
  const std::string who = GetParam();
  const MortalMock mock({"--ttft", "20ms", "--gap", "2ms", "--tokens", "6"});
  const std::string base = fresh_folder("suspended-" + who);
  const std::string file = base + "/step";
  const std::map<std::string, std::string> sleeping{{"LD_PRELOAD", TUTTI_WALL_STEP},
                                                    {"WALL_STEP_FILE", file},
                                                    {"WALL_STEP_S", "600"},
                                                    {"WALL_STEP_SUSPEND", "1"}};
  const std::map<std::string, std::string> awake;
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  const std::size_t samples = 100'000;
  Program run(words_of({.data = write_prompts(base, 50),
                        .folder = base + "/run",
                        .urls = {mock.url()},
                        .concurrency = 10,
                        .queries = samples,
                        .more = {"--listen", address, "--expect-agents", "1"}}),
              who == "agent" ? awake : sleeping);
  Program agent({"tutti-agent", "--connect", address, "--name", "dozy", "--spool-dir",
                 base + "/spool", "--cache-dir", base + "/cache"},
                who == "agent" ? sleeping : awake);
  ASSERT_TRUE(mock.reaches("tutti_mock_finished_total", 100)) << run.output() << agent.output();
  std::ofstream(file) << "now\n";
  EXPECT_EQ(run.wait(25'000), 4) << run.output() << agent.output();
  agent.wait(10'000);
  const json summary = read_json(base + "/run/performance/result_summary.json");
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(summary["verdict"]["reasons"].dump(),
              HasSubstr(who == "agent" ? "this agent's host was suspended for 600"
                                       : "the coordinator's host was suspended for 600"));
  EXPECT_EQ(summary["n_samples_completed"], summary["n_samples_issued"]) << "each has its record";
  EXPECT_LT(summary["n_samples_issued"], samples);
}

INSTANTIATE_TEST_SUITE_P(All, Suspended, testing::Values("agent", "coordinator"),
                         [](const auto& who) { return std::string(who.param); });

}  // namespace
}  // namespace tutti::testing_support
