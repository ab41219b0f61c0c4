// Percentiles, deviations, histograms and early-stopping estimates against the reference client's:
// integers equal, floats within 1e-9 of their size.

#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "common/stats/early_stopping.h"
#include "common/stats/percentile.h"
#include "common/stats/series.h"
#include "tests/conformance/random_vectors.h"

namespace tutti {
namespace {

using conformance::load_vectors;
using nlohmann::json;
using stats::SeriesStat;

constexpr double kTolerance = 1e-9;

void expect_close(double got, double wanted, const std::string& what) {
  EXPECT_LE(std::fabs(got - wanted), kTolerance * std::fabs(wanted))
      << what << ": " << got << " is not " << wanted;
}

// Integers are equal and stay integers; floats are close and stay floats.
void expect_number(const stats::Number& got, const json& wanted, const std::string& what) {
  ASSERT_EQ(std::holds_alternative<std::int64_t>(got), wanted.is_number_integer()) << what;
  if (wanted.is_number_integer()) {
    EXPECT_EQ(std::get<std::int64_t>(got), wanted.get<std::int64_t>()) << what;
  } else {
    expect_close(std::get<double>(got), wanted.get<double>(), what);
  }
}

void expect_percentiles(const SeriesStat& got, const json& wanted) {
  const json& values = wanted.at("percentiles");
  ASSERT_EQ(values.size(), got.percentiles.size());
  for (std::size_t i = 0; i < got.percentiles.size(); ++i) {
    const std::string key(stats::kPercentileGrid[i].key);
    expect_close(got.percentiles[i], values.at(key).get<double>(), "p" + key);
  }
}

void expect_estimates(const SeriesStat& got, const json& wanted) {
  ASSERT_EQ(got.early_stopping.has_value(), wanted.contains("early_stopping_percentiles"));
  if (!got.early_stopping) {
    return;
  }
  const json& values = wanted.at("early_stopping_percentiles");
  ASSERT_EQ(values.size(), stats::kEarlyStoppingCount);
  for (std::size_t i = 0; i < stats::kEarlyStoppingCount; ++i) {
    const std::string key(stats::kEarlyStoppingGrid[i].key);
    const auto& estimate = (*got.early_stopping)[i];
    ASSERT_EQ(estimate.has_value(), !values.at(key).is_null()) << key;
    if (estimate) {
      expect_close(*estimate, values.at(key).get<double>(), "estimate of p" + key);
    }
  }
}

void expect_snapshot_form(const SeriesStat& got, const json& wanted) {
  EXPECT_EQ(got.count, wanted.at("count").get<std::uint64_t>());
  if (got.count > 0) {
    expect_number(got.total, wanted.at("total"), "total");
    expect_number(got.min, wanted.at("min"), "min");
    expect_number(got.max, wanted.at("max"), "max");
  }
  expect_close(got.sum_sq, wanted.at("sum_sq").get<double>(), "sum_sq");
  expect_percentiles(got, wanted);
  expect_estimates(got, wanted);
  const json& buckets = wanted.at("histogram");
  ASSERT_EQ(got.histogram.size(), buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    expect_close(got.histogram[i].low, buckets[i][0][0].get<double>(), "edge");
    expect_close(got.histogram[i].high, buckets[i][0][1].get<double>(), "edge");
    EXPECT_EQ(got.histogram[i].count, buckets[i][1].get<std::uint64_t>()) << "bucket " << i;
  }
}

void expect_summary_form(const SeriesStat& got, const json& wanted) {
  expect_estimates(got, wanted);
  if (got.count == 0) {
    EXPECT_FALSE(wanted.contains("avg"));
    return;
  }
  expect_close(got.median(), wanted.at("median").get<double>(), "median");
  expect_close(got.avg, wanted.at("avg").get<double>(), "avg");
  expect_close(got.std_dev, wanted.at("std_dev").get<double>(), "std_dev");
  expect_percentiles(got, wanted);
  const auto counts = wanted.at("histogram").at("counts").get<std::vector<std::uint64_t>>();
  ASSERT_EQ(got.histogram.size(), counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(got.histogram[i].count, counts[i]) << "bucket " << i;
  }
}

template <class T>
SeriesStat stat_of(const std::vector<T>& values, bool early_stopping) {
  stats::Series<T> series;
  for (const T value : values) {
    series.add(value);
  }
  return series.stat(early_stopping);
}

TEST(SeriesVectors, BothFormsMatchForEveryDataSet) {
  const json file = load_vectors("series.json");
  for (const json& expected : file.at("cases")) {
    SCOPED_TRACE(expected.at("name").get<std::string>());
    json values = expected.at("values");
    if (values.is_null()) {
      values = load_vectors("series_lognormal_1200.json");
    }
    const bool early = expected.at("stat").contains("early_stopping_percentiles");
    const bool floats = !values.empty() && values.front().is_number_float();
    const SeriesStat stat = floats ? stat_of(values.get<std::vector<double>>(), early)
                                   : stat_of(values.get<std::vector<std::int64_t>>(), early);
    expect_snapshot_form(stat, expected.at("stat"));
    expect_summary_form(stat, expected.at("rollup"));
  }
  EXPECT_EQ(file.at("cases").size(), 8U);
}

TEST(PercentileVectors, IndexMatchesForEveryCountAndPercentile) {
  const json file = load_vectors("percentile_index.json");
  for (const json& expected : file.at("cases")) {
    const auto n = expected.at("n").get<std::uint64_t>();
    ASSERT_EQ(expected.at("index").size(), stats::kPercentileGrid.size());
    for (const auto& point : stats::kPercentileGrid) {
      EXPECT_EQ(stats::percentile_index(n, point.percentile),
                expected.at("index").at(std::string(point.key)).get<std::uint64_t>())
          << "p" << point.key << " of " << n;
    }
  }
}

TEST(EarlyStoppingVectors, IncompleteBetaMatchesTheExactSum) {
  const json file = load_vectors("betai.json");
  for (const json& expected : file.at("cases")) {
    const double got =
        stats::incomplete_beta(expected.at("a").get<double>(), expected.at("b").get<double>(),
                               expected.at("x").get<double>());
    expect_close(got, expected.at("exact").get<double>(), expected.dump());
    expect_close(got, expected.at("I_x").get<double>(), expected.dump());
  }
}

TEST(EarlyStoppingVectors, LeastPassingCountsAndTheirOddsMatch) {
  const json file = load_vectors("early_stopping.json");
  for (const auto& item : file.at("find_min_passing").items()) {
    SCOPED_TRACE("p" + item.key());
    const double f = std::stod(item.key()) / 100.0;
    EXPECT_EQ(f, item.value().at("fraction").get<double>());
    EXPECT_EQ(stats::least_passing(1, f) + 1, item.value().at("floor_n").get<std::uint64_t>());
    for (const json& row : item.value().at("rows")) {
      const auto t = row.at("t").get<std::uint64_t>();
      const auto h = row.at("h_min").get<std::uint64_t>();
      EXPECT_EQ(stats::least_passing(t, f), h) << "t = " << t;
      expect_close(stats::overshoot_odds(h, t, f), row.at("odds_at_h_min").get<double>(), "odds");
      expect_close(stats::overshoot_odds(h - 1, t, f),
                   row.at("odds_at_h_min_minus_1").get<double>(), "odds one below");
    }
  }
}

TEST(EarlyStoppingVectors, TheEstimatesIndexMatchesForEveryCount) {
  const json file = load_vectors("early_stopping.json");
  for (const json& row : file.at("estimate_index")) {
    const auto n = row.at("n").get<std::uint64_t>();
    for (const auto& point : stats::kEarlyStoppingGrid) {
      const json& expected = row.at(std::string(point.key));
      const auto index = stats::early_stopping_index(n, point.percentile);
      ASSERT_EQ(index.has_value(), !expected.at("sorted_index").is_null())
          << "p" << point.key << " of " << n;
      if (index) {
        EXPECT_EQ(*index, expected.at("sorted_index").get<std::uint64_t>())
            << "p" << point.key << " of " << n;
        EXPECT_EQ(n - *index, expected.at("t").get<std::uint64_t>());
      }
    }
  }
  EXPECT_EQ(file.at("estimate_index").size(), 38U);
}

}  // namespace
}  // namespace tutti
