#include <gtest/gtest.h>

#include <cmath>

#include "common/stats/early_stopping.h"

namespace tutti::stats {
namespace {

TEST(IncompleteBeta, IsZeroAndOneAtAndBeyondItsEnds) {
  EXPECT_EQ(incomplete_beta(2, 3, 0.0), 0.0);
  EXPECT_EQ(incomplete_beta(2, 3, -1.0), 0.0);
  EXPECT_EQ(incomplete_beta(2, 3, 1.0), 1.0);
  EXPECT_EQ(incomplete_beta(2, 3, 2.0), 1.0);
}

TEST(IncompleteBeta, HasItsClosedFormsAndItsSymmetry) {
  for (const double x : {0.01, 0.2, 0.5, 0.77, 0.999}) {
    EXPECT_NEAR(incomplete_beta(1, 1, x), x, 1e-14);
    EXPECT_NEAR(incomplete_beta(5, 1, x), std::pow(x, 5), 1e-14);
    EXPECT_NEAR(incomplete_beta(1, 5, x), 1 - std::pow(1 - x, 5), 1e-14);
    for (const double a : {0.5, 3.0, 40.0}) {
      EXPECT_NEAR(incomplete_beta(a, 7, x) + incomplete_beta(7, a, 1 - x), 1.0, 1e-12);
    }
  }
}

// P[Binomial(n, q) ≤ t] summed term by term is the definition the odds stand for.
TEST(OvershootOdds, AreTheBinomialSumTheyClaimToBe) {
  for (const double f : {0.5, 0.9, 0.99}) {
    for (std::uint64_t h = 1; h < 60; h += 7) {
      for (std::uint64_t t = 0; t < 12; t += 3) {
        const double n = static_cast<double>(h + t);
        double sum = 0;
        for (std::uint64_t k = 0; k <= t; ++k) {
          const double i = static_cast<double>(k);
          sum += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) +
                          i * std::log(1 - f) + (n - i) * std::log(f));
        }
        EXPECT_NEAR(overshoot_odds(h, t, f), sum, 1e-11) << h << " " << t << " " << f;
      }
    }
  }
}

TEST(LeastPassing, PassesAndItsPredecessorDoesNot) {
  for (const auto& point : kEarlyStoppingGrid) {
    const double f = point.percentile / 100.0;
    for (const std::uint64_t t : {0U, 1U, 5U, 30U}) {
      const std::uint64_t h = least_passing(t, f);
      EXPECT_LT(overshoot_odds(h, t, f), 1.0 - kEarlyStoppingConfidence);
      if (h > 1) {
        EXPECT_GE(overshoot_odds(h - 1, t, f), 1.0 - kEarlyStoppingConfidence);
      }
    }
  }
}

TEST(EarlyStoppingIndex, AppearsAtItsFloorAndIsThenTheLargestValueButOne) {
  EXPECT_FALSE(early_stopping_index(0, 99.0).has_value());
  EXPECT_FALSE(early_stopping_index(661, 99.0).has_value());
  EXPECT_EQ(early_stopping_index(662, 99.0), 661U);
  EXPECT_FALSE(early_stopping_index(10, 50.0).has_value());
  EXPECT_EQ(early_stopping_index(11, 50.0), 10U);
}

TEST(EarlyStoppingIndex, IsNeverBelowThePlainPercentile) {
  for (std::uint64_t n = 11; n < 20'000; n = n * 5 / 4 + 1) {
    for (const auto& point : kEarlyStoppingGrid) {
      const auto index = early_stopping_index(n, point.percentile);
      if (index) {
        EXPECT_GE(*index, percentile_index(n, point.percentile)) << n << " p" << point.key;
        EXPECT_LT(*index, n);
      }
    }
  }
}

}  // namespace
}  // namespace tutti::stats
