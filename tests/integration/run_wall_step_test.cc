// A step of wall time in the middle of a run, by an hour either way, seen by an agent or by the
// coordinator: no metric bends, test_started_at is right, the run is whole. The step is played by a
// preloaded library (tests/support/wall_step.cc), once with the kernel's receive stamps stepping
// along, as on a host whose clock is set, and once without, so that the two disagree for good.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/mortal_mock.h"
#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;

struct Case {
  const char* name;
  const char* step_s;
  bool agent;   // else the coordinator
  bool stamps;  // step along
};

class WallStep : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "SKIPPED: a sanitizer's runtime takes no library before itself";
#endif
  }
};

// The durations of the summary, wherever they stand: a name that ends in _ns.
void expect_no_bent_duration(const json& node, const std::string& path) {
  constexpr double kMinuteNs = 60e9;  // the run takes seconds; a step is an hour
  for (auto it = node.begin(); it != node.end(); ++it) {
    const std::string name = node.is_object() ? it.key() : "";
    const std::string here = path + "/" + (node.is_object() ? name : "…");
    if (it->is_structured()) {
      expect_no_bent_duration(*it, here);
    } else if (it->is_number() && name.size() > 3 && name.compare(name.size() - 3, 3, "_ns") == 0 &&
               name != "offset_ns") {
      EXPECT_GE(it->get<double>(), 0) << here;
      EXPECT_LT(it->get<double>(), kMinuteNs) << here;
    }
  }
}

TEST_P(WallStep, BendsNothing) {
  const MortalMock mock({"--ttft", "20ms", "--gap", "2ms", "--tokens", "6"});
  const std::string base = fresh_folder(fmt::format("wall-{}", GetParam().name));
  const std::string file = base + "/step";
  std::map<std::string, std::string> stepping{{"LD_PRELOAD", TUTTI_WALL_STEP},
                                              {"WALL_STEP_FILE", file},
                                              {"WALL_STEP_S", GetParam().step_s}};
  if (GetParam().stamps) {
    stepping["WALL_STEP_STAMPS"] = "1";
  }
  const std::map<std::string, std::string> steady;
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  const int samples = 700;
  const std::time_t before = std::time(nullptr);
  Program run(words_of({.data = write_prompts(base, 50),
                        .folder = base + "/run",
                        .urls = {mock.url()},
                        .concurrency = 10,
                        .queries = static_cast<std::size_t>(samples),
                        .more = {"--listen", address, "--expect-agents", "1"}}),
              GetParam().agent ? steady : stepping);
  Program agent({"tutti-agent", "--connect", address, "--spool-dir", base + "/spool", "--cache-dir",
                 base + "/cache"},
                GetParam().agent ? stepping : steady);
  ASSERT_TRUE(mock.reaches("tutti_mock_finished_total", 150)) << run.output() << agent.output();
  std::ofstream(file) << "now\n";
  ASSERT_EQ(run.wait(25'000), 0) << run.output() << agent.output();
  EXPECT_EQ(agent.wait(10'000), 0) << agent.output();
  const std::time_t after = std::time(nullptr);
  // It was seen at all: a log line bears the stepped hour.
  const std::string& said = GetParam().agent ? agent.output() : run.output();
  const std::time_t stepped = after + std::atoi(GetParam().step_s);
  bool seen = false;
  for (std::time_t t = stepped - 60; t <= stepped; ++t) {
    std::tm local{};
    localtime_r(&t, &local);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    seen = seen || said.find(text) != std::string::npos;
  }
  EXPECT_TRUE(seen) << said;

  const json summary = read_json(base + "/run/performance/result_summary.json");
  EXPECT_EQ(summary["verdict"]["valid"], true) << summary["verdict"];
  EXPECT_EQ(summary["n_samples_completed"], samples);
  EXPECT_EQ(summary["n_samples_failed"], 0);
  const auto started_s = summary["test_started_at"].get<double>() / 1e9;
  EXPECT_GE(started_s, static_cast<double>(before) - 1);
  EXPECT_LE(started_s, static_cast<double>(after) + 1);
  expect_no_bent_duration(summary["distributed"], "distributed");
  for (const char* metric : {"ttft", "latency"}) {
    EXPECT_GE(summary[metric]["min"], 20'000'000) << metric;
    EXPECT_LT(summary[metric]["max"], 20e9) << metric;
  }
  EXPECT_LT(summary["duration_ns"].get<double>(), 60e9);
  const json& worst = summary["distributed"]["agents"][0]["worst"];
  if (GetParam().agent && !GetParam().stamps) {
    EXPECT_GT(worst["reads_unstamped"], 400) << "the two clocks disagree: the time of the read";
  } else {
    // After a step back a stamp may be from before it for a second: 10 streams bring at most some
    // 2,500 reads in that time.
    const bool back = GetParam().agent && GetParam().step_s[0] == '-';
    EXPECT_LT(worst["reads_unstamped"], back ? 3500 : 200) << "believed again after the step";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WallStep,
    testing::Values(Case{"agent_forward", "3600", true, true},
                    Case{"agent_back", "-3600", true, true},
                    Case{"agent_forward_against_its_kernel", "3600", true, false},
                    Case{"agent_back_against_its_kernel", "-3600", true, false},
                    Case{"coordinator_forward", "3600", false, true},
                    Case{"coordinator_back", "-3600", false, true}),
    [](const auto& step) { return std::string(step.param.name); });

}  // namespace
}  // namespace tutti::testing_support
