#pragma once

// How one schedule becomes many shares. Both functions are pure: what an agent gets depends on seq,
// weights and counts only, and every command falls to exactly one agent, so the union of the shares
// is the schedule whatever the number of agents. No owner.

#include <cstdint>
#include <vector>

#include "common/base/vocabulary.h"

namespace tutti::plan {

// C slots over n ≥ 1 agents: ⌊C/n⌋ each, the remainder one each to the first C mod n. The sum is C.
// With C < n the last agents get 0.
std::vector<std::uint32_t> split_slots(std::uint32_t slots, std::size_t agents);

// Dealer: which agent takes which seq of a timed or burst schedule: round robin weighted by slots
// and interleaved evenly, so that a share is as smooth in time as the whole. The pattern repeats
// after cycle() commands. Agents of weight 0 get nothing.
class Dealer {
 public:
  // Longest pattern kept. Weights whose reduced sum is larger are scaled to it, rounded, but never
  // from above 0 to 0: shares then differ from the exact ratio by less than agents / kCycleMax.
  static constexpr std::uint64_t kCycleMax = 65'536;
  static constexpr std::size_t kAgentsMax = 4'096;

  // `weights[i]` is agent i's; 1 … kAgentsMax of them, at least one above 0.
  explicit Dealer(const std::vector<std::uint32_t>& weights);

  std::size_t agent_of(base::Seq seq) const { return pattern_[seq % pattern_.size()]; }
  std::size_t cycle() const { return pattern_.size(); }

 private:
  std::vector<std::uint16_t> pattern_;
};

}  // namespace tutti::plan
