// report.txt and the terminal's summary as people see them. TUTTI_UPDATE_GOLDEN=1 rewrites the
// files; read the difference before you keep it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "coordinator/report/report.h"
#include "coordinator/report/run_folder.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using namespace report_run;  // NOLINT: the tests' vocabulary

void expect_golden(const std::string& name, const std::string& actual) {
  const std::string path = std::string(TUTTI_SOURCE_DIR) + "/tests/golden/data/" + name;
  if (std::getenv("TUTTI_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << actual;
  }
  EXPECT_EQ(read_file(path), actual)
      << "differs from " << path << "; TUTTI_UPDATE_GOLDEN=1 rewrites it";
}

TEST(ReportGolden, ARunWithFailuresOverTwoAgents) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_mixed(ledger, run);
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  expect_golden("report.mixed.txt", report_text(*report));
  expect_golden("report.mixed.console.txt", console_text(*report));
  expect_golden("report.mixed.summary.json", result_summary_json(*report));
}

TEST(ReportGolden, AnInterruptedPoissonRunThatLostAnAgent) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_mixed(ledger, run);
  run.state = RunState::kInterrupted;
  run.interrupted_by_user = true;
  run.phases[1].stop_at = {};
  run.phases[1].issued = 41;
  run.config.load_pattern = {"poisson", 100.0, std::nullopt, true};
  run.config.warmup = {};
  run.agents[1].lost_at = base::Instant{kStart + 1700 * kMs};
  verdict::HealthRow busy;
  busy.phase = 1;
  busy.health.from = base::Instant{kStart + 300 * kMs - kOffset[0]};  // the agent's own clock
  busy.health.to = busy.health.from + base::Duration::seconds(1);
  busy.health.cpu_busiest_worker = 0.91;
  run.agents[0].health_series.add(busy);
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  expect_golden("report.interrupted.console.txt", console_text(*report));
}

TEST(ReportGolden, TheEventFile) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_mixed(ledger, run);
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  ASSERT_TRUE(write_run_folder(*report, ledger, WordPrompts(), folder.path()));
  expect_golden("report.mixed.events.jsonl", read_file(folder / "events.jsonl"));
}

}  // namespace
}  // namespace tutti::report
