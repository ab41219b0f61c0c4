// Which agent gets the next command: the part of PhaseRun that fills leases.

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "coordinator/conduct/phase_run.h"

namespace tutti::conduct {

using base::Instant;
using base::IssueCommand;

std::uint64_t PhaseRun::room(const Seat& seat, std::uint64_t depth) const {
  if (seat.lost || seat.leaving || seat.slots == 0 || seat.recall_out != 0) {
    return 0;
  }
  const std::uint64_t most = timed() ? kTimedQueueMax : seat.slots + depth;
  return most - std::min(most, seat.load());
}

std::uint64_t PhaseRun::prefetch_depth(std::size_t seat, Instant now) const {
  return one_for_one_ ? 0 : prefetch_[seat].depth(seats_[seat].delay, now);
}

void PhaseRun::touch(std::size_t i) {
  stir(i);
  if (!is_open_[i]) {
    is_open_[i] = true;
    open_.push_back(i);
  }
}

void PhaseRun::lease_more(Instant now, std::vector<Command>& out) {
  if (peek(now) == nullptr) {
    return;
  }
  if (dealer_) {
    lease_dealt(now, out);
  } else {
    lease_to_least_taken(now, out);
  }
  std::sort(lessees_.begin(), lessees_.end());
  for (const std::size_t i : lessees_) {
    send_lease(i, out);
  }
  lessees_.clear();
}

// Takes the next command from the supply, or the next trajectory's commands, all of them.
void PhaseRun::give(std::size_t i, std::vector<Command>& out) {
  auto& commands = leases_[i].commands;
  if (commands.empty()) {
    lessees_.push_back(i);
  }
  if (plays()) {
    const plan::Trajectories& all = *spec().trajectories;
    const std::uint64_t k = all.place_of(peek({})->seq).trajectory;
    const std::uint32_t turns = all.turns(k);
    leases_[i].trajectories.push_back({turns, all.logical_id(k)});
    turns_out_[k] = turns;
    ++seats_[i].trajectories;
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      TUTTI_CHECK(peek({}) != nullptr);
      give_one(i);
    }
  } else {
    give_one(i);
  }
  if (commands.size() >= kLeaseMax) {
    send_lease(i, out);
    lessees_.erase(std::find(lessees_.begin(), lessees_.end(), i));
  }
}

void PhaseRun::give_one(std::size_t i) {
  const IssueCommand taken = take();
  out_.add(taken, static_cast<std::uint32_t>(i));
  ++seats_[i].outstanding;
  ++seats_[i].leased;
  ++leased_at_once_;
  leases_[i].commands.push_back(taken);
}

void PhaseRun::send_lease(std::size_t i, std::vector<Command>& out) {
  stir(i);
  leases_[i].phase = phase_;
  out.emplace_back(Send{seats_[i].agent, std::exchange(leases_[i], {})});
}

// Timed: the agent the dealer names; when that one has no room, the least taken.
void PhaseRun::lease_dealt(Instant now, std::vector<Command>& out) {
  while (const IssueCommand* command = has_more_to_lease() ? nullptr : peek(now)) {
    std::size_t i = dealer_->agent_of(command->seq);
    if (room(seats_[i], 0) == 0) {
      i = least_taken();
    }
    if (i == kNobody) {
      return;
    }
    give(i, out);
  }
}

std::size_t PhaseRun::least_taken() const {
  std::size_t best = kNobody;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (room(seats_[i], 0) > 0 && (best == kNobody || less_taken(i, best))) {
      best = i;
    }
  }
  return best;
}

bool PhaseRun::less_taken(std::size_t a, std::size_t b) const {
  const std::uint64_t left = seats_[a].load() * seats_[b].slots;
  const std::uint64_t right = seats_[b].load() * seats_[a].slots;
  return left != right ? left < right : a < b;
}

// Not timed: the one whose slots are least taken, so that the oldest commands are spread over all
// agents at all times and a stop leaves few holes. open_ is made a heap of those with room.
void PhaseRun::lease_to_least_taken(Instant now, std::vector<Command>& out) {
  const auto later = [this](std::size_t a, std::size_t b) { return less_taken(b, a); };
  std::erase_if(open_, [&](std::size_t i) {
    rooms_[i] = room(seats_[i], prefetch_depth(i, now));
    is_open_[i] = rooms_[i] > 0;
    if (is_open_[i] && !one_for_one_) {
      rooms_[i] += prefetch_[i].lot(seats_[i].delay, now);
    }
    return !is_open_[i];
  });
  std::make_heap(open_.begin(), open_.end(), later);
  while (!open_.empty() && !has_more_to_lease() && peek(now) != nullptr) {
    std::pop_heap(open_.begin(), open_.end(), later);
    const std::size_t i = open_.back();
    give(i, out);
    if (--rooms_[i] == 0) {
      is_open_[i] = false;
      open_.pop_back();
    } else {
      std::push_heap(open_.begin(), open_.end(), later);
    }
  }
}

}  // namespace tutti::conduct
