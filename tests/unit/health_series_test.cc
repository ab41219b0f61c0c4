// The series is bounded whatever a run's length, and merging keeps the worst and every count.

#include "coordinator/report/health_series.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tutti::report {
namespace {

using base::Duration;
using base::Instant;

verdict::HealthRow row(std::int64_t second, std::uint32_t phase = 1) {
  verdict::HealthRow out;
  out.phase = phase;
  out.in_flight = 5;
  out.health.from = Instant{(second + 1) * 1'000'000'000};
  out.health.to = out.health.from + Duration::seconds(1);
  out.health.issue_lag_p99 = Duration::micros(second % 100);
  out.health.stalls = 1;
  out.health.retransmits = 2;
  out.health.connect_failures = 3;
  return out;
}

TEST(HealthSeries, KeepsEverySecondUpToItsBound) {
  HealthSeries series(64);
  for (std::int64_t s = 0; s < 64; ++s) {
    series.add(row(s));
  }
  EXPECT_EQ(series.rows().size(), 64U);
  EXPECT_EQ(series.intervals_per_row(), 1U);
  EXPECT_EQ(series.rows()[17].health.from, row(17).health.from);
}

TEST(HealthSeries, BeyondItMergesPairsAndLosesNeitherTimeNorCountNorTheWorst) {
  HealthSeries series(64);
  constexpr std::int64_t kSeconds = 1000;
  for (std::int64_t s = 0; s < kSeconds; ++s) {
    auto next = row(s);
    next.health.turn_max = s == 777 ? Duration::millis(1500) : Duration{};
    series.add(next);
    ASSERT_LE(series.rows().size(), 64U);
  }
  EXPECT_EQ(series.intervals_per_row(), 16U);
  std::uint64_t stalls = 0;
  Instant until = row(0).health.from;
  Duration worst{};
  for (const auto& merged : series.rows()) {
    EXPECT_EQ(merged.health.from, until) << "no gap, no overlap";
    until = merged.health.to;
    stalls += merged.health.stalls;
    if (merged.health.turn_max > worst) {
      worst = merged.health.turn_max;
      EXPECT_LE(merged.health.from, row(777).health.from);
      EXPECT_GE(merged.health.to, row(777).health.to);
    }
  }
  EXPECT_EQ(until, row(kSeconds - 1).health.to);
  EXPECT_EQ(stalls, static_cast<std::uint64_t>(kSeconds));
  EXPECT_EQ(worst, Duration::millis(1500));
}

TEST(HealthSeries, APercentileOfMergedRowsIsTheWorseOneNotAMean) {
  verdict::HealthRow a = row(10);
  verdict::HealthRow b = row(11);
  a.health.issue_lag_p99 = Duration::micros(100);
  b.health.issue_lag_p99 = Duration::micros(900);
  a.health.cpu_busiest_worker = 0.9;
  const verdict::HealthRow both = worse_of(a, b);
  EXPECT_EQ(both.health.issue_lag_p99, Duration::micros(900));
  EXPECT_EQ(both.health.cpu_busiest_worker, 0.9);
  EXPECT_EQ(both.health.retransmits, 4U);
  EXPECT_EQ(both.health.connect_failures, 6U);
  EXPECT_EQ(both.health.from, a.health.from);
  EXPECT_EQ(both.health.to, b.health.to);
}

TEST(HealthSeries, MergingKeepsHowLongALimitWasBroken) {
  HealthSeries series(64);
  for (std::int64_t s = 0; s < 1000; ++s) {
    auto next = row(s);
    next.health.cpu_busiest_worker = s % 100 == 7 ? 0.95 : 0.1;
    next.health.issue_lag_count = s % 2 == 0 ? 100 : 99;
    next.health.issue_lag_p99 = Duration::millis(s < 500 ? 2 : 1);
    series.add(next);
  }
  verdict::TimesBeyond sum{};
  std::uint64_t lags = 0;
  std::uint32_t intervals = 0;
  for (const auto& merged : series.rows()) {
    const auto beyond = verdict::times_beyond(merged, {});
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = sum[i] + beyond[i];
    }
    lags += merged.health.issue_lag_count;
    intervals += merged.intervals;
  }
  EXPECT_GT(series.intervals_per_row(), 1U);
  EXPECT_EQ(sum[0], Duration::seconds(250)) << "late, and of enough values to say so";
  EXPECT_EQ(sum[1], Duration::seconds(10));
  EXPECT_EQ(sum[2], Duration{});
  EXPECT_EQ(lags, 99'500U);
  EXPECT_EQ(intervals, 1000U);
}

TEST(HealthSeries, PhasesAreNeverMergedWithEachOther) {
  HealthSeries series(64);
  for (std::int64_t s = 0; s < 31; ++s) {
    series.add(row(s, 0));
  }
  for (std::int64_t s = 31; s < 200; ++s) {
    series.add(row(s, 1));
  }
  Duration warmup{};
  for (const auto& merged : series.rows()) {
    warmup = warmup + (merged.phase == 0 ? merged.health.to - merged.health.from : Duration{});
  }
  EXPECT_EQ(warmup, Duration::seconds(31));
}

TEST(HealthSeries, WhatClosesNoIntervalIsNoRow) {
  HealthSeries series;
  series.add(verdict::HealthRow{});
  EXPECT_TRUE(series.rows().empty());
}

TEST(HealthSeries, ManyAgentsShareTheBound) {
  EXPECT_EQ(HealthSeries::rows_max_of(1), HealthSeries::kRowsMax);
  EXPECT_EQ(HealthSeries::rows_max_of(0), HealthSeries::kRowsMax);
  EXPECT_EQ(HealthSeries::rows_max_of(100), 2000U);
  EXPECT_EQ(HealthSeries::rows_max_of(1'000'000), HealthSeries::kRowsMin);
}

}  // namespace
}  // namespace tutti::report
