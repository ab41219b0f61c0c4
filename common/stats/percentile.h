#pragma once

// Percentiles as the run folder's files mean them: an observed value, never an interpolated one.
// The value of percentile p over n sorted values is the one at index trunc((p / 100.0) · (n − 1)),
// computed in IEEE double in that order (the order statistic at or below the rank). Vectors:
// tests/conformance/percentile_index.json. Pure; no owner.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tutti::stats {

// One percentile of the files' fixed grid, with the text that is its JSON key.
struct GridPoint {
  double percentile = 0;  // in percent, (0, 100)
  std::string_view key;
};

// In the order the files list them.
inline constexpr std::array<GridPoint, 12> kPercentileGrid{{{99.9, "99.9"},
                                                            {99.0, "99.0"},
                                                            {97.0, "97.0"},
                                                            {95.0, "95.0"},
                                                            {90.0, "90.0"},
                                                            {80.0, "80.0"},
                                                            {75.0, "75.0"},
                                                            {50.0, "50.0"},
                                                            {25.0, "25.0"},
                                                            {10.0, "10.0"},
                                                            {5.0, "5.0"},
                                                            {1.0, "1.0"}}};

// Index into n ascending values, n ≥ 1; `percentile` in [0, 100].
std::uint64_t percentile_index(std::uint64_t n, double percentile);

// The value of `percentile` in ascending `sorted`, which is not empty.
template <class T>
T percentile_of_sorted(std::span<const T> sorted, double percentile) {
  return sorted[percentile_index(sorted.size(), percentile)];
}

}  // namespace tutti::stats
