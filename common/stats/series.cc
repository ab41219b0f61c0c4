#include "common/stats/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "common/stats/ratio.h"

namespace tutti::stats {
namespace {

struct Moments {
  Number total;
  double sum_sq = 0;
  double avg = 0;
  double square_over_n = 0;  // total² / n
};

Moments moments(std::span<const std::int64_t> sorted) {
  Wide total = 0;
  UnsignedWide sum_sq = 0;  // room for 2^43 values of an hour in ns
  for (const std::int64_t value : sorted) {
    total += value;
    sum_sq += static_cast<UnsignedWide>(Wide{value} * value);
  }
  Moments out;
  if (total >= std::numeric_limits<std::int64_t>::min() &&
      total <= std::numeric_limits<std::int64_t>::max()) {
    out.total = static_cast<std::int64_t>(total);
  } else {
    out.total = static_cast<double>(total);
  }
  out.sum_sq = static_cast<double>(sum_sq);
  out.avg = ratio(total, sorted.size());
  out.square_over_n = square_ratio(total, sorted.size());
  return out;
}

// Neumaier's compensated sum. Over sorted values it is a function of the multiset alone, so the
// last bits do not tell how many agents took part.
class CompensatedSum {
 public:
  void add(double x) {
    const double next = sum_ + x;
    rest_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  double value() const { return sum_ + rest_; }

 private:
  double sum_ = 0;
  double rest_ = 0;
};

Moments moments(std::span<const double> sorted) {
  CompensatedSum total;
  CompensatedSum sum_sq;
  for (const double value : sorted) {
    total.add(value);
    sum_sq.add(value * value);
  }
  const auto n = static_cast<double>(sorted.size());
  return {total.value(), sum_sq.value(), total.value() / n, total.value() * total.value() / n};
}

std::array<double, kHistogramBuckets + 1> edges(double min, double max) {
  const double low = std::max(min, 1.0);
  const double high = std::max(max, 10.0 * low);
  const double log_low = std::log(low);
  const double log_span = std::log(high) - log_low;
  std::array<double, kHistogramBuckets + 1> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::exp(log_low +
                      static_cast<double>(i) * log_span / static_cast<double>(kHistogramBuckets));
  }
  return out;
}

}  // namespace

double to_double(const Number& number) {
  if (const auto* whole = std::get_if<std::int64_t>(&number)) {
    return static_cast<double>(*whole);
  }
  return std::get<double>(number);
}

template <class T>
std::vector<Bucket> histogram_of_sorted(std::span<const T> sorted) {
  if (sorted.empty()) {
    return {};
  }
  const auto edge = edges(static_cast<double>(sorted.front()), static_cast<double>(sorted.back()));
  std::vector<Bucket> out(kHistogramBuckets);
  auto from = sorted.begin();
  for (std::size_t i = 0; i < kHistogramBuckets; ++i) {
    const bool last = i + 1 == kHistogramBuckets;
    // Values below the first edge fall into the first bucket and those above the last into the
    // last: that is the clipping.
    const auto to = last ? sorted.end() : std::partition_point(from, sorted.end(), [&](T value) {
      return static_cast<double>(value) < edge[i + 1];
    });
    out[i] = {edge[i], edge[i + 1], static_cast<std::uint64_t>(to - from)};
    from = to;
  }
  return out;
}

template <class T>
SeriesStat stat_of_sorted(std::span<const T> sorted, bool early_stopping) {
  SeriesStat out;
  out.count = sorted.size();
  if (early_stopping) {
    out.early_stopping.emplace();
  }
  if (sorted.empty()) {
    return out;
  }
  const Moments sums = moments(sorted);
  out.total = sums.total;
  out.min = sorted.front();
  out.max = sorted.back();
  out.sum_sq = sums.sum_sq;
  out.avg = sums.avg;
  if (out.count > 1) {
    const auto freedom = static_cast<double>(out.count - 1);
    out.std_dev = std::sqrt(std::max(0.0, (sums.sum_sq - sums.square_over_n) / freedom));
  }
  for (std::size_t i = 0; i < kPercentileGrid.size(); ++i) {
    out.percentiles[i] =
        static_cast<double>(percentile_of_sorted(sorted, kPercentileGrid[i].percentile));
  }
  if (early_stopping) {
    for (std::size_t i = 0; i < kEarlyStoppingCount; ++i) {
      const auto index = early_stopping_index(out.count, kEarlyStoppingGrid[i].percentile);
      if (index) {
        (*out.early_stopping)[i] = static_cast<double>(sorted[*index]);
      }
    }
  }
  out.histogram = histogram_of_sorted(sorted);
  return out;
}

template <class T>
void Series<T>::add(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    TUTTI_CHECK(std::isfinite(value));
  }
  values_.push_back(value);
}

template <class T>
void Series<T>::merge(const Series& other) {
  const std::size_t more = other.values_.size();  // other may be *this
  values_.reserve(values_.size() + more);
  for (std::size_t i = 0; i < more; ++i) {
    values_.push_back(other.values_[i]);
  }
}

template <class T>
SeriesStat Series<T>::stat(bool early_stopping) {
  std::sort(values_.begin(), values_.end());
  return stat_of_sorted(std::span<const T>(values_), early_stopping);
}

template std::vector<Bucket> histogram_of_sorted<std::int64_t>(std::span<const std::int64_t>);
template std::vector<Bucket> histogram_of_sorted<double>(std::span<const double>);
template SeriesStat stat_of_sorted<std::int64_t>(std::span<const std::int64_t>, bool);
template SeriesStat stat_of_sorted<double>(std::span<const double>, bool);
template class Series<std::int64_t>;
template class Series<double>;

}  // namespace tutti::stats
