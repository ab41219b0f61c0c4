#include "coordinator/conduct/phase_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace tutti::conduct {
namespace {

using base::Duration;
using base::Instant;
using base::IssueCommand;
using base::Seq;

std::uint64_t queued(const Seat& seat) {
  return seat.load() > seat.slots ? seat.load() - seat.slots : 0;
}

std::uint64_t free_slots(const Seat& seat) {
  return seat.slots > seat.load() ? seat.slots - seat.load() : 0;
}

bool seat_closed(const Seat& seat) {
  return seat.lost || (seat.drained.has_value() && seat.outstanding == 0 &&
                       seat.batch_stored >= seat.drained->last_batch);
}

std::optional<plan::Dealer> dealer_of(const plan::PhaseSpec& spec, const std::vector<Seat>& seats) {
  std::vector<std::uint32_t> weights;
  std::uint64_t sum = 0;
  for (const Seat& seat : seats) {
    weights.push_back(seat.slots);
    sum += seat.slots;
  }
  if (spec.pacing != base::Pacing::kTimed || sum == 0) {
    return std::nullopt;
  }
  return plan::Dealer(weights);
}

}  // namespace

PhaseRun::PhaseRun(std::uint32_t phase, const plan::PhaseSpec& spec, std::vector<Seat> seats,
                   std::int64_t prefetch)
    : phase_(phase), schedule_(spec), seats_(std::move(seats)), dealer_(dealer_of(spec, seats_)) {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    prefetch_.emplace_back(prefetch, seats_[i].slots);
    index_.emplace(seats_[i].agent, i);
    seats_[i].plays = plays();
  }
  if (plays()) {
    one_for_one_ = true;  // the reference order says which trajectory takes the next free slot
    turns_out_.resize(spec.trajectories->count());
  }
  is_open_.resize(seats_.size());
  rooms_.resize(seats_.size());
  leases_.resize(seats_.size());
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    touch(i);
  }
}

void PhaseRun::set_delay(AgentKey agent, Duration delay) {
  if (const std::size_t i = seat_of(agent); i != kNobody) {
    seats_[i].delay = delay;
    touch(i);
  }
}

// ---- facts -----------------------------------------------------------------------------------

std::size_t PhaseRun::seat_of(AgentKey agent) const {
  const auto it = index_.find(agent);
  return it == index_.end() ? kNobody : it->second;
}

void PhaseRun::batch_stored(AgentKey agent, std::uint64_t batch) {
  if (const std::size_t i = seat_of(agent); i != kNobody) {
    seats_[i].batch_stored = std::max(seats_[i].batch_stored, batch);
  }
}

void PhaseRun::record_stored(AgentKey agent, const StoredRecord& record, Instant now) {
  const std::size_t i = seat_of(agent);
  const HeldCommands::Held* held = out_.find(record.seq);
  if (held != nullptr && held->seat == i) {
    out_.erase(record.seq);
    --seats_[i].outstanding;
    note_back(i, record.seq);
    if (plays() && turns_out_[spec().trajectories->place_of(record.seq).trajectory] == 0) {
      first_user_done_ = first_user_done_ || supply_empty();
    }
    prefetch_[i].completed(1, now);
    touch(i);
  } else if (missing_.erase(record.seq) == 0) {
    // Only a broken agent gets here: it reports what it gave back, or what it never had. What it
    // gave back and started all the same must not be given to another.
    ++strays_;
    if (returned_.erase(record.seq) == 0) {
      return;
    }
  }
  switch (record.outcome) {
    case wire::Outcome::kOk:
      ++totals_.ok;
      break;
    case wire::Outcome::kFailed:
      ++totals_.failed;
      break;
    case wire::Outcome::kCancelled:
      ++totals_.cancelled;
      break;
  }
}

void PhaseRun::records_lost(AgentKey agent, std::uint64_t of_this_phase) {
  if (const std::size_t i = seat_of(agent); i != kNobody) {
    seats_[i].records_lost = std::max(seats_[i].records_lost, of_this_phase);
    touch(i);
  }
}

void PhaseRun::started(AgentKey agent, std::uint64_t of_this_phase) {
  if (const std::size_t i = seat_of(agent); i != kNobody) {
    seats_[i].started = std::max(seats_[i].started, of_this_phase);
  }
}

// A command is no longer in the seat's hands.
void PhaseRun::note_back(std::size_t i, Seq seq) {
  if (plays() && --turns_out_[spec().trajectories->place_of(seq).trajectory] == 0) {
    --seats_[i].trajectories;
  }
}

void PhaseRun::recalled(AgentKey agent, const wire::Recalled& message) {
  const std::size_t i = seat_of(agent);
  const bool own_accord = message.number == 0;  // aborted, by us or by a signal on its host
  if (i == kNobody || seats_[i].lost || (!own_accord && message.number != seats_[i].recall_out)) {
    ++strays_;
    return;
  }
  Seat& seat = seats_[i];
  if (own_accord) {
    seat.leaving = true;
  } else {
    seat.recall_out = 0;
  }
  touch(i);
  std::vector<IssueCommand> unstarted;
  for (const Seq seq : message.unstarted) {
    const HeldCommands::Held* held = out_.find(seq);
    if (held == nullptr || held->seat != i) {
      ++strays_;
      continue;
    }
    unstarted.push_back(held->command);
    out_.erase(seq);
    --seat.outstanding;
    --seat.leased;
    note_back(i, seq);
  }
  take_back(i, std::move(unstarted));
}

// Of trajectories, what nobody will issue any more is withheld: the rest of one that has begun
// cannot go on elsewhere, and after a stop none begins.
void PhaseRun::take_back(std::size_t i, std::vector<IssueCommand>&& unstarted) {
  for (const IssueCommand& command : unstarted) {
    returned_.emplace(command.seq, command);
  }
  if (!plays() || mode_ == Mode::kRecalling) {
    return;
  }
  if (closed_) {
    withhold();
    return;
  }
  for (const IssueCommand& command : unstarted) {
    const auto place = spec().trajectories->place_of(command.seq);
    const Seq first = spec().trajectories->first_seq(place.trajectory);
    if (returned_.count(first) == 0 && returned_.erase(command.seq) > 0) {
      missing_.emplace(command.seq, Missing{phase_, command.seq, seats_[i].name,
                                            "never issued: its agent left amid the conversation"});
    }
  }
}

void PhaseRun::withhold() {
  for (const auto& [seq, command] : returned_) {
    withheld_.insert(seq);
  }
  returned_.clear();
  while (!withheld_.empty() && *withheld_.rbegin() + 1 == end_) {
    withheld_.erase(std::prev(withheld_.end()));
    --end_;
  }
}

void PhaseRun::drained(AgentKey agent, const wire::Drained& message) {
  const std::size_t i = seat_of(agent);
  if (i != kNobody && seats_[i].leaving && !seats_[i].lost) {
    take_back_unstarted(i, message.started);
    if (!seats_[i].drain_sent) {
      return;  // said unasked, before its goodbye
    }
  }
  if (i == kNobody || !seats_[i].drain_sent || seats_[i].drained || seats_[i].lost) {
    ++strays_;
    return;
  }
  seats_[i].drained = message;
}

// An agent that leaves says how much it had started, after the last record of it. When all of that
// has records, the rest are leases that reached it too late, and others may have them.
void PhaseRun::take_back_unstarted(std::size_t i, std::uint64_t started) {
  Seat& seat = seats_[i];
  if (started != seat.leased - seat.outstanding) {
    return;
  }
  std::vector<IssueCommand> unstarted;
  out_.erase_if([&](const HeldCommands::Held& held) {
    if (held.seat == i) {
      unstarted.push_back(held.command);
      note_back(i, held.command.seq);
    }
    return held.seat == i;
  });
  seat.leased -= seat.outstanding;
  seat.outstanding = 0;
  take_back(i, std::move(unstarted));
}

void PhaseRun::lose(AgentKey agent, const std::string& why) {
  const std::size_t i = seat_of(agent);
  if (i == kNobody || seats_[i].lost) {
    return;
  }
  close_seat(i, fmt::format("agent lost: {}", why));
  seats_[i].lost = true;
  seats_[i].recall_out = 0;
}

// Whatever this seat still has will get no record from it.
void PhaseRun::close_seat(std::size_t i, const std::string& why) {
  out_.erase_if([&](const HeldCommands::Held& held) {
    const Seq seq = held.command.seq;
    if (held.seat == i) {
      missing_.emplace(seq, Missing{phase_, seq, seats_[i].name, why});
      note_back(i, seq);
    }
    return held.seat == i;
  });
  seats_[i].outstanding = 0;
}

// ---- issuing ---------------------------------------------------------------------------------

// The next command to lease: what came back first, it is the oldest.
const IssueCommand* PhaseRun::peek(Instant now) {
  if (!returned_.empty()) {
    return &returned_.begin()->second;
  }
  if (closed_) {
    return nullptr;
  }
  if (!ahead_) {
    ahead_ = schedule_.next();
  }
  if (!ahead_ || (timed() && start_at_ + ahead_->due_offset > now + kHorizon)) {
    return nullptr;
  }
  return &*ahead_;
}

IssueCommand PhaseRun::take() {
  if (!returned_.empty()) {
    const IssueCommand command = returned_.begin()->second;
    returned_.erase(returned_.begin());
    return command;
  }
  const IssueCommand command = *ahead_;
  ahead_.reset();
  end_ = command.seq + 1;
  if (timed()) {
    last_due_ = std::max(last_due_, command.due_offset);
  }
  return command;
}

bool PhaseRun::supply_empty() const {
  return returned_.empty() && !ahead_ && (closed_ || schedule_.done());
}

// At the end of the schedule one agent may have free slots while others hold queues: take the
// queues back and from then on give a command only for a free slot, so that it cannot happen again.
bool PhaseRun::balance_tail(Instant now, std::vector<Command>& out) {
  std::uint64_t idle = 0;
  std::uint64_t waiting = 0;
  for (const Seat& seat : seats_) {
    if (!seat.lost) {
      idle += seat.leaving ? 0 : free_slots(seat);
      waiting += queued(seat);
    }
  }
  const bool settled = recall_pending() || tail_recalls_ == kTailRecallsMax;
  if (timed() || settled || idle == 0 || waiting == 0 || now < next_tail_recall_) {
    return false;
  }
  one_for_one_ = true;
  ++tail_recalls_;
  next_tail_recall_ = now + Duration::millis(100);
  for (Seat& seat : seats_) {
    if (!seat.lost && queued(seat) > 0) {
      recall(seat, now, out);
    }
  }
  return true;
}

void PhaseRun::recall(Seat& seat, Instant now, std::vector<Command>& out) {
  seat.recall_out = ++recalls_;
  seat.asked_at = now;
  out.emplace_back(Send{seat.agent, wire::Recall{phase_, seat.recall_out}});
}

bool PhaseRun::recall_pending() const {
  return std::any_of(seats_.begin(), seats_.end(),
                     [](const Seat& seat) { return seat.recall_out != 0; });
}

// ---- ending ----------------------------------------------------------------------------------

void PhaseRun::stop_issuing(Instant now, std::vector<Command>& out) {
  if (mode_ != Mode::kOpen) {
    return;
  }
  closed_ = true;
  ahead_.reset();
  mode_ = Mode::kRecalling;
  for (Seat& seat : seats_) {
    if (!seat.lost && seat.recall_out == 0 && seat.outstanding > 0) {
      recall(seat, now, out);
    }
  }
}

void PhaseRun::abort(Instant now, std::vector<Command>& out) {
  if (mode_ == Mode::kAborting) {
    return;
  }
  closed_ = true;
  ahead_.reset();
  mode_ = Mode::kAborting;
  drain_all(now, out);
}

void PhaseRun::drain_all(Instant now, std::vector<Command>& out) {
  for (Seat& seat : seats_) {
    if (!seat.lost && !seat.drain_sent) {
      seat.drain_sent = true;
      seat.asked_at = now;
      out.emplace_back(Send{seat.agent, wire::Drain{phase_}});
    }
  }
}

// Commands above the highest started one are dropped: they were never issued and never will be.
void PhaseRun::trim() {
  while (!returned_.empty() && returned_.rbegin()->first + 1 == end_) {
    returned_.erase(std::prev(returned_.end()));
    --end_;
  }
  last_due_ = {};
  if (!timed()) {
    return;
  }
  out_.each([this](const HeldCommands::Held& held) {
    last_due_ = std::max(last_due_, held.command.due_offset);
  });
  for (const auto& [seq, command] : returned_) {
    last_due_ = std::max(last_due_, command.due_offset);
  }
}

void PhaseRun::give_up_holes(const char* why) {
  if (plays()) {
    withhold();
    return;
  }
  for (const auto& [seq, command] : returned_) {
    missing_.emplace(seq, Missing{phase_, seq, {}, why});
  }
  never_issued_ += returned_.size();
  returned_.clear();
}

// An agent that says it is done and whose batches are all here has no record of what is left.
void PhaseRun::close_drained_seats(Instant now) {
  if (mode_ < Mode::kDraining) {
    return;  // nobody was asked to drain
  }
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    Seat& seat = seats_[i];
    if (!seat.lost && seat.drained && seat.batch_stored >= seat.drained->last_batch &&
        seat.outstanding > 0) {
      close_seat(i, "the agent ended the phase without a record of it");
    }
    if (seat.outstanding > seat.records_lost && seat.recall_out == 0) {
      seat.asked_at = now;  // it is not asked for anything but to go on
    }
  }
}

// Not before the start: until then a stop must be able to take everything back.
bool PhaseRun::ready_to_drain(Instant now) const {
  const bool all_started = std::all_of(seats_.begin(), seats_.end(), [this](const Seat& seat) {
    const bool turns_left = seat.plays && !closed_ && seat.load() > 0 && seat.started < seat.leased;
    return seat.lost || (queued(seat) == 0 && !turns_left);
  });
  return all_started && !recall_pending() && now >= start_at_ + last_due_;
}

void PhaseRun::advance(Instant now, std::vector<Command>& out) {
  leased_at_once_ = 0;
  if (mode_ == Mode::kRecalling && !recall_pending()) {
    trim();
    one_for_one_ = true;
    mode_ = Mode::kFilling;
    if (plays()) {
      withhold();
    }
  }
  if (mode_ == Mode::kOpen || mode_ == Mode::kFilling) {
    lease_more(now, out);
    if (!served() && mode_ == Mode::kFilling) {
      trim();
      give_up_holes("never issued: no agent with slots was left");
    }
    if (supply_empty() && !balance_tail(now, out) && ready_to_drain(now)) {
      mode_ = Mode::kDraining;
      drain_all(now, out);
    }
  }
  close_drained_seats(now);
  if (!returned_.empty() && mode_ >= Mode::kDraining &&
      std::all_of(seats_.begin(), seats_.end(), seat_closed)) {
    trim();
    give_up_holes(mode_ == Mode::kAborting
                      ? "never issued: the run was aborted"
                      : "never issued: its agent gave it back after the last lease");
  }
}

bool PhaseRun::served() const {
  return std::any_of(seats_.begin(), seats_.end(), [](const Seat& seat) {
    return !seat.lost && !seat.leaving && seat.slots > 0;
  });
}

bool PhaseRun::over() const {
  return mode_ >= Mode::kDraining && returned_.empty() &&
         std::all_of(seats_.begin(), seats_.end(), seat_closed);
}

const Seat* PhaseRun::overdue(Instant now, Duration limit, Duration counting) const {
  for (const Seat& seat : seats_) {
    const bool drains = seat.drain_sent && !seat.drained;
    const Duration patience = seat.recall_out == 0 ? limit + counting : limit;
    if (!seat.lost && (seat.recall_out != 0 || drains) && now > seat.asked_at + patience) {
      return &seat;
    }
  }
  return nullptr;
}

PhaseTotals PhaseRun::totals() const {
  PhaseTotals totals = totals_;
  totals.prefix = end_;
  totals.withheld.assign(withheld_.begin(), withheld_.end());
  for (const auto& [seq, missing] : missing_) {
    totals.missing.push_back(missing);
  }
  return totals;
}

}  // namespace tutti::conduct
