// The client's health in the run folder: which intervals are judged, on whose clock; the file; the
// mark in report.txt and summary; and that a closed loop's first queries are not called late.

#include "coordinator/report/client_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/report/run_folder.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using namespace report_run;  // NOLINT: the tests' vocabulary
using testing::HasSubstr;
using testing::Not;

// An interval of `agent`, ms after kStart, told on the agent's own clock.
verdict::HealthRow told(std::uint32_t agent, std::uint32_t phase, std::int64_t from_ms,
                        std::int64_t to_ms) {
  verdict::HealthRow row;
  row.phase = phase;
  row.in_flight = 2;
  row.health.from = base::Instant{kStart + from_ms * kMs - kOffset[agent]};
  row.health.to = base::Instant{kStart + to_ms * kMs - kOffset[agent]};
  return row;
}

struct Bench {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();

  Bench() { accept_mixed(ledger, run); }
  void tell(std::uint32_t agent, const verdict::HealthRow& row) {
    run.agents[agent].health.see(row.health);
    run.agents[agent].health_series.add(row);
  }
  Report report() {
    auto made = make_report(run, ledger, {});
    TUTTI_CHECK(made.has_value());
    return std::move(*made);
  }
};

// The performance phase of accept_mixed: starts at 100 ms, its last issue is at 1660 ms.
TEST(ClientReport, WarmUpAndDrainAreNotJudged) {
  Bench bench;
  const std::vector<verdict::HealthRow> outside = {
      told(1, 0, 50, 99),      // warm-up
      told(1, 1, 40, 90),      // armed, not begun
      told(1, 1, 1700, 1900),  // drain
  };
  for (auto row : outside) {
    row.health.turn_max = base::Duration::seconds(2);
    bench.tell(1, row);
  }
  EXPECT_FALSE(bench.report().client.bound());
  auto inside = told(1, 1, 600, 1600);
  inside.health.turn_max = base::Duration::seconds(2);
  bench.tell(1, inside);
  const Report report = bench.report();
  ASSERT_EQ(report.client.findings.size(), 1U);
  EXPECT_EQ(report.client.findings[0].agent, "two");
  EXPECT_EQ(report.client.findings[0].at, base::Instant{kStart + 600 * kMs});
}

TEST(ClientReport, ABurstIsJudgedToItsLastReply) {
  Bench bench;
  auto late = told(1, 1, 1670, 1700);  // after the last issue, before the last reply
  late.health.turn_max = base::Duration::seconds(2);
  bench.tell(1, late);
  EXPECT_FALSE(bench.report().client.bound());
  bench.run.phases[1].pacing = base::Pacing::kBurst;
  EXPECT_TRUE(bench.report().client.bound());
}

TEST(ClientReport, TheMarkIsInTextAndSummaryAndChangesNeitherValidityNorExitCode) {
  Bench well;
  Bench ill;
  for (std::uint32_t agent = 0; agent < 2; ++agent) {
    well.tell(agent, told(agent, 1, 100, 1100));
    auto row = told(agent, 1, 100, 1100);
    row.health.connect_failures = agent;
    ill.tell(agent, row);
  }
  const Report without = well.report();
  const Report with = ill.report();
  EXPECT_EQ(with.verdict.valid, without.verdict.valid);
  EXPECT_EQ(with.verdict.exit_code, without.verdict.exit_code);
  EXPECT_THAT(report_text(without), HasSubstr("Client-bound: no; every limit was kept over 2 "));
  for (const std::string& text : {report_text(with), console_text(with)}) {
    EXPECT_THAT(text, HasSubstr("Client-bound: YES: this client may have shaped these numbers. The "
                                "verdict and the exit code stay as they are.\n"));
    EXPECT_THAT(text, HasSubstr("  - agent two: queries without a local port, descriptor or memory "
                                "1 queries (limit 0), beyond it in 1.0 s of 1.0 s; use more "));
    EXPECT_THAT(text, HasSubstr("[worst from 0.1 s of the run]"));
  }
  const auto summary = nlohmann::json::parse(result_summary_json(with));
  const auto& health = summary["distributed"]["client_health"];
  EXPECT_EQ(health["client_bound"], true);
  ASSERT_EQ(health["findings"].size(), 1U);
  EXPECT_EQ(health["findings"][0]["agent"], "two");
  EXPECT_EQ(health["findings"][0]["metric"], "connect_failures");
  EXPECT_EQ(health["findings"][0]["value"], 1.0);
  EXPECT_EQ(health["findings"][0]["limit"], 0.0);
  EXPECT_NEAR(health["findings"][0]["at_s"].get<double>(), 0.1, 1e-9);
  EXPECT_EQ(health["limits"]["cpu_thread_percent"], 80.0);
  EXPECT_EQ(nlohmann::json::parse(
                result_summary_json(without))["distributed"]["client_health"]["client_bound"],
            false);
}

TEST(ClientReport, WhereNoUsageCameItSaysHowToAskForItAndShowsNoTokens) {
  Bench bench;
  Report report = bench.report();
  const std::string hint = "(--tokenizer names the model's; --token-source usage asks servers)";
  for (const std::string& text : {report_text(report), console_text(report)}) {
    EXPECT_THAT(text, Not(HasSubstr(hint)));
  }
  report.snapshot.osl.count = 0;
  for (auto& part : report.breakdown.frontends) {
    part.output_tokens = 0;
    part.completed = 77;
    part.failed = 6;
  }
  for (const std::string& text : {report_text(report), console_text(report)}) {
    EXPECT_THAT(text, HasSubstr(hint));
  }
  EXPECT_THAT(report_text(report), HasSubstr("        77        6            - "));
}

TEST(ClientReport, NothingToldIsNotCalledHealthy) {
  Bench bench;
  const Report report = bench.report();
  EXPECT_THAT(report_text(report), HasSubstr("Client-bound: not known"));
  EXPECT_THAT(report_text(report), Not(HasSubstr("- Client health")));
  const auto summary = nlohmann::json::parse(result_summary_json(report));
  EXPECT_TRUE(summary["distributed"]["client_health"]["client_bound"].is_null());
}

TEST(ClientReport, TheFileHasALinePerIntervalUnderAHeaderWithUnits) {
  Bench bench;
  bench.run.agents[0].name = "one, \"quoted\"";
  auto row = told(0, 1, 100, 1100);
  row.health.issue_lag_p99 = base::Duration::micros(250);
  row.health.issue_lag_count = 7;
  row.health.cpu_session = 0.5;
  bench.tell(0, row);
  bench.tell(1, told(1, 0, 10, 90));
  const Report report = bench.report();
  ASSERT_TRUE(write_run_folder(report, bench.ledger, WordPrompts(), bench.folder.path()));
  std::istringstream file(read_file(bench.folder / "performance/client_health.csv"));
  std::string head;
  std::string first;
  std::string second;
  std::string end;
  std::getline(file, head);
  std::getline(file, first);
  std::getline(file, second);
  EXPECT_FALSE(std::getline(file, end));
  EXPECT_THAT(head, testing::StartsWith("agent,phase,judged,from_s,length_s,in_flight,"
                                        "issue_lag_count,issue_lag_p50_us,issue_lag_p99_us,"));
  EXPECT_THAT(first, testing::StartsWith(
                         "\"one, \"\"quoted\"\"\",performance,1,0.100,1.000,2,7,0.0,250.0,"));
  EXPECT_THAT(first, HasSubstr(",0.0,50.0,"));
  EXPECT_THAT(second, testing::StartsWith("two,warmup,0,0.010,0.080,"));
  EXPECT_EQ(std::count(head.begin(), head.end(), ','),
            std::count(second.begin(), second.end(), ','));
}

TEST(ClientReport, WorstValuesComeWithTheSecondTheyWereIn) {
  Bench bench;
  for (std::int64_t second = 0; second < 3; ++second) {
    auto row = told(0, 1, 100 + second * 1000, 1100 + second * 1000);
    row.health.issue_lag_p99 = base::Duration::micros(second == 1 ? 900 : 100);
    row.health.rss_bytes = static_cast<std::uint64_t>(1000 + second);
    bench.tell(0, row);
  }
  const auto summary = nlohmann::json::parse(result_summary_json(bench.report()));
  const auto& agent = summary["distributed"]["agents"][0];
  EXPECT_EQ(agent["worst"]["issue_lag_p99_ns"], 900'000);
  EXPECT_NEAR(agent["worst_at_s"]["issue_lag_p99_ns"].get<double>(), 1.1, 1e-9);
  EXPECT_NEAR(agent["worst_at_s"]["rss_bytes"].get<double>(), 2.1, 1e-9);
  EXPECT_FALSE(agent["worst_at_s"].contains("records_lost")) << "never anything but 0";
  EXPECT_THAT(report_text(bench.report()), HasSubstr("0.90 @1 "));
  EXPECT_THAT(report_text(bench.report()),
              HasSubstr("- Client health (all phases, warm-up included) -"));
}

// Two agents with a slot each; the second one's first query goes out 30 ms late.
TEST(ClientReport, QueriesThatFillTheSlotsOfAClosedLoopAreNotLate) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  run.phases[1].pacing = base::Pacing::kClosedLoop;
  run.phases[1].issued = 5;
  const auto due = [](wire::Record record, std::int64_t late_us) {
    record.due_at = record.issued_at - base::Duration::micros(late_us);
    return record;
  };
  accept(
      ledger, 0, 1,
      {due(ok_record(0, 1, 0, 100, 110, 200, 3), 0), due(ok_record(0, 1, 2, 201, 210, 300, 3), 40),
       due(ok_record(0, 1, 4, 301, 310, 400, 3), 60)});
  accept(ledger, 1, 1,
         {due(ok_record(1, 1, 1, 130, 140, 230, 3), 30'000),
          due(ok_record(1, 1, 3, 231, 240, 330, 3), 50)});
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->breakdown.fills, 2U);
  EXPECT_EQ(report->breakdown.fill->max_ns, 30 * kMs);
  EXPECT_EQ(report->breakdown.all.issue_lag->max_ns, 60'000);
  EXPECT_EQ(report->breakdown.agents[1].issue_lag->p99_ns, 50'000);
  EXPECT_THAT(
      report_text(*report),
      HasSubstr("without the 2 queries that filled the slots at the phase's start; the last "
                "of them went\n    out 30.00 ms after it"));
  // In a burst no query is promised an instant.
  run.phases[1].pacing = base::Pacing::kBurst;
  EXPECT_FALSE(make_report(run, ledger, {})->breakdown.all.issue_lag);
  run.phases[1].pacing = base::Pacing::kTimed;
  EXPECT_EQ(make_report(run, ledger, {})->breakdown.all.issue_lag->max_ns, 30 * kMs);
}

// Of `queries` good ones after one another, the first `first` go to frontend 0, the rest to 1.
struct Shared {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();

  Shared(std::int64_t queries, std::int64_t first, bool fails = false) {
    std::vector<wire::Record> records;
    for (std::int64_t i = 0; i < queries; ++i) {
      const auto seq = static_cast<base::Seq>(i);
      records.push_back(ok_record(0, 1, seq, 100 + i * 50, 101 + i * 50, 150 + i * 50, 3));
      if (fails && i == 0) {
        records.back() = failed_record(0, 1, seq, 100, 150, wire::Failure::kReset, "reset");
      }
      records.back().frontend = i < first ? 0 : 1;
    }
    accept(ledger, 0, 1, std::move(records));
    run.phases[1].issued = static_cast<std::uint64_t>(queries);
  }
  bool uneven() {
    const auto report = make_report(run, ledger, {});
    TUTTI_CHECK(report.has_value());
    const auto& findings = report->client.findings;
    return std::any_of(findings.begin(), findings.end(),
                       [](const auto& f) { return f.metric == "frontend_imbalance"; });
  }
};

TEST(ClientReport, OnlyABalanceOfEqualSharesIsJudgedAndNoneWithAFailure) {
  Shared good(100, 60);  // 10 off the mean of 50
  good.run.config.balance = base::Balance::kRoundRobin;
  EXPECT_TRUE(good.uneven());
  for (const auto balance :
       {base::Balance::kPinned, base::Balance::kWeighted, base::Balance::kAffinity}) {
    good.run.config.balance = balance;
    EXPECT_FALSE(good.uneven()) << static_cast<int>(balance);
  }
  Shared failing(100, 60, true);
  failing.run.config.balance = base::Balance::kRoundRobin;
  EXPECT_FALSE(failing.uneven());
}

TEST(ClientReport, LeastInFlightIsJudgedByWhatIsInFlight) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  std::vector<wire::Record> records;
  for (std::int64_t i = 0; i < 42; ++i) {  // 40 long ones on frontend 0, two short ones on 1
    records.push_back(
        ok_record(0, 1, static_cast<base::Seq>(i), 100 + i, 150, i < 40 ? 900 : 160, 3));
    records.back().frontend = i < 40 ? 0 : 1;
  }
  accept(ledger, 0, 1, std::move(records));
  RunFacts run = facts();
  run.phases[1].issued = 42;
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  ASSERT_EQ(run.config.balance, base::Balance::kLeastInFlight);
  const auto& findings = report->client.findings;
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [](const auto& f) { return f.metric == "frontend_imbalance"; });
  ASSERT_NE(found, findings.end());
  EXPECT_THAT(found->text, HasSubstr("queries in flight on the mean"));
}

TEST(ClientReport, AFrontendMayBeAQueryOfEachWorkerOffTheMean) {
  Shared run(100, 54);
  run.run.config.balance = base::Balance::kRoundRobin;
  EXPECT_FALSE(run.uneven()) << "4 off, two agents of two workers";
  run.run.agents[0].workers = 1;
  EXPECT_TRUE(run.uneven());
}

TEST(ClientReport, InFlightIsMeasuredByAgentAndByEndpoint) {
  Bench bench;
  const Breakdown breakdown = bench.report().breakdown;
  ASSERT_EQ(breakdown.agents_in_flight.size(), 2U);
  ASSERT_EQ(breakdown.frontends_in_flight.size(), 2U);
  EXPECT_NEAR(breakdown.agents_in_flight[0] + breakdown.agents_in_flight[1],
              *breakdown.mean_in_flight, 1e-9);
  EXPECT_NEAR(breakdown.frontends_in_flight[0] + breakdown.frontends_in_flight[1],
              *breakdown.mean_in_flight, 1e-9);
}

}  // namespace
}  // namespace tutti::report
