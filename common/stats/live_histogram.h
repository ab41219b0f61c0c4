#pragma once

// LiveHistogram: counts of durations in fixed cells, for the live view, and for the gaps of streams
// when they are not kept one by one. Cells are log-linear: one per nanosecond below 64 ns, then 64
// per octave, so a cell's middle is within 1/128 (0.8 %) of every value in it; 0 is a cell of its
// own. Values are clamped into 0 … 3.6e12 ns (one hour). Fixed
// memory (18.5 KiB), no allocation in add or merge; merge is a sum of cells: commutative and
// associative. Same cells in every process, so sparse cells travel as wire::LiveCounts. One owner,
// no locks.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tutti::stats {

class LiveHistogram {
 public:
  static constexpr std::int64_t kValueMin = 0;
  static constexpr std::int64_t kValueMax = 3'600'000'000'000;
  static constexpr int kOctaveBits = 6;                        // 64 cells an octave
  static constexpr std::size_t kCells = std::size_t{64} * 37;  // values below 2^42 (> kValueMax)
  static constexpr double kRelativeError = 1.0 / 128;          // of a percentile, at most

  // (cell, count): what wire::LiveCounts carries.
  using Cell = std::pair<std::uint16_t, std::uint32_t>;

  static constexpr std::size_t cell_of(std::int64_t value_ns);  // clamps
  static std::int64_t low_of(std::size_t cell);                 // ns, the least value of it
  static double middle_of(std::size_t cell);                    // ns

  void add(std::int64_t value_ns);
  void merge(const LiveHistogram& other);
  void clear();

  std::uint64_t count() const { return count_; }

  // The non-empty cells in ascending order. A cell whose count exceeds 32 bits comes as several
  // entries; importing sums them again.
  std::vector<Cell> cells() const;
  // Adds cells that came from elsewhere. All or nothing: false, and nothing changed, when one of
  // them is not a cell of this layout (a peer of another version, or a damaged message).
  bool add_cells(std::span<const Cell> cells);

  // The order statistic of stats::percentile_index, as its cell's middle; nothing when empty.
  std::optional<double> percentile(double percentile) const;

  friend bool operator==(const LiveHistogram&, const LiveHistogram&) = default;

 private:
  std::array<std::uint64_t, kCells> counts_{};
  std::uint64_t count_ = 0;
};

// Below 64 the value is its own cell. From 2^e on (e ≥ 6) the octave is cut into 64 equal parts of
// 2^(e−6): the six bits after the leading one choose the part. Inline: it is asked for every chunk.
constexpr std::size_t LiveHistogram::cell_of(std::int64_t value_ns) {
  const auto value = static_cast<std::uint64_t>(std::clamp(value_ns, kValueMin, kValueMax));
  if (value < (std::uint64_t{1} << kOctaveBits)) {
    return value;
  }
  const int octave = static_cast<int>(std::bit_width(value)) - 1 - kOctaveBits;
  return (static_cast<std::size_t>(octave) << kOctaveBits) + (value >> octave);
}

}  // namespace tutti::stats
