#include "agent/drive/dealer.h"

namespace tutti::drive {

// Closed loop: the worker with the most slots not yet spoken for (fewest commands beyond them),
// ties in rotation. Timed and burst: plain rotation, which keeps due times spread evenly.
int Dealer::deal() {
  int best = -1;
  std::int64_t best_free = 0;
  for (std::size_t step = 0; step < desks_.size(); ++step) {
    const std::size_t i = (next_ + step) % desks_.size();
    const Desk& desk = desks_[i];
    if (!open(desk)) {
      continue;
    }
    const auto outstanding = static_cast<std::int64_t>(desk.dealt - desk.finished);
    const std::int64_t free = static_cast<std::int64_t>(desk.slots) - outstanding;
    if (best < 0 || free > best_free) {
      best = static_cast<int>(i);
      best_free = free;
    }
    if (pacing_ != base::Pacing::kClosedLoop) {
      break;
    }
  }
  if (best >= 0) {
    ++desks_[static_cast<std::size_t>(best)].dealt;
    next_ = (static_cast<std::size_t>(best) + 1) % desks_.size();
  }
  return best;
}

std::size_t Dealer::room() const {
  std::size_t sum = 0;
  for (const auto& desk : desks_) {
    sum += open(desk) ? queue_max_each_ - (desk.dealt - desk.settled) : 0;
  }
  return sum;
}

}  // namespace tutti::drive
