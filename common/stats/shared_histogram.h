#pragma once

// SharedHistogram: durations counted in LiveHistogram's cells, for ever, by one thread; another one
// takes what came since it last looked. Fixed memory, no locks: relaxed counters, so a look sees
// each count but not necessarily all of one moment. The writer owns it.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/time.h"
#include "common/stats/live_histogram.h"

namespace tutti::stats {

class SharedHistogram {
 public:
  void add(base::Duration value) {
    auto& cell = cells_[LiveHistogram::cell_of(value.ns)];
    cell.store(cell.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Adds what came since `seen` (kCells entries, updated) to `out`.
  void collect(std::vector<std::uint32_t>& seen, LiveHistogram& out) const {
    std::vector<LiveHistogram::Cell> fresh;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const std::uint32_t now = cells_[i].load(std::memory_order_relaxed);
      if (now != seen[i]) {
        fresh.emplace_back(static_cast<std::uint16_t>(i), now - seen[i]);
        seen[i] = now;
      }
    }
    out.add_cells(fresh);
  }

 private:
  std::array<std::atomic<std::uint32_t>, LiveHistogram::kCells> cells_{};
};

}  // namespace tutti::stats
