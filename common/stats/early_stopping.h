#pragma once

// Early-stopping estimates: the smallest observed value that, with 99 % confidence, is not below
// the true percentile, from n samples. It is reported beside the plain percentile and never stops
// or invalidates a run. Formulas: docs/measuring.md, after the LoadGen early-stopping paper
// (binomial confidence with zero tolerance). Vectors: tests/conformance/early_stopping.json,
// betai.json. Pure; no owner.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/stats/percentile.h"

namespace tutti::stats {

inline constexpr double kEarlyStoppingConfidence = 0.99;

// The grid's percentiles that get an estimate: 50 and above, in the grid's order.
inline constexpr std::size_t kEarlyStoppingCount = 8;
inline constexpr std::span<const GridPoint, kEarlyStoppingCount> kEarlyStoppingGrid =
    std::span(kPercentileGrid).first<kEarlyStoppingCount>();
static_assert(kEarlyStoppingGrid.back().percentile == 50.0);

// The regularised incomplete beta function I_x(a, b), a, b > 0; x outside (0, 1) gives 0 or 1.
double incomplete_beta(double a, double b, double x);

// P[Binomial(h + t, 1 − f) ≤ t] = I_f(h, t + 1): the chance to see at most t values above the
// percentile f (a fraction in (0, 1)) among h + t when f is just met.
double overshoot_odds(std::uint64_t h, std::uint64_t t, double f);

// The smallest h ≥ 1 whose odds with t overshoots are below 1 − confidence.
std::uint64_t least_passing(std::uint64_t t, double f);

// Which of n ascending values is the estimate of `percentile` (in percent, inside (0, 100)): index
// n − t with the largest t ≥ 1 for which least_passing(t) + t ≤ n. Nothing when n is too small.
std::optional<std::uint64_t> early_stopping_index(std::uint64_t n, double percentile);

}  // namespace tutti::stats
