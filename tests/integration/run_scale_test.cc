// A hundred agents at the real coordinator, over real sockets and the real protocol, with a fake
// engine behind them (tests/bench/centre measures with the same program): counts and slots are
// exact. And a run whose records cannot fit is refused before anybody is waited for.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Scaled {
  Ran agents;
  int exit_code = -1;
  std::string output;
  json told;     // by the agents
  json summary;  // by the report
};

// `type` and `pattern` are YAML.
Scaled run_scaled(const std::string& type, int queries, const std::string& pattern,
                  const std::vector<std::string>& flags) {
  const std::string folder = fresh_folder("scale-" + type);
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  std::ofstream(folder + "/run.yaml") << fmt::format(
      "type: {}\n"
      "model_params: {{name: simulated, streaming: 'on'}}\n"
      "datasets: [{{path: {}}}]\n"
      "settings:\n"
      "  runtime: {{n_samples_to_issue: {}}}\n"
      "  load_pattern: {{{}}}\n"
      "distributed: {{listen: '{}', expect: 100, max_clock_error_ms: 500, lost_after_s: 60}}\n"
      "endpoint_config: {{endpoints: ['http://127.0.0.1:9']}}\n",
      type, write_prompts(folder, 50), queries, pattern, address);
  Program coordinator({"tutti", "benchmark", "from-config", "-c", folder + "/run.yaml",
                       "--report-dir", folder + "/run"});
  std::vector<std::string> words{"tutti-bench-agents", "--connect", address, "--agents", "100",
                                 "--give-up",          "30"};
  words.insert(words.end(), flags.begin(), flags.end());
  Scaled out;
  out.agents = run_program(words, 90'000);
  out.exit_code = coordinator.wait(60'000);
  out.output = coordinator.output();
  if (out.exit_code == 0 && out.agents.exit_code == 0) {
    out.told = json::parse(out.agents.output);
    out.summary = read_json(folder + "/run/performance/result_summary.json");
  }
  return out;
}

TEST(Scale, AHundredAgentsWithAHundredSlotsEachShareAClosedLoopExactly) {
  const Scaled run = run_scaled("online", 25'000, "type: concurrency, target_concurrency: 10000",
                                {"--service-ms", "100", "--text", "20"});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.agents.exit_code, 0) << run.agents.output;
  EXPECT_EQ(run.told["records"], 25'000);
  EXPECT_EQ(run.told["slots"], 10'000);
  EXPECT_EQ(run.told["illegal"], 0);
  EXPECT_LE(run.told["in_flight_max"].get<int>(), 10'000);
  EXPECT_EQ(run.summary["n_samples_issued"], 25'000);
  EXPECT_EQ(run.summary["n_samples_completed"], 25'000);
  EXPECT_EQ(run.summary["n_samples_failed"], 0);
  std::uint64_t slots = 0;
  for (const auto& agent : run.summary["distributed"]["agents"]) {
    EXPECT_EQ(agent["slots"], 100) << agent;
    slots += agent["slots"].get<std::uint64_t>();
  }
  EXPECT_EQ(slots, 10'000U);
}

// More than the coordinator leases in one go, all of it before the first record comes.
TEST(Scale, ABurstIsLeasedWholeAndEveryRecordStored) {
  const Scaled run = run_scaled("offline", 150'000, "type: max_throughput",
                                {"--service-ms", "0", "--hold", "150000"});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.agents.exit_code, 0) << run.agents.output;
  EXPECT_EQ(run.told["commands"], 150'000);
  EXPECT_EQ(run.told["in_flight_max"], 150'000);
  EXPECT_EQ(run.told["illegal"], 0);
  EXPECT_EQ(run.summary["n_samples_issued"], 150'000);
  EXPECT_EQ(run.summary["n_samples_completed"], 150'000);
}

TEST(Scale, RecordsThatCannotFitAreRefusedBeforeTheRun) {
  const std::string folder = fresh_folder("scale-room");
  const Ran ran = run_program({"tutti", "benchmark", "offline", "--model", "m", "--endpoints",
                               "http://127.0.0.1:9", "--dataset", write_prompts(folder, 10),
                               "--report-dir", folder + "/run", "--num-samples", "4000000000"},
                              30'000);
  EXPECT_EQ(ran.exit_code, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("cannot hold the run's records"));
  EXPECT_THAT(ran.output, HasSubstr("4000000000 records"));
  EXPECT_THAT(ran.output, HasSubstr("runtime.n_samples_to_issue"));
}

}  // namespace
}  // namespace tutti::testing_support
