#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/stats/series.h"

namespace tutti::stats {
namespace {

SeriesStat stat_of(const std::vector<std::int64_t>& values, bool early_stopping = false) {
  IntSeries series;
  for (const std::int64_t value : values) {
    series.add(value);
  }
  return series.stat(early_stopping);
}

std::uint64_t bucket_sum(const SeriesStat& stat) {
  std::uint64_t sum = 0;
  for (const Bucket& bucket : stat.histogram) {
    sum += bucket.count;
  }
  return sum;
}

TEST(PercentileIndex, IsTheRankAtOrBelowNotTheNearest) {
  EXPECT_EQ(percentile_index(1, 99.9), 0U);
  EXPECT_EQ(percentile_index(2, 99.9), 0U);
  EXPECT_EQ(percentile_index(2, 100.0), 1U);
  EXPECT_EQ(percentile_index(1000, 99.9), 998U);
  EXPECT_EQ(percentile_index(4, 50.0), 1U);
  EXPECT_DEATH(percentile_index(0, 50.0), "promise broken");
  EXPECT_DEATH(percentile_index(1, 100.5), "promise broken");
}

TEST(Series, AnEmptyOneIsAllZerosWithoutBuckets) {
  const SeriesStat stat = stat_of({}, true);
  EXPECT_EQ(stat.count, 0U);
  EXPECT_EQ(std::get<std::int64_t>(stat.total), 0);
  EXPECT_EQ(stat.std_dev, 0.0);
  EXPECT_EQ(stat.median(), 0.0);
  EXPECT_TRUE(stat.histogram.empty());
  ASSERT_TRUE(stat.early_stopping.has_value());
  for (const auto& estimate : *stat.early_stopping) {
    EXPECT_FALSE(estimate.has_value());
  }
}

TEST(Series, EstimatesAreAbsentWhenTheFeatureIsOffAndEmptyWhenTooFew) {
  EXPECT_FALSE(stat_of({1, 2, 3}).early_stopping.has_value());
  std::vector<std::int64_t> values(11);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(10 - i);
  }
  const SeriesStat stat = stat_of(values, true);
  EXPECT_EQ((*stat.early_stopping)[7], 10.0);  // p50 needs eleven
  EXPECT_FALSE((*stat.early_stopping)[6].has_value());
}

TEST(Series, KeepsIntegersIntegralAndTotalsExactBeyondADoublesPrecision) {
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  const SeriesStat stat = stat_of({big, big, 1});
  EXPECT_EQ(std::get<std::int64_t>(stat.total), 2 * big + 1);
  EXPECT_EQ(std::get<std::int64_t>(stat.min), 1);
  EXPECT_EQ(std::get<std::int64_t>(stat.max), big);
}

TEST(Series, ATotalBeyond64BitsBecomesTheNearestDouble) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const SeriesStat stat = stat_of({most, most, most});
  ASSERT_TRUE(std::holds_alternative<double>(stat.total));
  EXPECT_EQ(std::get<double>(stat.total), 27670116110564327421.0);
  EXPECT_EQ(stat.avg, 9223372036854775807.0);
}

TEST(Series, NearEqualNanosecondsHaveNoInventedDeviation) {
  EXPECT_EQ(stat_of(std::vector<std::int64_t>(1000, 123'456'789'012)).std_dev, 0.0);
  EXPECT_EQ(stat_of({5}).std_dev, 0.0);
  EXPECT_EQ(stat_of({1, 3}).std_dev, std::sqrt(2.0));
}

TEST(Series, NegativeValuesAreCountedNotLost) {
  const SeriesStat stat = stat_of({-5, 5, 15});
  EXPECT_EQ(std::get<std::int64_t>(stat.total), 15);
  EXPECT_EQ(stat.avg, 5.0);
  EXPECT_EQ(stat.sum_sq, 275.0);
  EXPECT_EQ(bucket_sum(stat), 3U);
}

TEST(Histogram, SpansAtLeastADecadeFromAtLeastOne) {
  const SeriesStat zeros = stat_of({0, 0, 0});
  EXPECT_EQ(zeros.histogram.front().low, 1.0);
  EXPECT_NEAR(zeros.histogram.back().high, 10.0, 1e-12);
  EXPECT_EQ(zeros.histogram.front().count, 3U);

  const SeriesStat narrow = stat_of({1000, 1001});
  EXPECT_NEAR(narrow.histogram.back().high, 10'000.0, 1e-8);
  EXPECT_EQ(narrow.histogram.front().count, 2U);
}

TEST(Histogram, TheLargestValueFallsIntoTheLastBucketWhateverRoundingDidToItsEdge) {
  for (std::int64_t max = 100; max < 4'000'000'000'000; max = max * 7 / 3) {
    const SeriesStat stat = stat_of({1, 2, max});
    EXPECT_EQ(stat.histogram.back().count, 1U) << max;
    EXPECT_EQ(bucket_sum(stat), 3U);
    for (std::size_t i = 1; i < stat.histogram.size(); ++i) {
      EXPECT_EQ(stat.histogram[i].low, stat.histogram[i - 1].high);
    }
  }
}

TEST(FloatSeries, KeepsFloatsFloats) {
  FloatSeries series;
  series.add(1.5);
  series.add(-0.5);
  const SeriesStat stat = series.stat(false);
  EXPECT_EQ(std::get<double>(stat.total), 1.0);
  EXPECT_EQ(std::get<double>(stat.min), -0.5);
  EXPECT_EQ(stat.avg, 0.5);
  EXPECT_EQ(stat.sum_sq, 2.5);
}

TEST(FloatSeries, ANonFiniteValueIsAProgrammersError) {
  FloatSeries series;
  EXPECT_DEATH(series.add(std::numeric_limits<double>::quiet_NaN()), "promise broken");
  EXPECT_DEATH(series.add(std::numeric_limits<double>::infinity()), "promise broken");
}

TEST(Series, MergingWithItselfDoublesEveryValue) {
  IntSeries series;
  series.add(3);
  series.add(4);
  series.merge(series);
  EXPECT_EQ(series.count(), 4U);
  EXPECT_EQ(std::get<std::int64_t>(series.stat(false).total), 14);
}

}  // namespace
}  // namespace tutti::stats
