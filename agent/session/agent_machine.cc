#include "agent/session/agent_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/wire/link.h"

namespace tutti::session {

using base::ExitCode;
using base::Instant;

const char* name_of(AgentState state) {
  constexpr const char* kNames[] = {"waiting", "greeting", "joined",  "preparing",
                                    "ready",   "in phase", "leaving", "gone"};
  return kNames[static_cast<std::size_t>(state)];
}

AgentMachine::AgentMachine(AgentConfig config) : config_(std::move(config)) {}

void AgentMachine::step(Event event, Instant now, std::vector<Command>& out) {
  if (gone()) {
    return;
  }
  now_ = now;
  out_ = &out;
  std::visit([this](auto& e) { on(e); }, event);
  if (!gone()) {
    flush_records();
  }
  if (state_ == AgentState::kInPhase) {
    say_drained();
  } else if (state_ == AgentState::kLeaving) {
    go_on_leaving();
  }
  out_ = nullptr;
}

Instant AgentMachine::next_tick() const {
  const base::Duration look =
      counting_ > 0 && counting_since_.is_set() ? kCountsEvery : base::Duration::seconds(1);
  return std::min({batcher_.due_at(), gauges_at_, interval_ends_at_, leave_by_, now_ + look});
}

std::uint64_t AgentMachine::in_hand() const {
  const std::uint64_t back = phase_.returned + phase_.recorded + phase_.lost;
  return phase_.leased - std::min(phase_.leased, back);
}

// ---- joining ---------------------------------------------------------------------------------

void AgentMachine::on(const Connected& event) {
  if (state_ != AgentState::kWaiting || linked_) {
    ++illegal_;
    return;
  }
  linked_ = true;
  if (!event.listening) {
    state_ = AgentState::kGreeting;
    send(config_.hello);
  }
}

void AgentMachine::on(MessageFrom& event) {
  if (!linked_) {
    ++illegal_;
    return;
  }
  std::visit([this](auto& message) { take(message); }, event.message);
}

// A difference of versions is the coordinator's to refuse: it has both numbers then.
void AgentMachine::take(const wire::Dial& /*message*/) {
  if (state_ != AgentState::kWaiting) {
    ++illegal_;
    return;
  }
  state_ = AgentState::kGreeting;
  send(config_.hello);
}

void AgentMachine::take(const wire::Welcome& message) {
  if (state_ != AgentState::kGreeting) {
    ++illegal_;
    return;
  }
  state_ = AgentState::kJoined;
  run_ = message.run;
  number_ = message.agent;
  heartbeat_ = message.heartbeat;
  lost_after_ = message.lost_after;
  out_->emplace_back(SetLiveness{heartbeat_, lost_after_});
}

void AgentMachine::take(const wire::Refused& message) {
  if (state_ != AgentState::kGreeting) {
    ++illegal_;
    return;
  }
  exit(ExitCode::kSetup, fmt::format("the coordinator refused this agent: {}", message.reason));
}

void AgentMachine::take(const wire::ClockPing& message) {
  send(wire::ClockPong{message.number, message.coordinator_sent, now_, now_});
}

// ---- getting ready ---------------------------------------------------------------------------

void AgentMachine::take(const wire::Prepare& message) {
  if (state_ != AgentState::kJoined) {
    ++illegal_;
    return;
  }
  state_ = AgentState::kPreparing;
  prepare_ = message;
  out_->emplace_back(SetLiveness{heartbeat_, std::max(lost_after_, wire::kPreparingPatience)});
  out_->emplace_back(
      OpenBodies{message.bodies_hash, message.bodies_bytes, message.bodies_rows, message.counting});
}

void AgentMachine::on(const BodiesOpened& event) {
  if (state_ != AgentState::kPreparing || receiving_bodies_ || receiving_model_ || storing_ > 0 ||
      engine_runs_) {
    ++illegal_;
    return;
  }
  if (!event.error.empty()) {
    not_ready(event.error);
    return;
  }
  receiving_bodies_ = !event.present;
  receiving_model_ = prepare_.counting.wanted() && !event.model_present;
  send(wire::BodiesWanted{receiving_bodies_, receiving_model_});
  if (!receiving_bodies_ && !receiving_model_) {
    start_engine();
  }
}

void AgentMachine::take(wire::BodyChunk& message) {
  bool& receiving = message.model ? receiving_model_ : receiving_bodies_;
  if (state_ != AgentState::kPreparing || !receiving) {
    ++illegal_;
    return;
  }
  receiving = !message.last;
  storing_ += message.last ? 1U : 0U;
  out_->emplace_back(StoreBodies{std::move(message)});
}

void AgentMachine::on(const BodiesStored& event) {
  const bool expected = state_ == AgentState::kPreparing && !engine_runs_;
  const bool receiving = receiving_bodies_ || receiving_model_;
  if (!expected || (storing_ == 0 && (event.error.empty() || !receiving))) {
    ++illegal_;
    return;
  }
  if (!event.error.empty()) {
    receiving_bodies_ = receiving_model_ = false;
    storing_ = 0;
    not_ready(event.error);
    return;
  }
  --storing_;
  if (!receiving && storing_ == 0) {
    start_engine();
  }
}

void AgentMachine::start_engine() {
  engine_runs_ = true;
  out_->emplace_back(EngineStart{prepare_.target, prepare_.slots, prepare_.slots + kQueueMax});
  out_->emplace_back(SpoolNote{config_.hello});
  wire::Prepare note;  // without the target: its headers are secret
  note.slots = prepare_.slots;
  note.run_note = prepare_.run_note;
  out_->emplace_back(SpoolNote{std::move(note)});
}

void AgentMachine::on(const EngineWarmed& event) {
  if (state_ != AgentState::kPreparing || !engine_runs_) {
    ++illegal_;
    return;
  }
  if (!event.error.empty()) {
    not_ready(event.error);
    return;
  }
  state_ = AgentState::kReady;
  send(wire::Prepared{{}, event.frontends, event.connections_open});
}

// The coordinator calls the run off then, and says goodbye.
void AgentMachine::not_ready(const std::string& error) { send(wire::Prepared{error, {}, 0}); }

// ---- phases ----------------------------------------------------------------------------------

void AgentMachine::take(const wire::ArmPhase& message) {
  if (state_ != AgentState::kReady) {
    ++illegal_;
    return;
  }
  state_ = AgentState::kInPhase;
  phase_ = Phase{};
  phase_.number = message.phase;
  phase_.pacing = message.pacing;
  phase_.slots = message.slots;
  phase_.start_at = message.start_at;
  phase_.lost_before = records_lost_;
  phase_.counts = prepare_.counting.wanted() && message.kind == base::PhaseKind::kPerformance;
  counting_since_ = {};
  gauges_at_ = now_ + heartbeat_;
  interval_ends_at_ = next_interval_end();
  out_->emplace_back(SetLiveness{heartbeat_, lost_after_});
  out_->emplace_back(EngineArm{message});
  out_->emplace_back(SpoolNote{message});
  send(wire::Armed{message.phase});
}

void AgentMachine::take(wire::Lease& message) {
  const bool mine = state_ == AgentState::kInPhase && message.phase == phase_.number;
  if (!mine || phase_.drain_asked || phase_.aborted) {
    ++illegal_;
    return;
  }
  phase_.leased += message.commands.size();
  std::size_t turns = 0;
  for (const wire::Trajectory& trajectory : message.trajectories) {
    turns += trajectory.turns;
    phase_.last_turns.insert(message.commands[turns - 1].seq);
  }
  out_->emplace_back(
      EngineIssue{message.phase, std::move(message.commands), std::move(message.trajectories)});
}

void AgentMachine::take(const wire::Recall& message) {
  if (state_ != AgentState::kInPhase || message.phase != phase_.number || message.number == 0) {
    ++illegal_;
    return;
  }
  ++phase_.recalls_out;
  out_->emplace_back(EngineRecall{message.phase, message.number});
}

void AgentMachine::on(const EngineRecalled& event) {
  if (event.phase != phase_.number || phase_.recalls_out == 0) {
    ++illegal_;
    return;
  }
  --phase_.recalls_out;
  phase_.returned += event.unstarted.size();
  send(wire::Recalled{event.phase, event.number, event.unstarted});
}

void AgentMachine::take(const wire::Drain& message) {
  if (state_ != AgentState::kInPhase || message.phase != phase_.number) {
    ++illegal_;
    return;
  }
  phase_.drain_asked = true;
}

void AgentMachine::take(const wire::Abort& message) {
  if (state_ != AgentState::kInPhase || phase_.aborted) {
    ++illegal_;
    return;
  }
  abort_engine(message.reason);
}

void AgentMachine::abort_engine(const std::string& reason) {
  if (phase_.aborted) {
    return;
  }
  phase_.aborted = true;
  phase_.abort_out = true;
  out_->emplace_back(EngineAbort{reason});
}

// Number 0 says: nobody asked, they came back with the abort, or because we leave.
void AgentMachine::on(const EngineAborted& event) {
  if (event.phase != phase_.number || !phase_.abort_out) {
    ++illegal_;
    return;
  }
  phase_.abort_out = false;
  phase_.returned += event.unstarted.size();
  send(wire::Recalled{event.phase, 0, event.unstarted});
}

void AgentMachine::on(RecordsDone& event) {
  for (const wire::Record& record : event.records) {
    if (record.phase == phase_.number) {
      ++phase_.recorded;
      slot_free_ = slot_free_ || phase_.last_turns.erase(record.seq) > 0;
    } else {
      ++illegal_;  // still a fact: it is shipped all the same
    }
  }
  count_tokens(event.records);
  batcher_.add(std::move(event.records), now_);
}

void AgentMachine::on(const Gauges& event) {
  records_lost_ = std::max(records_lost_, event.progress.health.records_lost);
  phase_.lost = records_lost_ - phase_.lost_before;
  wire::Progress progress = event.progress;
  progress.phase = phase_.number;
  progress.health.unsent_batches = batcher_.waiting();
  if (counting_since_.is_set()) {
    progress.health.counting_drain = now_ - counting_since_;
  }
  send(std::move(progress));
}

// A closed loop with idle slots waits for the coordinator, and the coordinator for the records.
void AgentMachine::flush_records() {
  const bool starving = phase_.pacing == base::Pacing::kClosedLoop &&
                        (in_hand() < phase_.slots || std::exchange(slot_free_, false));
  const bool ending = in_hand() == 0 || state_ == AgentState::kLeaving;
  using Cut = RecordBatcher::Cut;
  const Cut what = ending && counting_ == 0 ? Cut::kAll
                   : starving || ending     ? Cut::kRecords
                                            : Cut::kDue;
  batcher_.flush(now_, what, *out_);
}

void AgentMachine::say_drained() {
  if (!phase_.drain_asked || holding() || counts_awaited()) {
    return;
  }
  flush_records();  // the last counts may have come, or been given up, in this step
  if (!batcher_.all_sent()) {
    return;
  }
  state_ = AgentState::kReady;
  read_gauges(true);  // before the last word, so that it arrives before it
  gauges_at_ = base::kFarFuture;
  interval_ends_at_ = base::kFarFuture;
  send(drained());
  out_->emplace_back(SpoolNote{drained()});
}

wire::Drained AgentMachine::drained() const {
  return {phase_.number, phase_.leased - phase_.returned, batcher_.last()};
}

void AgentMachine::take(const wire::BatchAck& message) {
  if (!batcher_.acknowledge(message.number, *out_)) {
    ++illegal_;
  }
}

void AgentMachine::on(const Tick& /*event*/) {
  if (now_ >= interval_ends_at_) {
    interval_ends_at_ = next_interval_end();
    read_gauges(true);
  } else if (now_ >= gauges_at_) {
    read_gauges(false);
  }
}

void AgentMachine::read_gauges(bool close_interval) {
  gauges_at_ = now_ + heartbeat_;
  out_->emplace_back(ReadGauges{close_interval});
}

// A session that was late misses the seconds it slept through: its interval is that much longer.
Instant AgentMachine::next_interval_end() const {
  if (now_ < phase_.start_at - kBeforeStart) {
    return phase_.start_at - kBeforeStart;
  }
  const std::int64_t whole = std::max<std::int64_t>((now_ - phase_.start_at).ns, 0) / kInterval.ns;
  return phase_.start_at + kInterval * (whole + 1);
}

// ---- leaving ---------------------------------------------------------------------------------

void AgentMachine::take(const wire::Goodbye& message) {
  const bool well = message.reason.empty() && state_ == AgentState::kReady;
  linked_ = false;
  stop_counting();
  batcher_.stop_sending();
  out_->emplace_back(SpoolRelease{});
  leave(well ? ExitCode::kOk : ExitCode::kExecution,
        well ? "the run is over" : fmt::format("the coordinator left: {}", message.reason));
}

// This process was stopped. What waits here may have been called missing, and
// nothing of it may be started, not even for as long as it takes to find out by listening. Should
// the coordinator still be there, it gets all of it back.
void AgentMachine::on(const StoodStill& event) {
  if (state_ == AgentState::kInPhase) {
    leave(ExitCode::kExecution,
          fmt::format("this agent stood still for {:.1f} s, and after {:.1f} s it is given up",
                      event.silence.to_seconds(), lost_after_.to_seconds()));
  }
}

// Its clock's distance to the coordinator's was measured before.
void AgentMachine::on(const Suspended& event) {
  if (state_ >= AgentState::kJoined && state_ <= AgentState::kInPhase) {
    leave(ExitCode::kExecution,
          fmt::format("this agent's host was suspended for {:.1f} s", event.lasted.to_seconds()));
  }
}

void AgentMachine::on(const LinkLost& event) {
  if (!linked_) {
    ++illegal_;
    return;
  }
  linked_ = false;
  batcher_.stop_sending();
  if (state_ == AgentState::kGreeting) {
    leave(ExitCode::kSetup, fmt::format("no coordinator took this agent: {}", event.why));
    return;
  }
  leave(ExitCode::kExecution, fmt::format("lost the coordinator: {}", event.why));
}

void AgentMachine::on(const StopAsked& event) {
  if (state_ == AgentState::kLeaving) {
    if (!holding() || phase_.aborted) {
      exit(ExitCode::kInterrupted, event.reason);
      return;
    }
    // It was leaving by itself, with queries in flight: they are cut, and recorded so.
    leave_code_ = ExitCode::kInterrupted;
    leave_reason_ = event.reason;
    abort_engine(event.reason);
    leave_by_ = now_ + config_.abort_max;
    return;
  }
  if (state_ == AgentState::kInPhase) {
    abort_engine(event.reason);
  }
  leave(ExitCode::kInterrupted, event.reason);
}

// Nothing new is started; what is in flight may end.
void AgentMachine::leave(ExitCode code, const std::string& reason) {
  if (state_ == AgentState::kLeaving) {
    return;
  }
  left_in_phase_ = state_ == AgentState::kInPhase;
  leave_code_ = code;
  leave_reason_ = reason;
  if (state_ == AgentState::kInPhase && !phase_.aborted) {
    ++phase_.recalls_out;
    out_->emplace_back(EngineRecall{phase_.number, 0});
  }
  gauges_at_ = base::kFarFuture;
  interval_ends_at_ = base::kFarFuture;
  leave_by_ = now_ + (phase_.aborted ? config_.abort_max : config_.orphan_drain_max);
  state_ = AgentState::kLeaving;
}

void AgentMachine::go_on_leaving() {
  if (holding()) {
    if (now_ < leave_by_) {
      return;
    }
    if (!phase_.aborted) {
      abort_engine(leave_reason_);
      leave_by_ = now_ + config_.abort_max;
      return;
    }
    // The engine does not give them back: they stay unrecorded, the coordinator names them.
  }
  if (counts_awaited()) {
    return;
  }
  flush_records();
  if (linked_ && !goodbye_said_ && !batcher_.all_sent()) {
    // The coordinator listens no more after a goodbye.
    if (!sending_rest_) {
      sending_rest_ = true;
      leave_by_ = now_ + config_.goodbye_max;
    }
    if (now_ < leave_by_) {
      return;
    }
  }
  if (linked_ && !goodbye_said_) {
    goodbye_said_ = true;
    leave_by_ = now_ + config_.goodbye_max;
    if (!holding() && left_in_phase_) {
      send(drained());  // leases that cross this on their way are never started
    }
    send(wire::Goodbye{leave_reason_});
  }
  if (linked_ && !batcher_.all_acknowledged() && now_ < leave_by_) {
    return;
  }
  exit(leave_code_, leave_reason_);
}

void AgentMachine::exit(ExitCode code, const std::string& reason) {
  if (state_ == AgentState::kLeaving) {
    stop_counting();
    flush_records();  // counts that waited for company
  }
  state_ = AgentState::kGone;
  if (engine_runs_ && code != ExitCode::kOk) {
    // With how much it had started, whether or not all of that ended; not while the engine may
    // still give back what was only queued.
    if (phase_.start_at.is_set() && phase_.recalls_out == 0 && !phase_.abort_out) {
      out_->emplace_back(SpoolNote{drained()});
    }
    out_->emplace_back(SpoolNote{wire::Goodbye{reason}});
  }
  out_->emplace_back(Exit{code, reason});
}

}  // namespace tutti::session
