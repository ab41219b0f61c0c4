// The files of a run folder: whole or absent, with the reference's fields and ours.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "coordinator/report/atomic_file.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_folder.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using namespace report_run;  // NOLINT: the tests' vocabulary
using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

std::size_t files_in(const std::string& folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& it : std::filesystem::directory_iterator(folder)) {
    ++n;
  }
  return n;
}

TEST(AtomicFile, AppearsOnCommitAndReplacesTheOldOne) {
  TempFolder folder;
  const std::string path = folder / "deep/er/file";
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file);
  file->append("new");
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_file(path), "new");
  ASSERT_TRUE(write_atomically(path, "newer"));
  EXPECT_EQ(read_file(path), "newer");
  EXPECT_EQ(files_in(folder / "deep/er"), 1U);
}

TEST(AtomicFile, WithoutCommitTheOldOneStaysAndNothingElse) {
  TempFolder folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(write_atomically(path, "old"));
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file);
    file->append(std::string(3'000'000, 'x'));
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFile, TwoWritersOfOneFileDoNotMeetAndTheLastOneStands) {
  TempFolder folder;
  const std::string path = folder / "file";
  auto one = AtomicFile::create(path);
  auto two = AtomicFile::create(path);
  ASSERT_TRUE(one && two);
  one->append("one");
  two->append("two");
  ASSERT_TRUE(one->commit());
  ASSERT_TRUE(two->commit());
  EXPECT_EQ(read_file(path), "two");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFile, AFailureNamesTheFileAndLeavesNoRest) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "file/in the way");
  const auto written = write_atomically(folder / "file", "x");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr((folder / "file") + ": "));
  EXPECT_EQ(files_in(folder.path()), 1U);
  ASSERT_TRUE(write_atomically(folder / "plain", "x"));
  EXPECT_FALSE(write_atomically(folder / "plain/file", "x"));  // a file where a folder should be
}

struct Written {
  TempFolder folder;
  RunFacts run = facts();
  Json summary;
  Json snapshot;
  std::string text;

  void write(ledger::Ledger& ledger) {
    const auto report = make_report(run, ledger, {});
    ASSERT_TRUE(report);
    ASSERT_TRUE(write_run_folder(*report, ledger, WordPrompts(), folder.path()));
    if (std::filesystem::exists(folder / "performance/result_summary.json")) {
      summary = Json::parse(read_file(folder / "performance/result_summary.json"));
    }
    snapshot = Json::parse(read_file(folder / "metrics/final_snapshot.json"));
    text = read_file(folder / "report.txt");
  }
};

TEST(RunFolder, SaysWhichStampWasUsedAndHowManyReadsHadNone) {
  Written kernel;
  ledger::Ledger ledger = open_ledger(kernel.folder);
  accept_mixed(ledger, kernel.run);
  kernel.run.agents[1].health.reads_unstamped = 7;
  kernel.run.agents[1].health.read_lag_p99 = base::Duration::micros(250);
  kernel.write(ledger);
  EXPECT_EQ(kernel.summary["distributed"]["stamps"], "kernel receive");
  EXPECT_EQ(kernel.summary["distributed"]["agents"][1]["worst"]["read_lag_p99_ns"], 250'000);
  EXPECT_EQ(kernel.summary["distributed"]["agents"][1]["worst"]["reads_unstamped"], 7);
  EXPECT_THAT(kernel.text, HasSubstr("Stamps of replies: the kernel's"));
  EXPECT_THAT(kernel.text, HasSubstr("7 reads had no kernel stamp that could be used"));
  kernel.run.config.kernel_stamps = false;
  kernel.run.agents[1].health.reads_unstamped = 0;
  kernel.write(ledger);
  EXPECT_EQ(kernel.summary["distributed"]["stamps"], "read");
  EXPECT_THAT(kernel.text, HasSubstr("Stamps of replies: of the read"));
  EXPECT_THAT(kernel.text, testing::Not(HasSubstr("no kernel stamp")));
}

TEST(RunFolder, HoldsTheReferencesFieldsAndOurBlocksAfterThem) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.write(ledger);
  EXPECT_TRUE(out.summary["git_sha"].is_null());
  EXPECT_EQ(out.summary["test_started_at"], 1'790'935'200'123'456'789);
  EXPECT_EQ(out.summary["test_started_at_utc"], "2026-10-02T10:00:00.123456789Z");
  EXPECT_EQ(out.summary["n_samples_issued"], 40);
  EXPECT_EQ(out.summary["n_samples_completed"], 40);
  EXPECT_EQ(out.summary["n_samples_failed"], 3);
  EXPECT_EQ(out.summary["n_samples_succeeded"], 37);
  EXPECT_EQ(out.summary["n_samples_dropped"], 0);
  EXPECT_EQ(out.summary["state"], "complete");
  EXPECT_EQ(out.summary["complete"], true);
  EXPECT_EQ(out.summary["client_implementation"]["name"], "tutti");
  EXPECT_EQ(out.summary["client_implementation"]["reference_client"], false);
  EXPECT_EQ(out.summary["tokens"]["source"], "usage");
  EXPECT_EQ(out.summary["latency_succeeded"]["histogram"]["counts"].size(), 30U);
  EXPECT_EQ(out.summary["verdict"]["valid"], false);
  EXPECT_EQ(out.summary["verdict"]["exit_code"], 0);
  EXPECT_EQ(out.snapshot["metrics"][0]["value"], 42);  // 2 warm-up + 40
  EXPECT_THAT(out.text, HasSubstr("not produced by the MLCommons reference client"));
}

TEST(RunFolder, BreaksDownByFrontendAgentAndCause) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.write(ledger);
  const Json& distributed = out.summary["distributed"];
  ASSERT_EQ(distributed["endpoints"].size(), 2U);
  EXPECT_EQ(distributed["endpoints"][0]["url"], "http://a:8000");
  EXPECT_EQ(distributed["endpoints"][0]["completed"], 20);
  EXPECT_EQ(distributed["endpoints"][0]["failed"], 1);  // seq 8
  EXPECT_EQ(distributed["endpoints"][1]["failed"], 2);  // seq 7 and 21
  ASSERT_EQ(distributed["agents"].size(), 2U);
  EXPECT_EQ(distributed["agents"][1]["completed"], 14);  // every third
  EXPECT_EQ(distributed["agents"][1]["clock"]["offset_ns"], kOffset[1]);
  EXPECT_EQ(distributed["agents"][1]["clock"]["error_ns"], 40'000);
  EXPECT_EQ(distributed["issued_minus_due_ns"]["p50"], 20'000);
  EXPECT_EQ(distributed["sent_minus_issued_ns"]["max"], 150'000);
  EXPECT_EQ(distributed["phases"][1]["missing"], 0);
  ASSERT_EQ(out.summary["failures"].size(), 3U);
  std::int64_t failures = 0;
  for (const Json& failure : out.summary["failures"]) {
    failures += failure["count"].get<std::int64_t>();
  }
  EXPECT_EQ(failures, 3);
}

class PromptsThatKnowSamples final : public WordPrompts {
 public:
  std::optional<base::SampleIndex> sample_of(std::uint32_t, base::Seq seq) const override {
    return static_cast<base::SampleIndex>(seq + 500);
  }
};

TEST(RunFolder, TheSampleMapLeavesWarmUpOutAndKeepsTheMissing) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.run.phases.push_back(
      {"math", base::PhaseKind::kAccuracy, base::Instant{kStart}, base::Instant{kStart}, 1});
  accept(ledger, 0, 3, {ok_record(0, 2, 0, 1910, 1920, 1930, 2)});
  out.run.phases[1].issued = 41;
  EXPECT_EQ(Json::parse(sample_idx_map_json(out.run, ledger, WordPrompts()))["performance"].size(),
            40U);
  const Json map = Json::parse(sample_idx_map_json(out.run, ledger, PromptsThatKnowSamples()));
  ASSERT_EQ(map.size(), 2U);
  EXPECT_EQ(map["performance"].size(), 41U);
  EXPECT_EQ(map["performance"][base::query_id(out.run.run, 1, 40)], 540);
  EXPECT_EQ(map["performance"][base::query_id(out.run.run, 1, 13)], 3);
  EXPECT_EQ(map["math"].size(), 1U);
}

TEST(RunFolder, SamplesOfALaterDataSetAreToldAsItsOwnRows) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.run.phases.push_back({"math", base::PhaseKind::kAccuracy, base::Instant{kStart},
                            base::Instant{kStart}, 2, base::Pacing::kTimed, 500});
  wire::Record record = ok_record(0, 2, 0, 1910, 1920, 1930, 2);
  record.sample = 503;
  accept(ledger, 0, 3, {record});
  const Json map = Json::parse(sample_idx_map_json(out.run, ledger, PromptsThatKnowSamples()));
  EXPECT_EQ(map["math"][base::query_id(out.run.run, 2, 0)], 3);
  EXPECT_EQ(map["math"][base::query_id(out.run.run, 2, 1)], 1) << "the missing one, too";
}

TEST(RunFolder, AccuracyStandsInItsFileAndInTheSummaryPart) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  auto report = make_report(out.run, ledger, verdict::Rules{});
  ASSERT_TRUE(report);
  accuracy::Entry entry;
  entry.dataset_name = "math";
  entry.extractor = "BoxedMathExtractor";
  entry.score = 0.5;
  entry.unit_samples = 2;
  entry.complete = true;
  entry.responses = {2, 2, 0, 0};
  report->accuracy = {entry};
  ASSERT_TRUE(write_run_folder(*report, ledger, WordPrompts(), out.folder.path()));
  const Json file = Json::parse(read_file(out.folder / "accuracy/accuracy_results.json"));
  EXPECT_EQ(file["average_accuracy"], 0.5);
  EXPECT_EQ(file["accuracy_scores"][0]["dataset_name"], "math");
  const std::string text = console_text(*report);
  const std::size_t block = text.find("Accuracy:\n  math: 0.5 (unit=2, ");
  ASSERT_NE(block, std::string::npos) << text;
  EXPECT_GT(block, text.find("\nTPS: "));
  EXPECT_LT(block, text.find("\nVerdict: "));
}

TEST(RunFolder, AnInterruptedRunLeavesTheSameFilesMarkedSo) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.run.state = RunState::kInterrupted;
  out.run.interrupted_by_user = true;
  out.run.phases[1].stop_at = {};
  out.write(ledger);
  EXPECT_EQ(out.summary["state"], "interrupted");
  EXPECT_EQ(out.summary["complete"], false);
  EXPECT_EQ(out.snapshot["state"], "interrupted");
  EXPECT_EQ(out.summary["verdict"]["exit_code"], 130);
  EXPECT_FALSE(out.summary["ttft"].contains("early_stopping_percentiles"));
  EXPECT_THAT(out.text, HasSubstr("WARNING: run was interrupted (SIGTERM/SIGINT) — metrics below"));
  EXPECT_THAT(read_file(out.folder / "events.jsonl"), HasSubstr("session.interrupted"));
}

TEST(RunFolder, ARunThatWentOnWithoutAnAgentIsMarkedAtItsHeadByNameAndTime) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.write(ledger);
  EXPECT_FALSE(out.summary.contains("went_on_without_lost_agents"));
  EXPECT_THAT(out.text, testing::Not(HasSubstr("went on without")));
  out.run.agents[1].lost_at = out.run.started_at + base::Duration::millis(1700);
  out.run.went_on = true;
  out.write(ledger);
  const Json& lost = out.summary["went_on_without_lost_agents"];
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0]["name"], out.run.agents[1].name);
  EXPECT_EQ(lost[0]["slots"], out.run.agents[1].slots);
  EXPECT_EQ(lost[0]["lost_at_s"], 1.7);
  EXPECT_EQ(out.summary["complete"], true);
  EXPECT_EQ(out.summary["verdict"]["valid"], false);
  EXPECT_EQ(out.summary["verdict"]["exit_code"], 4);
  EXPECT_LT(out.text.find("WARNING: the run went on without agents that were lost"),
            out.text.find("Verdict: INVALID"));
}

TEST(RunFolder, MissingRecordsAreDroppedNamedAndAFailure) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.run.phases[1].issued = 43;
  out.write(ledger);
  EXPECT_EQ(out.summary["n_samples_issued"], 43);
  EXPECT_EQ(out.summary["n_samples_dropped"], 3);
  EXPECT_EQ(out.summary["verdict"]["exit_code"], 4);
  EXPECT_THAT(out.text,
              HasSubstr("3 of 43 issued requests ended without a record (seq 40, 41, 42)"));
}

TEST(RunFolder, WithoutUsageTokenNumbersAreAbsentAndTheReportSaysWhy) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.run.config.token_source = TokenSource::kNone;
  out.write(ledger);
  EXPECT_TRUE(out.summary["tps"].is_null());
  EXPECT_EQ(out.summary["output_sequence_lengths"], Json::object());
  EXPECT_FALSE(out.summary["tpot"].contains("min"));
  EXPECT_EQ(out.summary["tokens"]["source"], "none");
  EXPECT_THAT(out.text, HasSubstr("Token counts: none"));
  EXPECT_THAT(out.text, Not(HasSubstr("TPOT:\n")));
}

TEST(RunFolder, WithoutStreamingThreeSeriesDoNotExist) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  out.run.config.streaming = false;
  out.write(ledger);
  EXPECT_EQ(out.summary["ttft"], Json::object());
  EXPECT_EQ(out.snapshot["metrics"].size(), 18U);  // 15 counters, 3 series
}

TEST(RunFolder, AccuracyOnlyRunsHaveNoPerformanceSummary) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  out.run.phases = {
      {"math", base::PhaseKind::kAccuracy, base::Instant{kStart}, base::Instant{kStart + 1}, 1}};
  accept(ledger, 0, 1, {ok_record(0, 0, 0, 11, 30, 60, 3)});
  out.write(ledger);
  EXPECT_FALSE(std::filesystem::exists(out.folder / "performance/result_summary.json"));
  EXPECT_EQ(out.snapshot["metrics"][1]["value"], 1);  // completed, untracked
}

TEST(RunFolder, AnEmptyRunIsStillReadable) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  out.run.state = RunState::kInterrupted;
  out.run.interrupted_by_user = true;
  out.run.phases.clear();
  out.run.agents.clear();
  out.write(ledger);
  EXPECT_EQ(out.snapshot["state"], "interrupted");
  EXPECT_THAT(out.text, HasSubstr("Duration: N/A"));
}

TEST(RunFolder, OneFileThatCannotBeWrittenIsNamedAndTheOthersAreThere) {
  Written out;
  ledger::Ledger ledger = open_ledger(out.folder);
  accept_mixed(ledger, out.run);
  std::filesystem::create_directories(out.folder / "events.jsonl/in the way");
  const auto report = make_report(out.run, ledger, {});
  ASSERT_TRUE(report);
  const auto written = write_run_folder(*report, ledger, WordPrompts(), out.folder.path());
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("events.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(out.folder / "report.txt"));
}

}  // namespace
}  // namespace tutti::report
