#include "common/stats/early_stopping.h"

#include <cmath>

#include "common/base/check.h"

namespace tutti::stats {
namespace {

constexpr int kFractionStepsMax = 399;
constexpr double kConverged = 3e-16;
constexpr double kTiny = 1e-300;

// lgamma() writes a global sign; the reentrant form does not, so reports may run on any thread.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double away_from_zero(double x) { return std::fabs(x) < kTiny ? kTiny : x; }

// The continued fraction of the incomplete beta function (DLMF 8.17.22), evaluated by Lentz's
// method as modified by Thompson and Barnett: two terms a step, stop when the second no longer
// matters.
double beta_fraction(double a, double b, double x) {
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double value = d;
  for (int step = 1; step <= kFractionStepsMax; ++step) {
    const double m = step;
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    const double factor = d * c;
    value *= factor;
    if (std::fabs(factor - 1.0) < kConverged) {
      break;
    }
  }
  return value;
}

// The smallest k ≥ 1 for which `holds(k)`; `holds` is monotone (false … false true …).
template <class Predicate>
std::uint64_t least(const Predicate& holds) {
  std::uint64_t below = 0;
  std::uint64_t above = 1;
  while (!holds(above)) {
    below = above;
    above *= 2;
  }
  while (above - below > 1) {
    const std::uint64_t middle = below + (above - below) / 2;
    (holds(middle) ? above : below) = middle;
  }
  return above;
}

}  // namespace

double incomplete_beta(double a, double b, double x) {
  TUTTI_CHECK(a > 0.0 && b > 0.0);
  if (x <= 0.0) {
    return 0.0;
  }
  if (x >= 1.0) {
    return 1.0;
  }
  const double front = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) +
                                b * std::log(1.0 - x));
  // The fraction converges fast only left of the distribution's mean; right of it use the symmetry
  // I_x(a, b) = 1 − I_{1−x}(b, a).
  if (x < (a + 1.0) / (a + b + 2.0)) {
    return front * beta_fraction(a, b, x) / a;
  }
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

double overshoot_odds(std::uint64_t h, std::uint64_t t, double f) {
  return incomplete_beta(static_cast<double>(h), static_cast<double>(t) + 1.0, f);
}

std::uint64_t least_passing(std::uint64_t t, double f) {
  TUTTI_CHECK(f > 0.0 && f < 1.0);
  const double limit = 1.0 - kEarlyStoppingConfidence;
  return least([&](std::uint64_t h) { return overshoot_odds(h, t, f) < limit; });
}

std::optional<std::uint64_t> early_stopping_index(std::uint64_t n, double percentile) {
  TUTTI_CHECK(percentile > 0.0 && percentile < 100.0);
  const double f = percentile / 100.0;
  const auto needs_more = [&](std::uint64_t t) { return least_passing(t, f) + t > n; };
  if (needs_more(1)) {
    return std::nullopt;
  }
  const std::uint64_t t = least(needs_more) - 1;
  return n - t;
}

}  // namespace tutti::stats
