#pragma once

// Dealer: which worker gets the next command, and how many more each can hold. Pure arithmetic over
// counts that the engine keeps and counts that workers publish. Owned by the session thread.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/vocabulary.h"

namespace tutti::drive {

// Worker i's part of `total`: the remainder goes to the first ones. Σ over i is `total`.
inline std::uint32_t share_of(std::uint32_t total, std::size_t workers, std::size_t i) {
  const auto count = static_cast<std::uint32_t>(workers);
  return total / count + (i < total % count ? 1U : 0U);
}

class Dealer {
 public:
  Dealer(std::size_t workers, std::size_t queue_max_each)
      : desks_(workers), queue_max_each_(queue_max_each) {}

  void arm(base::Pacing pacing, std::uint32_t slots) {
    pacing_ = pacing;
    for (std::size_t i = 0; i < desks_.size(); ++i) {
      desks_[i].slots = share_of(slots, desks_.size(), i);
    }
  }
  // Counts of worker i so far: commands that left its queues, commands that came back.
  void update(std::size_t i, std::uint64_t settled, std::uint64_t finished) {
    desks_[i].settled = settled;
    desks_[i].finished = finished;
  }
  // Picks a worker and counts one command dealt to it; -1: none that has slots has queue room.
  int deal();

  std::uint64_t queued(std::size_t i) const { return desks_[i].dealt - desks_[i].settled; }
  std::size_t room() const;

 private:
  struct Desk {
    std::uint64_t dealt = 0;
    std::uint64_t settled = 0;
    std::uint64_t finished = 0;
    std::uint32_t slots = 0;
  };

  bool open(const Desk& desk) const {
    return desk.slots > 0 && desk.dealt - desk.settled < queue_max_each_;
  }

  std::vector<Desk> desks_;
  std::size_t queue_max_each_;
  base::Pacing pacing_ = base::Pacing::kBurst;
  std::size_t next_ = 0;
};

}  // namespace tutti::drive
