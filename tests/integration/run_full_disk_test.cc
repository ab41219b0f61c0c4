// Disks that are full, for real (a tmpfs): an agent's spool, the run folder in the middle of a run,
// and the run folder at its end. Nothing is lost silently: it is with the coordinator, or in the
// spools, or in another folder that is named.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/mortal_mock.h"
#include "tests/support/program.h"
#include "tests/support/small_disk.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kKiB = 1024;

class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = SmallDisk::missing(); !missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << missing;
    }
  }
};

// A coordinator and one agent that dials it, with whatever folders the test gives them.
struct Stage {
  Stage(const std::string& name, std::vector<std::string> flags, std::string run_folder,
        std::string spool_folder, int samples,
        const std::map<std::string, std::string>& environment = {})
      : mock(std::move(flags)),
        base(fresh_folder(name)),
        folder(std::move(run_folder)),
        spool(std::move(spool_folder)) {
    const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
    coordinator = std::make_unique<Program>(
        words_of({.data = write_prompts(base, 20),
                  .folder = folder,
                  .urls = {mock.url()},
                  .queries = static_cast<std::size_t>(samples),
                  // Capped in time: begins although all of it would not fit.
                  .more = {"--runtime.max-issue-duration-ms", "60000", "--listen", address,
                           "--expect-agents", "1", "--distributed.lost-after-s", "2"}}),
        environment);
    agent = std::make_unique<Program>(
        std::vector<std::string>{"tutti-agent", "--connect", address, "--name", "full",
                                 "--cache-dir", base + "/cache", "--spool-dir", spool});
  }
  json summary() const { return read_json(folder + "/performance/result_summary.json"); }

  MortalMock mock;
  std::string base;
  std::string folder;
  std::string spool;
  std::unique_ptr<Program> coordinator;
  std::unique_ptr<Program> agent;
};

const std::vector<std::string> kQuick{"--ttft", "2ms", "--gap", "1ms", "--tokens", "8"};

TEST_F(FullDisk, ASpoolThatFillsUpGivesUpWhatTheCoordinatorHas) {
  const std::string base = fresh_folder("full-spool-little");
  const SmallDisk disk(base + "/spool", 48 * kKiB);
  Stage stage("full-spool-little-run", kQuick, base + "/run", disk.folder(), 4000);
  ASSERT_EQ(stage.coordinator->wait(25'000), 0) << stage.coordinator->output();
  EXPECT_EQ(stage.agent->wait(10'000), 0) << stage.agent->output();
  EXPECT_THAT(stage.agent->output(), HasSubstr("the spool needs room"));
  EXPECT_EQ(stage.summary()["n_samples_completed"], 4000);
  EXPECT_EQ(stage.summary()["verdict"]["valid"], true);
}

TEST_F(FullDisk, ASpoolWithoutRoomIsSaidByTheAgentAndByTheVerdict) {
  const std::string base = fresh_folder("full-spool-none");
  const SmallDisk disk(base + "/spool", 16 * kKiB);
  disk.fill(0);
  Stage stage("full-spool-none-run", kQuick, base + "/run", disk.folder(), 500);
  ASSERT_EQ(stage.coordinator->wait(25'000), 0) << stage.coordinator->output();
  EXPECT_EQ(stage.agent->wait(10'000), 0) << stage.agent->output();
  EXPECT_THAT(stage.agent->output(),
              AllOf(HasSubstr("No space left on device"),
                    HasSubstr("records go on to the coordinator without a copy here")));
  const json summary = stage.summary();
  EXPECT_EQ(summary["n_samples_completed"], 500);
  EXPECT_EQ(summary["verdict"]["valid"], true) << "nothing is missing";
  EXPECT_THAT(summary["verdict"]["warnings"].dump(),
              HasSubstr("agent full had no room on its disk for"));
  EXPECT_THAT(stage.coordinator->output(), HasSubstr("warning: agent full had no room"));
}

// 8 KiB of text each, so that the texts' file outgrows the disk while queries are in flight.
TEST_F(FullDisk, ARunFolderThatFillsUpEndsTheRunByNameAndTheSpoolHasAll) {
  const std::string base = fresh_folder("full-run");
  const SmallDisk disk(base + "/run", 3 * 1024 * kKiB);
  const SmallDisk elsewhere(base + "/tmp", 64 * kKiB);
  Stage stage("full-run-run",
              {"--ttft", "2ms", "--gap", "1ms", "--tokens", "800", "--tokens-per-chunk", "100",
               "--text", "words"},
              disk.folder(), base + "/spool", 1'000'000, {{"TMPDIR", elsewhere.folder()}});
  EXPECT_EQ(stage.coordinator->wait(25'000), 4) << stage.coordinator->output();
  EXPECT_THAT(stage.coordinator->output(),
              AllOf(HasSubstr("cannot store reply texts in the run folder " + disk.folder()),
                    HasSubstr("No space left on device"), HasSubstr("in the agents' spools"),
                    Not(HasSubstr("was lost"))));
  EXPECT_NE(stage.agent->wait(10'000), 0) << stage.agent->output();
  EXPECT_THAT(stage.agent->output(), AllOf(HasSubstr("records are kept in " + stage.spool),
                                           HasSubstr("the coordinator left: records cannot")));
  const double answered = stage.mock.metric("tutti_mock_completions_total");
  const Ran rebuilt = run_program(
      {"tutti", "report", "--report-dir", base + "/rebuilt", "--from-spools", stage.spool});
  ASSERT_EQ(rebuilt.exit_code, 4) << rebuilt.output;
  const json summary = read_json(base + "/rebuilt/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_completed"], answered) << "each reply has its record";
}

// The records' texts fit, the report of them does not.
TEST_F(FullDisk, ARunFolderThatIsFullInTheEndSendsTheReportElsewhereByName) {
  const std::string base = fresh_folder("full-end");
  const SmallDisk disk(base + "/run", 64 * kKiB);
  std::filesystem::create_directories(base + "/tmp");
  Stage stage("full-end-run", kQuick, disk.folder(), base + "/spool", 800,
              {{"TMPDIR", base + "/tmp"}});
  EXPECT_EQ(stage.coordinator->wait(25'000), 4) << stage.coordinator->output();
  const std::string& said = stage.coordinator->output();
  EXPECT_THAT(
      said, AllOf(HasSubstr("cannot write " + disk.folder()), HasSubstr("No space left on device"),
                  HasSubstr("all files of the run are in " + base + "/tmp/tutti-rescued-")));
  std::string rescue;
  for (const auto& entry : std::filesystem::directory_iterator(base + "/tmp")) {
    if (entry.path().filename().string().rfind("tutti-rescued-", 0) == 0) {
      rescue = entry.path().string();
    }
  }
  ASSERT_NE(rescue, "");
  const json summary = read_json(rescue + "/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_completed"], 800);
  EXPECT_EQ(read_json(rescue + "/sample_idx_map.json")["performance"].size(), 800);
  EXPECT_THAT(said, HasSubstr("Verdict: VALID")) << "the numbers are whole";
  EXPECT_THAT(said, Not(HasSubstr("Run folder: " + disk.folder() + "\n")));
}

}  // namespace
}  // namespace tutti::testing_support
