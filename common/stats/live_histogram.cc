#include "common/stats/live_histogram.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/stats/percentile.h"

namespace tutti::stats {
namespace {

constexpr std::size_t kPerOctave = std::size_t{1} << LiveHistogram::kOctaveBits;

}  // namespace

std::int64_t LiveHistogram::low_of(std::size_t cell) {
  TUTTI_CHECK(cell < kCells);
  if (cell < kPerOctave) {
    return static_cast<std::int64_t>(cell);
  }
  return static_cast<std::int64_t>((kPerOctave + cell % kPerOctave) << (cell / kPerOctave - 1));
}

double LiveHistogram::middle_of(std::size_t cell) {
  const std::size_t octave = cell < kPerOctave ? 0 : cell / kPerOctave - 1;
  const std::uint64_t width = std::uint64_t{1} << octave;
  return static_cast<double>(low_of(cell)) + static_cast<double>(width - 1) / 2.0;
}

void LiveHistogram::add(std::int64_t value_ns) {
  ++counts_[cell_of(value_ns)];
  ++count_;
}

void LiveHistogram::merge(const LiveHistogram& other) {
  for (std::size_t i = 0; i < kCells; ++i) {
    counts_[i] += other.counts_[i];
  }
  count_ += other.count_;
}

void LiveHistogram::clear() {
  counts_.fill(0);
  count_ = 0;
}

std::vector<LiveHistogram::Cell> LiveHistogram::cells() const {
  constexpr std::uint64_t kEntryMax = std::numeric_limits<std::uint32_t>::max();
  std::vector<Cell> out;
  for (std::size_t i = 0; i < kCells; ++i) {
    for (std::uint64_t left = counts_[i]; left > 0;) {
      const std::uint64_t part = std::min(left, kEntryMax);
      out.emplace_back(static_cast<std::uint16_t>(i), static_cast<std::uint32_t>(part));
      left -= part;
    }
  }
  return out;
}

bool LiveHistogram::add_cells(std::span<const Cell> cells) {
  for (const Cell& cell : cells) {
    if (cell.first >= kCells) {
      return false;
    }
  }
  for (const Cell& cell : cells) {
    counts_[cell.first] += cell.second;
    count_ += cell.second;
  }
  return true;
}

std::optional<double> LiveHistogram::percentile(double percentile) const {
  if (count_ == 0) {
    return std::nullopt;
  }
  const std::uint64_t rank = percentile_index(count_, percentile);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kCells; ++i) {
    below += counts_[i];
    if (below > rank) {
      return middle_of(i);
    }
  }
  return std::nullopt;  // unreachable: the counts sum to count_ > rank
}

}  // namespace tutti::stats
