// Merging is commutative and associative, and no number tells how the values were split.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/random.h"
#include "common/stats/live_histogram.h"
#include "common/stats/percentile.h"
#include "common/stats/series.h"

namespace tutti::stats {
namespace {

// Spread over many decades, with ties and values outside the histogram's range.
std::int64_t draw_value(base::Mt19937& random) {
  const auto bits = static_cast<int>(1 + random.below(44));
  return static_cast<std::int64_t>(random.next_bits(bits));
}

LiveHistogram random_histogram(base::Mt19937& random) {
  LiveHistogram histogram;
  for (std::uint64_t n = random.below(2000); n > 0; --n) {
    histogram.add(draw_value(random));
  }
  return histogram;
}

LiveHistogram sum(LiveHistogram a, const LiveHistogram& b) {
  a.merge(b);
  return a;
}

TEST(LiveHistogramProperty, MergeIsCommutativeAssociativeAndHasTheEmptyOneAsUnit) {
  base::Mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const LiveHistogram a = random_histogram(random);
    const LiveHistogram b = random_histogram(random);
    const LiveHistogram c = random_histogram(random);
    EXPECT_EQ(sum(a, b), sum(b, a));
    EXPECT_EQ(sum(sum(a, b), c), sum(a, sum(b, c)));
    EXPECT_EQ(sum(a, LiveHistogram()), a);
    EXPECT_EQ(sum(a, b).count(), a.count() + b.count());
  }
}

TEST(LiveHistogramProperty, EveryPercentileIsWithinTheNamedErrorOfTheExactOne) {
  base::Mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> values(1 + random.below(3000));
    LiveHistogram histogram;
    // Some rounds are dense, some spread over many decades, some full of zeros.
    const auto width = static_cast<std::int64_t>(1 + random.below(50'000'000));
    for (auto& value : values) {
      const std::uint64_t kind = random.below(8);
      value = kind == 0 ? 0
              : kind == 1
                  ? std::min(draw_value(random), LiveHistogram::kValueMax)
                  : 1'000'000 +
                        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width)));
      histogram.add(value);
    }
    std::sort(values.begin(), values.end());
    for (const double percentile : {0.0, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto exact = static_cast<double>(
          percentile_of_sorted(std::span<const std::int64_t>(values), percentile));
      const auto found = histogram.percentile(percentile);
      ASSERT_TRUE(found.has_value());
      ASSERT_LE(std::fabs(*found - exact), exact * LiveHistogram::kRelativeError) << percentile;
    }
  }
}

TEST(LiveHistogramProperty, AnySplitOverTheWireGivesTheSameHistogram) {
  base::Mt19937 random(2);
  std::vector<std::int64_t> values(20'000);
  for (auto& value : values) {
    value = draw_value(random);
  }
  LiveHistogram whole;
  for (const std::int64_t value : values) {
    whole.add(value);
  }
  for (const std::size_t agents : {1U, 3U, 7U}) {
    std::vector<LiveHistogram> parts(agents);
    LiveHistogram together;
    for (const std::int64_t value : values) {
      LiveHistogram& part = parts[random.below(agents)];
      part.add(value);
      if (random.below(500) == 0) {  // a heartbeat: send what came since the last one
        ASSERT_TRUE(together.add_cells(part.cells()));
        part.clear();
      }
    }
    for (const LiveHistogram& part : parts) {
      ASSERT_TRUE(together.add_cells(part.cells()));
    }
    EXPECT_EQ(together, whole) << agents;
  }
}

TEST(LiveHistogramProperty, PercentilesAreWithinThePromisedErrorOfTheExactOnes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    base::Mt19937 random(seed);
    std::vector<std::int64_t> values(1 + random.below(5000));
    LiveHistogram histogram;
    for (auto& value : values) {
      value = std::clamp(draw_value(random), LiveHistogram::kValueMin, LiveHistogram::kValueMax);
      histogram.add(value);
    }
    std::sort(values.begin(), values.end());
    for (const auto& point : kPercentileGrid) {
      const auto exact = static_cast<double>(
          percentile_of_sorted(std::span<const std::int64_t>(values), point.percentile));
      EXPECT_LE(std::fabs(histogram.percentile(point.percentile).value() - exact),
                exact * LiveHistogram::kRelativeError)
          << "seed " << seed << " p" << point.key;
    }
  }
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

void expect_identical(const SeriesStat& a, const SeriesStat& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.total, b.total);
  EXPECT_EQ(a.min, b.min);
  EXPECT_EQ(a.max, b.max);
  EXPECT_TRUE(same_bits(a.sum_sq, b.sum_sq));
  EXPECT_TRUE(same_bits(a.avg, b.avg));
  EXPECT_TRUE(same_bits(a.std_dev, b.std_dev));
  EXPECT_EQ(a.percentiles, b.percentiles);
  EXPECT_EQ(a.early_stopping, b.early_stopping);
  ASSERT_EQ(a.histogram.size(), b.histogram.size());
  for (std::size_t i = 0; i < a.histogram.size(); ++i) {
    EXPECT_TRUE(same_bits(a.histogram[i].low, b.histogram[i].low));
    EXPECT_EQ(a.histogram[i].count, b.histogram[i].count);
  }
}

// Values scattered over `agents` parts in random order, parts merged in random order.
template <class T>
SeriesStat scattered(const std::vector<T>& values, std::size_t agents, base::Mt19937& random) {
  std::vector<T> shuffled = values;
  random.shuffle(shuffled);
  std::vector<Series<T>> parts(agents);
  for (const T value : shuffled) {
    parts[random.below(agents)].add(value);
  }
  random.shuffle(parts);
  Series<T> together;
  for (const Series<T>& part : parts) {
    together.merge(part);
  }
  return together.stat(true);
}

template <class T>
void expect_partition_independence(const std::vector<T>& values, base::Mt19937& random) {
  const SeriesStat whole = scattered(values, 1, random);
  for (const std::size_t agents : {2U, 3U, 7U, 100U}) {
    SCOPED_TRACE(agents);
    expect_identical(scattered(values, agents, random), whole);
  }
}

TEST(SeriesProperty, IntegerStatisticsDoNotDependOnTheSplit) {
  base::Mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    std::vector<std::int64_t> values(1 + random.below(3000));
    for (auto& value : values) {
      value = draw_value(random);
    }
    expect_partition_independence(values, random);
  }
}

// For doubles this is the hard one: a plain running sum would differ in its last bits.
TEST(SeriesProperty, FloatStatisticsDoNotDependOnTheSplitToTheLastBit) {
  base::Mt19937 random(4);
  for (int round = 0; round < 10; ++round) {
    std::vector<double> values(1 + random.below(3000));
    for (auto& value : values) {
      value = static_cast<double>(draw_value(random)) / 7.0;
    }
    expect_partition_independence(values, random);
  }
}

TEST(SeriesProperty, BucketsHoldWhatTheirEdgesSay) {
  base::Mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    IntSeries series;
    for (std::uint64_t n = 1 + random.below(500); n > 0; --n) {
      series.add(draw_value(random));
    }
    const SeriesStat stat = series.stat(false);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < stat.histogram.size(); ++i) {
      const Bucket& bucket = stat.histogram[i];
      const double first = stat.histogram.front().low;
      const double last = stat.histogram.back().high;
      const bool closed = i + 1 == stat.histogram.size();
      const auto inside =
          std::count_if(series.values().begin(), series.values().end(), [&](std::int64_t value) {
            const double x = std::clamp(static_cast<double>(value), first, last);
            return x >= bucket.low && (x < bucket.high || (closed && x <= bucket.high));
          });
      EXPECT_EQ(bucket.count, static_cast<std::uint64_t>(inside)) << "bucket " << i;
      sum += bucket.count;
    }
    EXPECT_EQ(sum, stat.count);
  }
}

TEST(SeriesProperty, PercentilesAscendAndLieWithinTheExtremes) {
  base::Mt19937 random(6);
  for (int round = 0; round < 50; ++round) {
    IntSeries series;
    for (std::uint64_t n = 1 + random.below(2000); n > 0; --n) {
      series.add(draw_value(random));
    }
    const SeriesStat stat = series.stat(true);
    EXPECT_TRUE(std::is_sorted(stat.percentiles.rbegin(), stat.percentiles.rend()));
    EXPECT_LE(stat.percentiles.front(), to_double(stat.max));
    EXPECT_GE(stat.percentiles.back(), to_double(stat.min));
    for (std::size_t i = 0; i < kEarlyStoppingCount; ++i) {
      const auto& estimate = (*stat.early_stopping)[i];
      if (estimate) {
        EXPECT_GE(*estimate, stat.percentiles[i]);
        EXPECT_LE(*estimate, to_double(stat.max));
      }
    }
  }
}

}  // namespace
}  // namespace tutti::stats
