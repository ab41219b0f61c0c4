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
  shares_.resize(seats_.size());
  is_stirred_.resize(seats_.size());
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
    stir(i);
  }
}

void PhaseRun::record_stored(AgentKey agent, const StoredRecord& record, Instant now) {
  const std::size_t i = seat_of(agent);
  if (held_by(i, record.seq)) {
    hand_back(i, record.seq);
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

void PhaseRun::record_refused(AgentKey agent, const StoredRecord& record, const std::string& why) {
  const std::size_t i = seat_of(agent);
  if (!held_by(i, record.seq)) {
    ++strays_;
    return;
  }
  hand_back(i, record.seq);
  missing_.emplace(record.seq, Missing{phase_, record.seq, seats_[i].name, why});
  touch(i);
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
    stir(i);
  }
}

bool PhaseRun::held_by(std::size_t i, Seq seq) const {
  const HeldCommands::Held* held = out_.find(seq);
  return held != nullptr && held->seat == i;
}

void PhaseRun::hand_back(std::size_t i, Seq seq) {
  out_.erase(seq);
  --seats_[i].outstanding;
  note_back(i, seq);
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
    end_recall(seat);
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
    --seat.leased;
    hand_back(i, seq);
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
  if (i != kNobody) {
    stir(i);
  }
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

void PhaseRun::dismiss(AgentKey agent, const std::string& why) {
  const std::size_t i = seat_of(agent);
  if (i == kNobody || seats_[i].lost) {
    return;
  }
  close_seat(i, why);
  seats_[i].lost = true;
  end_recall(seats_[i]);
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
  stir(i);
}

void PhaseRun::stir(std::size_t i) {
  if (!is_stirred_[i]) {
    is_stirred_[i] = true;
    stirred_.push_back(i);
  }
}

void PhaseRun::settle_stirred(Instant now) {
  for (std::size_t n = 0; n < stirred_.size(); ++n) {
    settle(stirred_[n], now);
    is_stirred_[stirred_[n]] = false;
  }
  stirred_.clear();
}

void PhaseRun::settle(std::size_t i, Instant now) {
  Seat& seat = seats_[i];
  // An agent that says it is done and whose batches are all here has no record of what is left.
  if (mode_ >= Mode::kDraining && !seat.lost && seat.batches_here() && seat.outstanding > 0) {
    close_seat(i, "the agent ended the phase without a record of it");
  }
  const SeatShare share = share_of(seat);
  if (shares_[i].busy && !share.busy && seat.recall_out == 0) {
    seat.asked_at = now;  // until now it was not asked for anything but to go on
  }
  sums_.replace(shares_[i], share);
  shares_[i] = share;
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
  return ahead_ && !beyond_horizon(*ahead_, now) ? &*ahead_ : nullptr;
}

bool PhaseRun::beyond_horizon(const IssueCommand& command, Instant now) const {
  const Duration into_step{now.ns % kHorizonStep.ns};
  return timed() && start_at_ + command.due_offset > now - into_step + kHorizon;
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
  const bool settled = recall_pending() || tail_recalls_ == kTailRecallsMax;
  if (timed() || settled || sums_.free == 0 || sums_.queued == 0 || now < next_tail_recall_) {
    return false;
  }
  one_for_one_ = true;
  ++tail_recalls_;
  next_tail_recall_ = now + Duration::millis(100);
  for (Seat& seat : seats_) {
    if (!seat.lost && seat.queued() > 0) {
      recall(seat, now, out);
    }
  }
  return true;
}

void PhaseRun::recall(Seat& seat, Instant now, std::vector<Command>& out) {
  recalls_out_ += seat.recall_out == 0 ? 1 : 0;
  seat.recall_out = ++recalls_;
  seat.asked_at = now;
  out.emplace_back(Send{seat.agent, wire::Recall{phase_, seat.recall_out}});
}

void PhaseRun::end_recall(Seat& seat) {
  recalls_out_ -= seat.recall_out == 0 ? 0 : 1;
  seat.recall_out = 0;
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
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    Seat& seat = seats_[i];
    if (!seat.lost && !seat.drain_sent) {
      seat.drain_sent = true;
      seat.asked_at = now;
      stir(i);
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

// Not before the start: until then a stop must be able to take everything back.
bool PhaseRun::ready_to_drain(Instant now) const {
  const bool all_started = sums_.queued == 0 && (closed_ || sums_.begun == 0);
  return all_started && !recall_pending() && now >= start_at_ + last_due_;
}

void PhaseRun::advance(Instant now, std::vector<Command>& out) {
  leased_at_once_ = 0;
  settle_stirred(now);
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
    settle_stirred(now);
    if (!served() && mode_ == Mode::kFilling) {
      trim();
      give_up_holes("never issued: no agent with slots was left");
    }
    if (supply_empty() && !balance_tail(now, out) && ready_to_drain(now)) {
      mode_ = Mode::kDraining;
      drain_all(now, out);
    }
  }
  settle_stirred(now);
  if (!returned_.empty() && mode_ >= Mode::kDraining && all_seats_closed()) {
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
  return mode_ >= Mode::kDraining && returned_.empty() && all_seats_closed();
}

const Seat* PhaseRun::overdue(Instant now, Duration limit, Duration counting) const {
  if (!recall_pending() && mode_ < Mode::kDraining) {
    return nullptr;
  }
  for (const Seat& seat : seats_) {
    const bool owes = seat.recall_out != 0 || (seat.drain_sent && !seat.drained && !seat.busy());
    const Duration patience = seat.recall_out == 0 ? limit + counting : limit;
    if (!seat.lost && owes && now > seat.asked_at + patience) {
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
