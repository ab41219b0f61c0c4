#include "agent/target/gap_tally.h"

namespace tutti::target {

// The first gap of its half octave.
void GapTally::open(std::size_t cell) {
  blocks_.emplace_back()[cell % kBlockCells] = 1;
  places_[cell / kBlockCells] = static_cast<std::uint8_t>(blocks_.size());
}

void GapTally::carry(std::size_t cell) { carries_.push_back(static_cast<std::uint16_t>(cell)); }

std::uint32_t GapTally::carried(std::uint16_t cell) const {
  std::uint32_t count = 0;
  for (const std::uint16_t each : carries_) {
    count += each == cell ? std::uint32_t{1} << 16 : 0U;
  }
  return count;
}

void GapTally::write(std::vector<wire::CountedCell>& out) const {
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

}  // namespace tutti::target
