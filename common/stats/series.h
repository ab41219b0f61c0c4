#pragma once

// Series<T>: all values of one metric and the two forms the run folder needs of them. Every value
// is kept, so count, total, extremes, percentiles and estimates are exact, and none depends on the
// order in which values or parts came: any split over agents gives the same bytes. int64_t for
// nanoseconds and tokens, double for TPOT. Vectors: tests/conformance/series.json. One owner, no
// locks. Memory: 8 B a value. This header knows no JSON; coordinator/report renders the structs.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "common/stats/early_stopping.h"
#include "common/stats/percentile.h"

namespace tutti::stats {

// A number that prints as an integer or as a float, depending on the series' kind. An integer total
// beyond int64 (150 million one-minute latencies in ns) becomes the nearest double.
using Number = std::variant<std::int64_t, double>;

double to_double(const Number& number);

struct Bucket {
  double low = 0;   // included
  double high = 0;  // excluded, except in the last bucket
  std::uint64_t count = 0;
};

inline constexpr std::size_t kHistogramBuckets = 30;

// `estimates[i]` belongs to kEarlyStoppingGrid[i]; nothing = too few values for that percentile.
using Estimates = std::array<std::optional<double>, kEarlyStoppingCount>;

// The snapshot form. `percentiles[i]` belongs to kPercentileGrid[i]. An empty series has zeros, no
// estimate and no bucket.
struct SeriesStat {
  std::uint64_t count = 0;
  Number total{std::int64_t{0}};
  Number min{std::int64_t{0}};
  Number max{std::int64_t{0}};
  double sum_sq = 0;  // Σ x², exact for integers before this one rounding
  std::array<double, kPercentileGrid.size()> percentiles{};
  std::optional<Estimates> early_stopping;  // absent when the feature is off for this series
  std::vector<Bucket> histogram;            // kHistogramBuckets of them, or none
  double avg = 0;                           // total / count; 0 when empty
  double std_dev = 0;  // sample deviation from `sum_sq` as rounded; 0 for one value or none

  double median() const { return percentiles[7]; }
};
static_assert(kPercentileGrid[7].percentile == 50.0);

// The values themselves, for callers that already hold them; `sorted` is ascending.
template <class T>
SeriesStat stat_of_sorted(std::span<const T> sorted, bool early_stopping);

// 30 geometric buckets from max(min, 1) over at least one decade; values are clipped into the outer
// edges, so the counts always sum to n. `sorted` is ascending and finite.
template <class T>
std::vector<Bucket> histogram_of_sorted(std::span<const T> sorted);

template <class T>
class Series {
 public:
  // T = double: the value must be finite.
  void add(T value);
  void merge(const Series& other);

  std::uint64_t count() const { return values_.size(); }
  const std::vector<T>& values() const { return values_; }  // in no promised order

  // Sorts what is here (order carries no meaning), then computes both forms' numbers.
  SeriesStat stat(bool early_stopping);

 private:
  std::vector<T> values_;
};

using IntSeries = Series<std::int64_t>;
using FloatSeries = Series<double>;

extern template class Series<std::int64_t>;
extern template class Series<double>;

}  // namespace tutti::stats
