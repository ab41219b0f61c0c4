// Who counts, over which window, and what the headline numbers are.

#include <gtest/gtest.h>

#include "coordinator/report/fold.h"
#include "coordinator/report/summary.h"

namespace tutti::report {
namespace {

using base::Instant;

Row row(std::int64_t issued, std::int64_t first, std::int64_t done) {
  Row out;
  out.tracked = true;
  out.issued_at = Instant{issued};
  out.first_token_at = Instant{first};
  out.completed_at = Instant{done};
  return out;
}

struct Folded {
  Fold fold{Instant{1000}, true};
  Folded() { fold.begin_tracking(Instant{1100}); }
  Snapshot finish() { return fold.finish(RunState::kComplete, true, Instant{9000}); }
};

TEST(Fold, ATrackedSuccessCountsEverywhere) {
  Folded it;
  Row good = row(1200, 1300, 1700);
  good.finish_reason = wire::FinishReason::kLength;
  good.prompt_tokens = 7;
  good.output_tokens = 5;
  good.tokens_after_first = 4;
  it.fold.add(good);
  const Snapshot out = it.finish();
  EXPECT_EQ(out.counters.tracked_issued, 1);
  EXPECT_EQ(out.counters.tracked_completed, 1);
  EXPECT_EQ(out.counters.tracked_failed, 0);
  EXPECT_EQ(out.counters.finish_length, 1);
  EXPECT_EQ(out.latency.count, 1U);
  EXPECT_EQ(stats::to_double(out.latency.total), 500);
  EXPECT_EQ(stats::to_double(out.ttft.total), 100);
  EXPECT_EQ(stats::to_double(out.tpot.total), 100.0);
  EXPECT_EQ(stats::to_double(out.isl.total), 7);
  EXPECT_EQ(stats::to_double(out.osl.total), 5);
  EXPECT_EQ(out.counters.tracked_duration_ns, 600);  // from the start event, not the first issue
  EXPECT_EQ(out.counters.legacy_window_ns, 500);     // from the first issue
  EXPECT_EQ(out.counters.total_duration_ns, 700);    // from the session's start
}

TEST(Fold, ATrackedFailureHasLatencyAndTtftButNoTokensAndNoFinishReason) {
  Folded it;
  Row bad = row(1200, 1300, 1700);
  bad.errors = 1;
  bad.finish_reason = wire::FinishReason::kStop;
  bad.output_tokens = 5;
  bad.tokens_after_first = 4;
  it.fold.add(bad);
  const Snapshot out = it.finish();
  EXPECT_EQ(out.counters.tracked_completed, 1);
  EXPECT_EQ(out.counters.tracked_failed, 1);
  EXPECT_EQ(out.counters.finish_stop, 0);
  EXPECT_EQ(out.latency.count, 1U);
  EXPECT_EQ(out.ttft.count, 1U);
  EXPECT_EQ(out.osl.count, 0U);
  EXPECT_EQ(out.tpot.count, 0U);
}

TEST(Fold, ATrackedQueryThatNeverEndsIsIssuedAndHasATtftOnly) {
  Folded it;
  Row open = row(1200, 1300, 0);
  it.fold.add(open);
  const Snapshot out = it.finish();
  EXPECT_EQ(out.counters.tracked_issued, 1);
  EXPECT_EQ(out.counters.tracked_completed, 0);
  EXPECT_EQ(out.ttft.count, 1U);
  EXPECT_EQ(out.latency.count, 0U);
  EXPECT_EQ(out.counters.tracked_duration_ns, 0);
  EXPECT_EQ(out.counters.legacy_window_ns, 0);
}

TEST(Fold, UntrackedQueriesMoveTotalsOnly) {
  Folded it;
  Row other = row(1200, 1300, 1700);
  other.tracked = false;
  other.errors = 1;
  it.fold.add(other);
  it.fold.add_stray_completion(Instant{1800});
  it.fold.add_stray_error(Instant{1900});
  const Snapshot out = it.finish();
  EXPECT_EQ(out.counters.total_issued, 1);
  EXPECT_EQ(out.counters.total_completed, 2);
  EXPECT_EQ(out.counters.total_failed, 2);
  EXPECT_EQ(out.counters.tracked_issued, 0);
  EXPECT_EQ(out.counters.tracked_failed, 0);
  EXPECT_EQ(out.latency.count, 0U);
  EXPECT_EQ(out.counters.total_duration_ns, 900);
}

TEST(Fold, OneChunkRepliesHaveNoTpotAndChunkDeltasStartAtTheFirst) {
  Folded it;
  Row one = row(1200, 1300, 1700);
  one.output_tokens = 1;
  one.tokens_after_first = 0;
  it.fold.add(one);
  const std::vector<Instant> later{Instant{1310}, Instant{1340}};
  Row chunks = row(1200, 1300, 1700);
  chunks.chunk_at = later;
  it.fold.add(chunks);
  const Snapshot out = it.finish();
  EXPECT_EQ(out.tpot.count, 0U);
  EXPECT_EQ(out.chunk_delta.count, 2U);
  EXPECT_EQ(stats::to_double(out.chunk_delta.min), 10);
  EXPECT_EQ(stats::to_double(out.chunk_delta.max), 30);
}

TEST(Fold, TheLegacyWindowEndsWithTheLastIssuedOfTheCompleted) {
  Folded it;
  it.fold.add(row(1200, 0, 9999));  // completes last, was issued first
  it.fold.add(row(1400, 0, 1500));
  it.fold.add(row(1450, 0, 0));  // issued last, never completed
  EXPECT_EQ(it.finish().counters.legacy_window_ns, 300);
}

TEST(Fold, TrackedDurationAddsUpTrackingBlocks) {
  Folded it;
  it.fold.add(row(1200, 0, 1400));
  const std::uint32_t second = it.fold.begin_tracking(Instant{5000});
  Row later = row(5100, 0, 5700);
  later.block = second;
  it.fold.add(later);
  EXPECT_EQ(it.finish().counters.tracked_duration_ns, 300 + 700);
}

TEST(Fold, LostQueriesAreIssuedAndDropped) {
  Folded it;
  it.fold.add(row(1200, 1300, 1700));
  it.fold.add_lost(true, 2);
  const Summary summary = summarize(it.finish(), {});
  EXPECT_EQ(summary.n_issued, 3);
  EXPECT_EQ(summary.n_completed, 1);
  EXPECT_EQ(summary.n_dropped, 2);
  EXPECT_EQ(summary.n_succeeded, 1);
}

TEST(Fold, EstimatesBelongToCompleteRunsOnly) {
  Folded whole;
  EXPECT_TRUE(whole.finish().ttft.early_stopping.has_value());
  Folded cut;
  const Snapshot out = cut.fold.finish(RunState::kInterrupted, true, {});
  EXPECT_FALSE(out.ttft.early_stopping.has_value());
  EXPECT_FALSE(out.complete());
}

TEST(Summarize, InteractivityIsTokensPerSecondOfLatencyUntilOneFails) {
  Folded it;
  Row good = row(1'000'000'000, 0, 3'000'000'000);
  good.output_tokens = 40;
  it.fold.add(good);
  it.fold.add(good);
  EXPECT_DOUBLE_EQ(*summarize(it.finish(), {}).e2e_avg_interactivity, 20.0);
  Row bad = good;
  bad.errors = 1;
  it.fold.add(bad);
  EXPECT_FALSE(summarize(it.finish(), {}).e2e_avg_interactivity.has_value());
}

TEST(Summarize, NothingCompletedHasNoRatesAndNoDuration) {
  Folded it;
  it.fold.add(row(1200, 0, 0));
  const Summary summary = summarize(it.finish(), {"poisson", 10.0, std::nullopt, true});
  EXPECT_FALSE(summary.qps.has_value());
  EXPECT_FALSE(summary.tps.has_value());
  EXPECT_FALSE(summary.duration_ns.has_value());
  EXPECT_FALSE(summary.legacy_window_ns.has_value());
}

TEST(Summarize, WithoutTokenCountsThereIsNoTps) {
  Folded it;
  it.fold.add(row(1200, 1300, 1700));
  const Summary summary = summarize(it.finish(), {});
  EXPECT_TRUE(summary.qps.has_value());
  EXPECT_FALSE(summary.tps.has_value());
}

TEST(Summarize, OnePoissonCompletionFallsBackToTheTrackedDuration) {
  Folded it;
  it.fold.add(row(1200, 1300, 1700));
  const Summary summary = summarize(it.finish(), {"poisson", 10.0, std::nullopt, true});
  EXPECT_FALSE(summary.legacy_window_ns.has_value());
  EXPECT_DOUBLE_EQ(*summary.qps, 1 / 600e-9);
}

}  // namespace
}  // namespace tutti::report
