// ITL from the agents' histograms or from every gap, TTFT without connection set-up, and what
// set-up took: who counts, and that histogram and records are held against each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "coordinator/report/report.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using namespace report_run;  // NOLINT: the tests' vocabulary
using Json = nlohmann::json;
using testing::HasSubstr;

// Three gaps: 10, 20 and 30 ms after a first token at `first_ms`.
wire::Record with_gaps(std::uint16_t phase, base::Seq seq, std::int64_t first_ms) {
  wire::Record record = ok_record(0, phase, seq, first_ms - 5, first_ms, first_ms + 70, 4);
  record.last_token_at = record.first_token_at + base::Duration::millis(60);
  return record;
}

wire::PhaseGaps gaps_of(std::uint16_t phase, std::uint32_t times) {
  stats::LiveHistogram histogram;
  for (std::uint32_t i = 0; i < times; ++i) {
    for (const std::int64_t ms : {10, 20, 30}) {
      histogram.add(ms * kMs);
    }
  }
  return {phase, histogram.cells()};
}

struct TimedRun {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();

  void accept(std::vector<wire::Record> records, std::vector<wire::PhaseGaps> gaps) {
    wire::RecordBatch batch;
    batch.number = ++number;
    batch.records = std::move(records);
    batch.gaps = std::move(gaps);
    ASSERT_TRUE(ledger.accept(0, batch));
  }
  Report report() {
    auto made = make_report(run, ledger, {});
    TUTTI_CHECK(made.has_value());
    return std::move(*made);
  }
  std::uint64_t number = 0;
};

TEST(ReportTiming, ItlOfAHistogramIsOfThePerformancePhaseAndNamesItsError) {
  TimedRun it;
  wire::Record cut = with_gaps(1, 1, 300);  // a failed stream's gaps count as its TTFT does
  cut.outcome = wire::Outcome::kFailed;
  cut.failure = wire::Failure::kTruncated;
  it.accept({with_gaps(0, 0, 20), with_gaps(1, 0, 200)}, {gaps_of(0, 1), gaps_of(1, 1)});
  it.accept({cut, failed_record(0, 1, 2, 400, 410, wire::Failure::kConnect, "refused")},
            {gaps_of(1, 1)});
  const Report report = it.report();
  const Itl& itl = report.timing.itl;
  EXPECT_FALSE(itl.exact);
  EXPECT_EQ(itl.count, 6U);
  EXPECT_EQ(itl.counted, 6U);
  EXPECT_EQ(itl.total_ns, 120 * kMs);
  EXPECT_EQ(itl.mean_ns(), 20.0 * kMs);
  EXPECT_NEAR(itl.median_ns(), 20.0 * kMs, 20.0 * kMs / 128);
  EXPECT_NEAR(itl.max_ns, 30.0 * kMs, 30.0 * kMs / 128);
  EXPECT_NEAR(itl.min_ns, 10.0 * kMs, 10.0 * kMs / 128);
  const std::string text = report_text(report);
  EXPECT_THAT(text, HasSubstr("ITL (from a histogram, ± 0.8 %): p50 "));
  EXPECT_THAT(text, HasSubstr("mean 20.000 ms, exact; 6 gaps"));
  EXPECT_THAT(text, HasSubstr("But ITL's"));
  EXPECT_THAT(text, testing::Not(HasSubstr("WARNING: the percentiles")));
  const Json json = Json::parse(result_summary_json(report))["itl"];
  EXPECT_EQ(json["source"], "histogram");
  EXPECT_EQ(json["count"], 6);
  EXPECT_EQ(json["total"], 120 * kMs);
  EXPECT_EQ(json["avg"], 20.0 * kMs);
  EXPECT_EQ(json["relative_error"], 1.0 / 128);
  ASSERT_EQ(json["edges"].size(), 3U);
  EXPECT_EQ(json["counts"], Json({2, 2, 2}));
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t gap = (static_cast<std::int64_t>(i) + 1) * 10 * kMs;
    EXPECT_LE(json["edges"][i][0], gap);
    EXPECT_GT(json["edges"][i][1], gap);
  }
}

TEST(ReportTiming, AHistogramThatDoesNotMatchTheRecordsIsSaid) {
  TimedRun it;
  it.accept({with_gaps(1, 0, 200)}, {gaps_of(1, 2)});
  const Report report = it.report();
  EXPECT_EQ(report.timing.itl.count, 3U);
  EXPECT_EQ(report.timing.itl.counted, 6U);
  EXPECT_THAT(report_text(report),
              HasSubstr("WARNING: the percentiles stand on 6 gaps, the records have 3"));
}

TEST(ReportTiming, ItlOfKeptStampsIsExact) {
  TimedRun it;
  it.run.config.stream_all_chunks = true;
  wire::Record record = with_gaps(1, 0, 200);
  for (const std::int64_t ms : {10, 30, 60}) {
    record.chunk_at.push_back(record.first_token_at + base::Duration::millis(ms));
  }
  it.accept({record}, {});
  const Report report = it.report();
  const Itl& itl = report.timing.itl;
  EXPECT_TRUE(itl.exact);
  EXPECT_EQ(itl.count, 3U);
  EXPECT_EQ(itl.counted, 3U);
  EXPECT_EQ(itl.median_ns(), 20.0 * kMs);
  EXPECT_EQ(itl.max_ns, 30.0 * kMs);
  EXPECT_EQ(itl.relative_error(), 0);
  EXPECT_THAT(report_text(report), HasSubstr("ITL (exact): p50 20.000 ms"));
  const Json json = Json::parse(result_summary_json(report))["itl"];
  EXPECT_EQ(json["source"], "exact");
  EXPECT_EQ(json["percentiles"]["50.0"], 20.0 * kMs);
  EXPECT_TRUE(json["edges"].is_null());
  EXPECT_TRUE(json["counts"].is_null());
}

TEST(ReportTiming, TtftFromSentLeavesOutWhatCameBeforeAndSetUpIsToldByPart) {
  TimedRun it;
  std::vector<wire::Record> records;
  for (base::Seq seq = 0; seq < 4; ++seq) {
    wire::Record record = with_gaps(1, seq, 200 + 10 * static_cast<std::int64_t>(seq));
    record.connection_reused = seq >= 2;
    if (seq < 2) {  // 3 ms of set-up before the request went out
      record.dns_us = seq == 0 ? 400 : 0;
      record.connect_us = 2'000 + 100 * static_cast<std::uint32_t>(seq);
      record.tls_us = 600;
      record.sent_at = record.issued_at + base::Duration::millis(3);
    } else {
      record.sent_at = record.issued_at;
    }
    records.push_back(record);
  }
  wire::Record warm = with_gaps(0, 0, 20);
  warm.connection_reused = false;
  warm.connect_us = 9'999'999;
  records.push_back(warm);
  it.accept(records, {gaps_of(1, 4), gaps_of(0, 1)});
  const Report report = it.report();
  const Timing& timing = report.timing;
  EXPECT_EQ(timing.ttft_from_sent.count, 4U);
  EXPECT_EQ(stats::to_double(timing.ttft_from_sent.min), 2.0 * kMs);
  EXPECT_EQ(stats::to_double(timing.ttft_from_sent.max), 5.0 * kMs);
  EXPECT_EQ(stats::to_double(report.snapshot.ttft.min), 5.0 * kMs)
      << "the reference's is untouched";
  EXPECT_EQ(timing.first_on_connection, 2U);
  EXPECT_EQ(timing.sent, 4U);
  ASSERT_TRUE(timing.dns && timing.tcp && timing.tls);
  EXPECT_EQ(timing.dns->count, 1U);
  EXPECT_EQ(timing.dns->max_us, 400U);
  EXPECT_EQ(timing.tcp->count, 2U);
  EXPECT_EQ(timing.tcp->min_us, 2'000U);
  EXPECT_EQ(timing.tcp->max_us, 2'100U);
  EXPECT_EQ(timing.tls->p50_us, 600U);
  const std::string text = report_text(report);
  EXPECT_THAT(text, HasSubstr("the first on their connection: 2 of 4; what set-up took:"));
  EXPECT_THAT(text, HasSubstr("TCP: min 2.000 ms, p50 2.000 ms, p99 2.000 ms, max 2.100 ms, of 2"));
  const Json json = Json::parse(result_summary_json(report));
  EXPECT_EQ(json["ttft_from_sent"]["max"], 5 * kMs);
  EXPECT_EQ(json["connection_setup"]["first_on_connection"], 2);
  EXPECT_EQ(json["connection_setup"]["tcp_us"]["count"], 2);
}

TEST(ReportTiming, WithoutStreamsThereIsNoItlAndNoTtftFromSent) {
  TimedRun it;
  it.run.config.streaming = false;
  wire::Record record = with_gaps(1, 0, 200);
  record.streamed = false;
  it.accept({record}, {});
  const Report report = it.report();
  EXPECT_EQ(report.timing.itl.count, 0U);
  EXPECT_EQ(report.timing.ttft_from_sent.count, 0U);
  EXPECT_THAT(report_text(report), testing::Not(HasSubstr("ITL (")));
}

TEST(ReportTiming, TheWorstReadLagIsToldWithItsAgent) {
  TimedRun it;
  it.accept({with_gaps(1, 0, 200)}, {gaps_of(1, 1)});
  EXPECT_THAT(report_text(it.report()), testing::Not(HasSubstr("read lag")));
  it.run.agents[0].health.read_lag_p99 = base::Duration::micros(40);
  it.run.agents[1].health.read_lag_p99 = base::Duration::micros(1'250);
  EXPECT_THAT(report_text(it.report()),
              HasSubstr("(read lag): p99 of the worst interval 1.250 ms, two"));
}

}  // namespace
}  // namespace tutti::report
