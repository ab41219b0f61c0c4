#pragma once

// GapTally: the gaps between one reply's content events, counted in stats::LiveHistogram's cells
// while they come. Every gap is in exactly one cell. Only the half octaves that were hit take
// memory, a cache line each: a usual stream needs two to six of them, the worst one 74. The blocks
// are kept from reply to reply, so that add() does not allocate once they are there. Owned by one
// worker thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

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
    std::uint8_t& place = places_[cell / kBlockCells];
    if (place == 0) [[unlikely]] {
      blocks_.emplace_back();
      place = static_cast<std::uint8_t>(blocks_.size());
    }
    if (++blocks_[place - 1U][cell % kBlockCells] == 0) [[unlikely]] {
      carries_.push_back(static_cast<std::uint16_t>(cell));
    }
  }

  // The cells that were hit, ascending; `out` is overwritten and keeps its memory.
  void write(std::vector<wire::CountedCell>& out) const {
    out.clear();
    if (blocks_.empty()) {
      return;
    }
    for (std::size_t half = 0; half < kBlocks; ++half) {
      if (places_[half] == 0) {
        continue;
      }
      const Block& block = blocks_[places_[half] - 1U];
      for (std::size_t i = 0; i < kBlockCells; ++i) {
        const auto cell = static_cast<std::uint16_t>(half * kBlockCells + i);
        const std::uint32_t count = block[i] + carried(cell);
        if (count > 0) {
          out.emplace_back(cell, count);
        }
      }
    }
  }

 private:
  static constexpr std::size_t kBlockCells = 32;
  static constexpr std::size_t kBlocks = stats::LiveHistogram::kCells / kBlockCells;
  static_assert(kBlocks * kBlockCells == stats::LiveHistogram::kCells && kBlocks < 256);
  using Block = std::array<std::uint16_t, kBlockCells>;

  std::uint32_t carried(std::uint16_t cell) const {
    std::uint32_t count = 0;
    for (const std::uint16_t each : carries_) {
      count += each == cell ? std::uint32_t{1} << 16 : 0U;
    }
    return count;
  }

  std::array<std::uint8_t, kBlocks> places_{};  // 1 + index of each half octave's block; 0: none
  std::vector<Block> blocks_;
  std::vector<std::uint16_t> carries_;  // the cell of every count that passed 16 bits
};

}  // namespace tutti::target
