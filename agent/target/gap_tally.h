#pragma once

// GapTally: the gaps between one reply's content events, counted in stats::LiveHistogram's cells
// while they come. Every gap is in exactly one cell. Only the half octaves that were hit take
// memory, a cache line each: a usual stream needs two to six of them, the worst one 74. The blocks
// are kept from reply to reply, so that add() does not allocate once they are there. Owned by one
// worker thread.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/fetch.h"
#include "common/base/time.h"
#include "common/stats/live_histogram.h"
#include "common/wire/record.h"

namespace tutti::target {

class GapTally {
 public:
  void clear() {
    if (!blocks_.empty()) {
      places_.fill(0);
      blocks_.clear();
      carries_.clear();
    }
  }

  void add(base::Duration gap) {
    const std::size_t cell = stats::LiveHistogram::cell_of(gap.ns);
    const std::uint8_t place = places_[cell / kBlockCells];
    if (place == 0) [[unlikely]] {
      open(cell);
      return;
    }
    if (++blocks_[place - 1U][cell % kBlockCells] == 0) [[unlikely]] {
      carry(cell);
    }
  }

  // Of the half octaves that a usual stream hits.
  void fetch_lines() const {
    constexpr std::size_t kUsual = 6;
    base::fetch_lines(blocks_.data(), std::min(blocks_.size(), kUsual) * sizeof(Block));
  }

  // The cells that were hit, ascending; `out` is overwritten and keeps its memory.
  void write(std::vector<wire::CountedCell>& out) const;

 private:
  static constexpr std::size_t kBlockCells = 32;
  static constexpr std::size_t kBlocks = stats::LiveHistogram::kCells / kBlockCells;
  static_assert(kBlocks * kBlockCells == stats::LiveHistogram::kCells && kBlocks < 256);
  using Block = std::array<std::uint16_t, kBlockCells>;

  // Seldom, and out of line: a chunk shall not pay for their registers.
  void open(std::size_t cell);
  void carry(std::size_t cell);
  std::uint32_t carried(std::uint16_t cell) const;

  std::array<std::uint8_t, kBlocks> places_{};  // 1 + index of each half octave's block; 0: none
  std::vector<Block> blocks_;
  std::vector<std::uint16_t> carries_;  // the cell of every count that passed 16 bits
};

}  // namespace tutti::target
