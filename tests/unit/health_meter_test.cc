// From growing counters to what one interval says: differences, shares of its length, percentiles
// of that interval's values alone.

#include "agent/drive/health_meter.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tutti::drive {
namespace {

using base::Duration;
using base::Instant;

constexpr Instant kStart{1'000'000'000};

// Two workers' counters, as a worker would keep them.
struct Bench {
  std::vector<std::unique_ptr<stats::SharedHistogram>> histograms;
  std::vector<WorkerReading> readings{2};
  HealthMeter meter{2, kStart};
  stats::SharedHistogram* issue_lag[2];
  stats::SharedHistogram* turn[2];
  stats::SharedHistogram* read_lag[2];

  Bench() {
    for (std::size_t i = 0; i < 2; ++i) {
      readings[i].issue_lag = issue_lag[i] = fresh();
      readings[i].read_lag = read_lag[i] = fresh();
      readings[i].turn = turn[i] = fresh();
    }
  }
  stats::SharedHistogram* fresh() {
    histograms.push_back(std::make_unique<stats::SharedHistogram>());
    return histograms.back().get();
  }
  wire::Health close(Duration after_start) { return meter.close(readings, kStart + after_start); }
};

void expect_near(Duration actual, Duration expected) {
  EXPECT_NEAR(static_cast<double>(actual.ns), static_cast<double>(expected.ns),
              static_cast<double>(expected.ns) * stats::LiveHistogram::kRelativeError);
}

TEST(HealthMeter, AnIntervalIsFromTheLastCloseToThisOne) {
  Bench bench;
  const wire::Health first = bench.close(Duration::seconds(1));
  EXPECT_EQ(first.from, kStart);
  EXPECT_EQ(first.to, kStart + Duration::seconds(1));
  const wire::Health second = bench.close(Duration::millis(2500));
  EXPECT_EQ(second.from, first.to);
  EXPECT_EQ(second.to, kStart + Duration::millis(2500));
}

TEST(HealthMeter, PercentilesAreOfAllWorkersAndOfThisIntervalAlone) {
  Bench bench;
  for (int i = 0; i < 98; ++i) {
    bench.issue_lag[i % 2]->add(Duration::micros(100));
  }
  bench.issue_lag[1]->add(Duration::millis(3));
  bench.issue_lag[0]->add(Duration::millis(40));
  bench.turn[0]->add(Duration::millis(1500));
  bench.read_lag[1]->add(Duration::micros(7));
  const wire::Health first = bench.close(Duration::seconds(1));
  EXPECT_EQ(first.issue_lag_count, 100U);
  expect_near(first.issue_lag_p50, Duration::micros(100));
  expect_near(first.issue_lag_p99, Duration::millis(3));  // index 98 of 100 sorted values
  expect_near(first.issue_lag_max, Duration::millis(40));
  expect_near(first.turn_max, Duration::millis(1500));
  expect_near(first.turn_p50, Duration::millis(1500));
  expect_near(first.read_lag_max, Duration::micros(7));
  const wire::Health second = bench.close(Duration::seconds(2));
  EXPECT_EQ(second.issue_lag_count, 0U);
  EXPECT_EQ(second.issue_lag_max.ns, 0);
  EXPECT_EQ(second.turn_max.ns, 0);
  EXPECT_EQ(second.read_lag_p99.ns, 0);
}

TEST(HealthMeter, CpuIsTheBusiestWorkersShareOfTheIntervalsLength) {
  Bench bench;
  bench.readings[0].cpu = Duration::millis(500);
  bench.readings[1].cpu = Duration::millis(1500);
  EXPECT_DOUBLE_EQ(bench.close(Duration::seconds(2)).cpu_busiest_worker, 0.75);
  bench.readings[0].cpu = Duration::millis(900);  // 0.4 s of the next second
  bench.readings[1].cpu = Duration::millis(1600);
  EXPECT_DOUBLE_EQ(bench.close(Duration::seconds(3)).cpu_busiest_worker, 0.4);
  bench.readings[0].cpu = Duration::millis(999);
  EXPECT_EQ(bench.close(Duration::seconds(3)).cpu_busiest_worker, 0.0) << "no time, no share";
}

TEST(HealthMeter, CountsAreDifferencesLossesAreTotalsGaugesAreOfNow) {
  Bench bench;
  bench.readings[0].stalls = 3;
  bench.readings[1].stalls = 4;
  bench.readings[1].connect_failures = 2;
  bench.readings[0].records_lost = 5;
  bench.readings[1].reads_unstamped = 6;
  bench.readings[0].connections = 100;
  bench.readings[1].connections = 50;
  bench.readings[0].ring_fill_percent = 7;
  bench.readings[1].ring_fill_percent = 60;
  const wire::Health first = bench.close(Duration::seconds(1));
  EXPECT_EQ(first.stalls, 7U);
  EXPECT_EQ(first.connect_failures, 2U);
  EXPECT_EQ(first.records_lost, 5U);
  EXPECT_EQ(first.reads_unstamped, 6U);
  EXPECT_EQ(first.connections, 150U);
  EXPECT_EQ(first.ring_fill_percent, 60U);
  bench.readings[0].stalls = 4;
  const wire::Health second = bench.close(Duration::seconds(2));
  EXPECT_EQ(second.stalls, 1U);
  EXPECT_EQ(second.connect_failures, 0U);
  EXPECT_EQ(second.records_lost, 5U);
  EXPECT_EQ(second.connections, 150U);
}

TEST(HealthMeter, WhatCameBeforeBeginIsNobodysInterval) {
  Bench bench;
  bench.issue_lag[0]->add(Duration::seconds(9));
  bench.readings[0].stalls = 11;
  bench.readings[0].cpu = Duration::seconds(20);
  bench.meter.begin(bench.readings, kStart + Duration::seconds(30));
  bench.readings[0].cpu = Duration::millis(20'250);
  const wire::Health health = bench.close(Duration::seconds(31));
  EXPECT_EQ(health.from, kStart + Duration::seconds(30));
  EXPECT_EQ(health.issue_lag_max.ns, 0);
  EXPECT_EQ(health.stalls, 0U);
  EXPECT_DOUBLE_EQ(health.cpu_busiest_worker, 0.25);
}

}  // namespace
}  // namespace tutti::drive
