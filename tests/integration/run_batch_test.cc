// Under a batch system: agents find a coordinator they were not told of, and a SIGTERM that reaches
// every process at once, twice, ends the run in order and loses nothing.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(RunBatch, AgentsFindTheCoordinatorThroughAFile) {
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("rendezvous-run");
  const std::string file = base + "/coordinator";
  // A file that a killed run left: nobody answers there, so the agent goes on looking.
  std::ofstream(file) << "tcp://127.0.0.1:1\n";
  Program agent({"tutti-agent", "--rendezvous", file, "--wait", "50", "--name", "one",
                 "--cache-dir", base + "/cache", "--spool-dir", base + "/spool"});
  ASSERT_TRUE(agent.says("looking for the coordinator", 10'000));
  const Ran ran =
      run_program({"tutti", "benchmark", "offline", "--endpoints", mock.urls()[0], "--model", "m",
                   "--dataset", write_prompts(base, 5), "--report-dir", base + "/report",
                   "--listen", "tcp://127.0.0.1:*", "--expect-agents", "1", "--rendezvous", file});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(agent.wait(10'000), 0) << agent.output();
  EXPECT_FALSE(std::filesystem::exists(file)) << "a file left behind would mislead the next agent";
}

TEST(RunBatch, AnAgentThatFindsNobodyGivesUpInTime) {
  const std::string file = fresh_folder("rendezvous-none") + "/coordinator";
  const Ran ran = run_program({"tutti-agent", "--rendezvous", file, "--wait", "1"}, 20'000);
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.output, AllOf(HasSubstr(file), HasSubstr("--wait")));
}

// A run of one agent that dials, in its phase, replies two seconds away.
struct Batch {
  explicit Batch(const std::string& name)
      : base(fresh_folder(name)),
        mock(1, {"--ttft", "2000ms", "--gap", "1ms", "--tokens", "2"}),
        agent({"tutti-agent", "--rendezvous", base + "/coordinator", "--term-grace", "30",
               "--cache-dir", base + "/cache", "--spool-dir", base + "/spool"}),
        tutti({"tutti",
               "benchmark",
               "online",
               "--endpoints",
               mock.urls()[0],
               "--model",
               "m",
               "--dataset",
               write_prompts(base, 20),
               "--load-pattern",
               "concurrency",
               "--concurrency",
               "4",
               "--num-samples",
               "5000",
               "--report-dir",
               base + "/report",
               "--listen",
               "tcp://127.0.0.1:*",
               "--expect-agents",
               "1",
               "--rendezvous",
               base + "/coordinator"}) {}
  nlohmann::json summary() const {
    return read_json(base + "/report/performance/result_summary.json");
  }

  std::string base;
  Mock mock;
  Program agent;
  Program tutti;
};

TEST(RunBatch, ASigtermToEveryoneAtOnceTwiceEndsTheRunInOrder) {
  Batch batch("batch-term");
  ASSERT_TRUE(batch.tutti.says("phase performance", 60'000)) << batch.tutti.output();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // something is in flight
  for (int i = 0; i < 3; ++i) {
    batch.agent.signal(SIGTERM);
    batch.tutti.signal(SIGTERM);
  }
  EXPECT_EQ(batch.tutti.wait(60'000), 130) << batch.tutti.output();
  EXPECT_NE(batch.agent.wait(20'000), -1) << batch.agent.output();
  const auto summary = batch.summary();
  EXPECT_EQ(summary["state"], "interrupted");
  EXPECT_GT(summary["n_samples_issued"], 0);
  EXPECT_EQ(summary["n_samples_issued"], summary["n_samples_completed"]);
  EXPECT_EQ(summary["n_samples_failed"], 0) << "what was in flight could end";
  EXPECT_THAT(summary["verdict"].dump(), Not(HasSubstr("lost")));
}

TEST(RunBatch, AWarningToEveryoneIsTheCoordinatorsToHeed) {
  Batch batch("batch-usr1");
  ASSERT_TRUE(batch.tutti.says("phase performance", 60'000)) << batch.tutti.output();
  batch.agent.signal(SIGUSR1);
  ASSERT_TRUE(batch.agent.says("left to the coordinator", 20'000)) << batch.agent.output();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  for (int i = 0; i < 3; ++i) {  // however often: it is the first step, and no other
    batch.tutti.signal(SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(batch.tutti.wait(60'000), 130) << batch.tutti.output();
  EXPECT_GT(batch.summary()["n_samples_issued"], 0);
  EXPECT_EQ(batch.summary()["n_samples_failed"], 0);
  EXPECT_NE(batch.agent.wait(20'000), -1) << batch.agent.output();
}

TEST(RunBatch, Sigusr2CancelsWhatIsInFlight) {
  Batch batch("batch-usr2");
  ASSERT_TRUE(batch.tutti.says("phase performance", 60'000)) << batch.tutti.output();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  batch.tutti.signal(SIGUSR2);
  EXPECT_EQ(batch.tutti.wait(60'000), 130) << batch.tutti.output();
  const auto summary = batch.summary();
  EXPECT_EQ(summary["n_samples_issued"], summary["n_samples_completed"]);
  EXPECT_GT(summary["n_samples_failed"], 0) << "a cancelled query is a failed one";
}

TEST(RunBatch, AnAgentWhoseCoordinatorDiesDoesNotWaitOutItsGrace) {
  Batch batch("batch-dies");
  ASSERT_TRUE(batch.tutti.says("phase performance", 60'000)) << batch.tutti.output();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // armed: no more 30 s of patience
  batch.agent.signal(SIGTERM);
  batch.tutti.signal(SIGKILL);
  batch.tutti.wait(10'000);
  EXPECT_EQ(batch.agent.wait(25'000), 4) << batch.agent.output();
}

}  // namespace
}  // namespace tutti::testing_support
