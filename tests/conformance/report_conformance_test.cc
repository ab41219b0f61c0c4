// The golden run of the reference client: its event file folds to its snapshot and its summaries.
// Integers are equal, floats within 1e-9 relative, keys in its order.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "coordinator/report/event_fold.h"
#include "coordinator/report/report.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using Json = nlohmann::ordered_json;

const std::string kGolden = TUTTI_SOURCE_DIR "/tests/conformance/golden/";

Json read_golden(const std::string& name) {
  std::ifstream in(kGolden + name);
  EXPECT_TRUE(in.good()) << name;
  return Json::parse(in);
}

Snapshot fold_golden() {
  TokenCounter counter;
  counter.text = report_run::count_words;
  auto snapshot = fold_events(kGolden + "events.jsonl", counter, {});
  EXPECT_TRUE(snapshot.has_value()) << snapshot.error().message;
  return snapshot ? std::move(*snapshot) : Snapshot{};
}

// Every key of `expected` is in `actual`, in the same order; `extra` allows further keys between.
void expect_same(const Json& expected, const Json& actual, bool extra, const std::string& where) {
  if (expected.is_object()) {
    ASSERT_TRUE(actual.is_object()) << where;
    if (!extra) {
      EXPECT_EQ(expected.size(), actual.size()) << where;
    }
    auto at = actual.begin();
    for (const auto& [key, value] : expected.items()) {
      while (at != actual.end() && at.key() != key) {
        ++at;
      }
      ASSERT_NE(at, actual.end()) << where << "." << key << " is missing or out of order";
      expect_same(value, at.value(), false, where + "." + key);
    }
  } else if (expected.is_array()) {
    ASSERT_TRUE(actual.is_array()) << where;
    ASSERT_EQ(expected.size(), actual.size()) << where;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_same(expected[i], actual[i], false, where + "[" + std::to_string(i) + "]");
    }
  } else if (expected.is_number_float()) {
    ASSERT_TRUE(actual.is_number_float()) << where << " should be a float, is " << actual;
    const double want = expected.get<double>();
    EXPECT_LE(std::abs(actual.get<double>() - want), std::abs(want) * 1e-9) << where;
  } else {
    EXPECT_EQ(expected, actual) << where;
  }
}

Report golden_report() {
  Report report;
  report.facts.version = "0.0.0";
  report.facts.started_wall_ns = 0;
  report.facts.config.warmup = {true, 3, true, false, 42};
  report.snapshot = fold_golden();
  return report;
}

TEST(GoldenRun, EventsFoldToTheFinalSnapshot) {
  expect_same(read_golden("final_snapshot.json"), Json::parse(snapshot_json(fold_golden())), false,
              "snapshot");
}

TEST(GoldenRun, ConcurrencySummary) {
  Report report = golden_report();
  report.facts.config.load_pattern = {"concurrency", std::nullopt, 16, true};
  report.summary = summarize(report.snapshot, report.facts.config.load_pattern);
  expect_same(read_golden("result_summary.concurrency.json"),
              Json::parse(result_summary_json(report)), true, "summary");
  EXPECT_EQ(report.summary.n_succeeded, 120);
  EXPECT_EQ(report.summary.n_dropped, 0);
  EXPECT_FALSE(report.summary.e2e_avg_interactivity.has_value());
}

TEST(GoldenRun, PoissonSummaryOverTheLegacyWindow) {
  Report report = golden_report();
  report.facts.config.load_pattern = {"poisson", 333.0, std::nullopt, true};
  report.summary = summarize(report.snapshot, report.facts.config.load_pattern);
  expect_same(read_golden("result_summary.poisson_legacy.json"),
              Json::parse(result_summary_json(report)), true, "summary");
}

TEST(GoldenRun, PoissonWithoutTheLegacyWindowIsAsConcurrency) {
  const Snapshot snapshot = fold_golden();
  const Summary plain = summarize(snapshot, {"poisson", 333.0, std::nullopt, false});
  const Summary other = summarize(snapshot, {"concurrency", std::nullopt, 16, true});
  EXPECT_EQ(plain.qps, other.qps);
  EXPECT_FALSE(plain.legacy_window_ns.has_value());
}

// The first bucket of the golden TTFT histogram, as the reference's renderer prints it.
TEST(GoldenRun, ReportTextUsesTheReferencesLines) {
  Report report = golden_report();
  report.facts.config.load_pattern = {"concurrency", std::nullopt, 16, true};
  report.summary = summarize(report.snapshot, report.facts.config.load_pattern);
  const std::string text = report_text(report);
  for (const char* line :
       {"Duration: 0.50 seconds\n", "QPS: 279.38\n", "TPS: 4416.22\n", "  Min: 9.03 ms\n",
        "      [9.03, 9.75) |############ 12\n", "    99.9: 14.93 ms\n", "    99.9: N/A ms\n",
        "  load_pattern: type=concurrency, target_qps=None, target_concurrency=16\n",
        "  scheduler_random_seed: 42\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(GoldenRun, ALineThatIsNoEventIsNamed) {
  report_run::TempFolder folder;
  std::ofstream(folder / "e.jsonl") << read_golden("final_snapshot.json").dump() << "\n";
  const auto folded = fold_events(folder / "e.jsonl", {}, {});
  ASSERT_FALSE(folded);
  EXPECT_NE(folded.error().message.find("e.jsonl:1: not an event"), std::string::npos);
}

}  // namespace
}  // namespace tutti::report
