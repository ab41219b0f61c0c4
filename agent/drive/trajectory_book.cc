#include "agent/drive/trajectory_book.h"

#include <algorithm>
#include <functional>

#include "common/base/check.h"

namespace tutti::drive {

void TrajectoryBook::add(std::unique_ptr<Trajectory> trajectory) {
  TUTTI_CHECK(!trajectory->turns.empty());
  const base::Seq first = trajectory->turns.front().seq;
  waiting_.emplace(first, std::move(trajectory));
  due_.reserve(waiting_.size() + played_.size());
}

Trajectory& TrajectoryBook::begin() {
  const auto begun = played_.insert(waiting_.extract(waiting_.begin())).position;
  Trajectory& trajectory = *begun->second;
  trajectory.taken = 1;
  trajectory.in_flight = true;
  return trajectory;
}

Trajectory& TrajectoryBook::go_on() {
  const base::Seq first = due_.front().second;
  std::pop_heap(due_.begin(), due_.end(), std::greater<>{});
  due_.pop_back();
  Trajectory& trajectory = *played_.at(first);
  ++trajectory.taken;
  trajectory.in_flight = true;
  return trajectory;
}

Trajectory* TrajectoryBook::find(base::Seq seq) {
  auto at = played_.upper_bound(seq);
  if (at == played_.begin()) {
    return nullptr;
  }
  --at;
  return seq - at->first < at->second->taken ? at->second.get() : nullptr;
}

bool TrajectoryBook::await_next(Trajectory& trajectory, base::Instant ended_at) {
  trajectory.in_flight = false;
  if (trajectory.taken == trajectory.turns.size()) {
    return false;
  }
  due_.emplace_back(ended_at + trajectory.turns[trajectory.taken].due_offset,
                    trajectory.turns.front().seq);
  std::push_heap(due_.begin(), due_.end(), std::greater<>{});
  return true;
}

std::size_t TrajectoryBook::give_up(Trajectory& trajectory) {
  trajectory.in_flight = true;
  return std::exchange(trajectory.taken, trajectory.turns.size());
}

void TrajectoryBook::close(const Trajectory& trajectory) {
  played_.erase(trajectory.turns.front().seq);
}

TrajectoryBook::Unstarted TrajectoryBook::recall() {
  Unstarted out;
  out.never_begun = waiting_.size();
  for (const auto& [first, trajectory] : waiting_) {
    for (const base::IssueCommand& turn : trajectory->turns) {
      out.turns.push_back(turn.seq);
    }
  }
  waiting_.clear();
  due_.clear();
  for (auto at = played_.begin(); at != played_.end();) {
    Trajectory& trajectory = *at->second;
    for (std::size_t turn = trajectory.taken; turn < trajectory.turns.size(); ++turn) {
      out.turns.push_back(trajectory.turns[turn].seq);
    }
    trajectory.turns.resize(trajectory.taken);
    out.over += trajectory.in_flight ? 0U : 1U;
    at = trajectory.in_flight ? std::next(at) : played_.erase(at);
  }
  return out;
}

}  // namespace tutti::drive
