#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/conduct/run_machine.h"

// The phases of a run: arming, running, stopping, losing an agent, ending.

namespace tutti::conduct {
namespace {

using base::Duration;
using base::ExitCode;
using base::Instant;

}  // namespace

// ---- arming ----------------------------------------------------------------------------------

void RunMachine::arm_next_phase() {
  if (stopping_ || next_phase_ == plan_.phases.size()) {
    start_merge();
    return;
  }
  std::string why;
  if (roster_.clock_error_max(now_ + plan_.timeouts.arm_lead) > plan_.clock_error_max) {
    why = clock_refusal();
  } else if (!has_slots(next_phase_)) {
    why = "none of the agents that are left has slots in it";
  }
  if (!why.empty()) {
    stopping_ = true;
    outcome_.complete = false;
    outcome_.exit = ExitCode::kExecution;
    outcome_.reasons.push_back(
        fmt::format("phase {} was not started: {}", plan_.phases[next_phase_].name, why));
    notice(NoticeLevel::kError, outcome_.reasons.back());
    start_merge();
    return;
  }
  begin_phase(next_phase_++);
}

bool RunMachine::has_slots(std::uint32_t phase) const {
  return std::any_of(peers_.begin(), peers_.end(), [this, phase](const auto& entry) {
    return roster_.alive(entry.first) && entry.second.share.slots[phase] > 0;
  });
}

// Accuracy phases go on where the performance phase left the gap generator. The plan reckons with
// all of its queries; after a cap it stands further back.
plan::PhaseSpec RunMachine::spec_of(std::uint32_t index) const {
  plan::PhaseSpec spec = plan_.phases[index].schedule;
  const auto missed = gaps_short_.find(spec.gap_seed);
  if (spec.kind != base::PhaseKind::kWarmup && missed != gaps_short_.end()) {
    spec.gaps_before -= std::min(spec.gaps_before, missed->second);
  }
  return spec;
}

void RunMachine::begin_phase(std::uint32_t index) {
  const plan::PhaseSpec spec = spec_of(index);
  const Duration lead =
      std::max(plan_.timeouts.arm_lead, roster_.rtt_max() * 4 + Duration::millis(20));
  PhaseStarted started{index, now_ + lead, {}};
  std::vector<Seat> seats;
  for (const roster::Agent* agent : roster_.by_name()) {
    if (agent->lost) {
      continue;  // in an earlier phase; what it would have held here stays empty
    }
    Peer& peer = peers_.at(agent->key);
    Seat seat;
    seat.agent = agent->key;
    seat.name = agent->name();
    seat.slots = peer.share.slots[index];
    seat.delay = replacement_delay(agent->clock);
    seat.batch_stored = peer.batch_stored;
    peer.armed = false;
    peer.lost_before_phase = agent->progress.health.records_lost;
    started.slots.emplace_back(seat.agent, seat.slots);
    seats.push_back(std::move(seat));
  }
  phase_ = std::make_unique<PhaseRun>(index, spec, std::move(seats), plan_.prefetch);
  phase_->start(started.start_at);
  phase_rules_ = std::make_unique<plan::StopRules>();
  if (plan_.phases[index].issue_cap.ns > 0) {
    phase_rules_->add(std::make_unique<plan::IssueCap>(plan_.phases[index].issue_cap));
  }
  if (plan_.phases[index].ends_with_first_user) {
    phase_rules_->add(std::make_unique<plan::FirstUserDone>());
  }
  if (plan_.phases[index].drain_timeout.ns > 0) {
    phase_rules_->add(std::make_unique<plan::DrainTimeout>(plan_.phases[index].drain_timeout));
  }
  issuing_end_ = {};
  issuing_end_told_ = false;
  all_armed_ = false;
  told_summed_at_ = {};
  in_flight_since_ = {};
  last_response_at_ = {};
  draining_since_ = {};
  state_ = RunState::kArmed;
  outcome_.any_phase = true;
  for (const Seat& seat : phase_->seats()) {
    const roster::ClockEstimate& clock = roster_.find(seat.agent)->clock;
    send(seat.agent,
         wire::ArmPhase{index, spec.kind, spec.pacing, seat.slots, clock.to_agent(started.start_at),
                        started.start_at, clock.offset_at(started.start_at).error});
  }
  out_->emplace_back(std::move(started));
}

void RunMachine::take(AgentKey agent, const wire::Armed& message) {
  Peer& peer = peers_.at(agent);
  if (!in_phase() || !peer.joined || peer.armed || message.phase != phase_->phase()) {
    ++illegal_;
    return;
  }
  peer.armed = true;
  if (now_ > phase_->start_at()) {
    notice(NoticeLevel::kWarning, fmt::format("agent {} was armed {:.1f} ms after the phase began",
                                              roster_.find(agent)->name(),
                                              (now_ - phase_->start_at()).to_seconds() * 1e3));
  }
}

// ---- running ---------------------------------------------------------------------------------

// After every event of a phase, and with time.
void RunMachine::run_phase() {
  if (state_ == RunState::kArmed && now_ >= phase_->start_at()) {
    state_ = RunState::kRunning;
  }
  if (ticking_) {
    check_answers();
  }
  judge_phase();
  phase_->advance(now_, *out_);
  if (!phase_->issuing() && state_ != RunState::kDraining) {
    state_ = RunState::kDraining;
  }
  if (!draining_since_.is_set() && (!phase_->issuing() || phase_->stopped())) {
    draining_since_ = now_;
  }
  if (!issuing_end_told_ && !phase_->issuing() && (!aborting_ || phase_->over())) {
    tell_issuing_end();
  }
  if (phase_->over()) {
    end_phase();
  }
}

void RunMachine::tell_issuing_end() {
  issuing_end_told_ = true;
  PhaseIssuingEnded ended{phase_->phase(), now_, phase_->issued(), plan::StopCause::kCount,
                          fmt::format("all {} queries are issued", phase_->issued())};
  if (!issuing_end_.proceeds()) {
    ended.cause = issuing_end_.cause;
    ended.reason = issuing_end_.reason;
  }
  out_->emplace_back(std::move(ended));
}

std::uint64_t RunMachine::in_flight() const {
  // Of trajectories, later turns are in an agent's hands long before they are sent.
  const bool ahead = phase_->spec().pacing == base::Pacing::kTimed && phase_->issuing();
  if (!ahead && !phase_->plays()) {
    return phase_->outstanding();
  }
  if (!told_summed_at_.is_set() || now_ - told_summed_at_ >= kSumEvery) {
    told_summed_at_ = now_;
    told_sum_ = in_flight_told();
  }
  return told_sum_;
}

// Commands leased ahead of time are not in flight: ask the agents.
std::uint64_t RunMachine::in_flight_told() const {
  std::uint64_t sum = 0;
  for (const Seat& seat : phase_->seats()) {
    const roster::Agent* agent = roster_.find(seat.agent);
    if (!seat.lost && agent->progress.phase == phase_->phase()) {
      sum += std::min<std::uint64_t>(agent->progress.in_flight, seat.outstanding);
    }
  }
  return sum;
}

plan::PhaseCounters RunMachine::counters() const {
  plan::PhaseCounters counters;
  if (phase_ == nullptr) {
    return counters;
  }
  const Instant start = phase_->start_at();
  counters.issued = phase_->prefix_end();
  counters.in_flight = in_flight();
  counters.stop_asked = stopping_ || phase_->stopped();
  counters.first_user_done = phase_->first_user_done();
  if (last_response_at_.is_set()) {
    counters.last_response = last_response_at_ - start;
  }
  if (in_flight_since_.is_set()) {
    counters.in_flight_since = in_flight_since_ - start;
  }
  if (draining_since_.is_set()) {
    counters.draining_since = draining_since_ - start;
  }
  return counters;
}

void RunMachine::judge_phase() {
  if (!unstored_.empty() && now_ >= stop_deadline_) {
    dismiss_agents();
    return;
  }
  if (aborting_) {
    if (ticking_ && now_ >= abort_deadline_) {
      for (const Seat& seat : phase_->seats()) {
        if (!seat.lost && (!seat.drained || seat.outstanding > 0)) {
          lose_agent(seat.agent, fmt::format("its queries did not end within {:.0f} s of the abort",
                                             plan_.timeouts.abort.to_seconds()));
        }
      }
    }
    return;
  }
  if (now_ >= stop_deadline_) {
    abort_phase(phase_->outstanding() > 0
                    ? "what was in flight did not end in time after the stop"
                    : "tokens were still being counted when the time after the stop was over");
    return;
  }
  if (now_ < phase_->start_at()) {
    return;
  }
  const std::uint64_t flying = in_flight();
  if (flying == 0) {
    in_flight_since_ = {};
  } else if (!in_flight_since_.is_set()) {
    in_flight_since_ = now_;
  }
  const plan::PhaseCounters facts = counters();
  const Duration since_start = now_ - phase_->start_at();
  const plan::Decision decision = phase_rules_->evaluate(facts, since_start);
  if (decision.course == plan::Course::kFail) {
    stop_run(ExitCode::kExecution, decision.reason, Duration{});
    return;
  }
  if (decision.course == plan::Course::kStop && phase_->issuing() && !phase_->stopped()) {
    issuing_end_ = decision;
    phase_->stop_issuing(now_, *out_);
  }
  if (plan_.timeouts.response_idle.ns > 0) {
    // A reply is known here one heartbeat late, or two when a Progress was lost on the way. It
    // watches over the drain of a stopped run too: that may have no other limit.
    plan::PhaseCounters watched = facts;
    watched.stop_asked = false;
    const Duration seen = since_start - plan_.heartbeat * 2;
    const auto idle = plan::ResponseIdle(plan_.timeouts.response_idle).evaluate(watched, seen);
    if (!idle.proceeds()) {
      stop_run(ExitCode::kExecution, idle.reason, Duration{});
    }
  }
}

void RunMachine::check_answers() {
  const Duration limit = plan_.lost_after + plan_.timeouts.answer;
  const Duration counting = agents_count_ ? plan_.counting.terms.drain_max : Duration{};
  if (const Seat* seat = phase_->overdue(now_, limit, counting)) {
    lose_agent(seat->agent,
               fmt::format("no answer to a recall or a drain for {:.0f} s", limit.to_seconds()));
    return;
  }
  if (all_armed_ || now_ <= phase_->start_at() + limit) {
    return;
  }
  all_armed_ = true;
  for (const Seat& seat : phase_->seats()) {
    if (!seat.lost && !peers_.at(seat.agent).armed) {
      all_armed_ = false;
      lose_agent(seat.agent,
                 fmt::format("not armed {:.0f} s after the phase began", limit.to_seconds()));
      return;
    }
  }
}

void RunMachine::take(AgentKey agent, const wire::Recalled& message) {
  if (!in_phase() || message.phase != phase_->phase()) {
    ++illegal_;
    return;
  }
  phase_->recalled(agent, message);
}

void RunMachine::take(AgentKey agent, const wire::Drained& message) {
  if (!in_phase() || message.phase != phase_->phase()) {
    ++illegal_;
    return;
  }
  phase_->drained(agent, message);
}

void RunMachine::take(AgentKey agent, const wire::Progress& message) {
  roster::Agent* known = roster_.find(agent);
  if (known == nullptr) {
    ++illegal_;
    return;
  }
  const bool first_loss =
      known->progress.health.records_lost == 0 && message.health.records_lost > 0;
  known->progress = message;
  known->progress_at = now_;
  if (first_loss) {
    outcome_.valid = false;
    outcome_.reasons.push_back(
        fmt::format("agent {} lost records: its rings were full", known->name()));
    notice(NoticeLevel::kError, outcome_.reasons.back());
  }
  if (!in_phase() || message.phase != phase_->phase()) {
    return;
  }
  const std::uint64_t before = peers_.at(agent).lost_before_phase;
  phase_->records_lost(agent,
                       message.health.records_lost - std::min(before, message.health.records_lost));
  phase_->started(agent, message.started);
  if (message.last_response_at.is_set() && known->clock.exchanges() > 0) {
    const Instant at = known->clock.to_coordinator(message.last_response_at);
    if (at > phase_->start_at()) {
      last_response_at_ = std::max(last_response_at_, std::min(at, now_));
    }
  }
}

void RunMachine::take(AgentKey agent, const wire::Goodbye& message) {
  if (!peers_.at(agent).joined) {
    peers_.erase(agent);
    return;
  }
  lose_agent(agent, fmt::format("it left: {}", message.reason));
}

// ---- losing and stopping ---------------------------------------------------------------------

void RunMachine::lose_agent(AgentKey agent, const std::string& why) {
  const roster::Agent* known = roster_.find(agent);
  const std::string name = known == nullptr ? "" : known->name();
  if (state_ == RunState::kGathering) {
    roster_.forget(agent);
    peers_.erase(agent);
    out_->emplace_back(Close{agent});
    notice(NoticeLevel::kWarning, fmt::format("agent {} is gone before the run: {}", name, why));
    return;
  }
  if (!roster_.lose(agent, why, now_)) {
    ++illegal_;
    return;
  }
  out_->emplace_back(Close{agent});
  if (state_ == RunState::kPreparing) {
    abort_setup(ExitCode::kSetup, fmt::format("agent {} was lost before the run: {}", name, why));
    return;
  }
  if (!in_phase()) {
    notice(NoticeLevel::kWarning,
           fmt::format("agent {} was lost after its records: {}", name, why));
    return;
  }
  std::string reason = fmt::format("agent {} was lost {:.3f} s after phase {} began: {}", name,
                                   (now_ - phase_->start_at()).to_seconds(),
                                   plan_.phases[phase_->phase()].name, why);
  phase_->lose(agent, why);
  outcome_.valid = false;
  const bool go_on = plan_.on_agent_loss == AgentLoss::kContinue && phase_->served();
  if (go_on && !stopping_) {
    outcome_.went_on = true;
    reason += going_on();
  }
  if (stopping_ || go_on) {
    outcome_.reasons.push_back(reason);
    notice(NoticeLevel::kError, reason);
  } else {
    stop_run(ExitCode::kExecution, reason, base::kFarFuture - now_);
  }
}

// What is left of the load when the others go on: nobody takes over the lost agent's slots.
std::string RunMachine::going_on() const {
  std::uint64_t agents = 0;
  std::uint64_t left = 0;
  std::uint64_t all = 0;
  for (const auto& [key, peer] : peers_) {
    if (!peer.joined) {
      continue;
    }
    const std::uint32_t slots = peer.share.slots[phase_->phase()];
    all += slots;
    agents += roster_.alive(key) ? 1U : 0U;
    left += roster_.alive(key) ? slots : 0U;
  }
  return fmt::format("; the run goes on with {} of {} agents and {} of {} slots", agents,
                     plan_.agents_expected, left, all);
}

// The first call ends issuing, and with `grace` over, or at the second call, everything in flight.
void RunMachine::stop_run(ExitCode exit, const std::string& reason, Duration grace) {
  if (state_ < RunState::kArmed) {
    abort_setup(exit, reason);
    return;
  }
  notice(NoticeLevel::kError, reason);
  if (state_ == RunState::kMerging) {
    return;  // nothing is in flight any more
  }
  outcome_.reasons.push_back(reason);
  if (stopping_) {
    abort_phase(reason);
    return;
  }
  stopping_ = true;
  outcome_.complete = false;
  outcome_.exit = exit;
  if (phase_->issuing() && !phase_->stopped()) {
    issuing_end_ = {plan::Course::kStop, plan::StopCause::kAsked, reason};
    phase_->stop_issuing(now_, *out_);
  }
  stop_deadline_ = now_ + grace;
  if (grace.ns == 0) {
    abort_phase(reason);
  }
}

void RunMachine::abort_phase(const std::string& reason) {
  if (aborting_) {
    return;
  }
  aborting_ = true;
  abort_deadline_ = now_ + plan_.timeouts.abort;
  notice(NoticeLevel::kWarning, fmt::format("cancelling what is in flight: {}", reason));
  for (const Seat& seat : phase_->seats()) {
    if (!seat.lost) {
      send(seat.agent, wire::Abort{reason});
    }
  }
  phase_->abort(now_, *out_);
}

// Nobody failed but this host: they keep what is left, and are told why.
void RunMachine::dismiss_agents() {
  for (const Seat& seat : phase_->seats()) {
    phase_->dismiss(seat.agent, unstored_);
  }
}

// ---- ending ----------------------------------------------------------------------------------

void RunMachine::end_phase() {
  PhaseEnded ended{phase_->phase(), now_, phase_->totals()};
  const bool lost = std::any_of(ended.totals.missing.begin(), ended.totals.missing.end(),
                                [](const Missing& missing) { return !missing.agent.empty(); });
  if (lost) {
    outcome_.valid = false;
    outcome_.reasons.push_back(fmt::format("phase {}: {} queries have no record",
                                           plan_.phases[ended.phase].name,
                                           ended.totals.missing.size()));
  }
  const bool holes = std::any_of(ended.totals.missing.begin(), ended.totals.missing.end(),
                                 [](const Missing& missing) { return missing.agent.empty(); }) ||
                     (!phase_->stopped() &&
                      (phase_->prefix_end() < phase_->spec().total || phase_->withheld() > 0));
  if (holes && !stopping_) {  // given back when nobody took commands any more
    outcome_.complete = false;
    outcome_.exit = ExitCode::kExecution;
    outcome_.reasons.push_back(
        fmt::format("phase {}: not all queries were issued", plan_.phases[ended.phase].name));
  }
  const plan::PhaseSpec& spec = phase_->spec();
  if (spec.kind != base::PhaseKind::kWarmup) {
    gaps_short_[spec.gap_seed] +=
        plan::gaps_drawn(spec, spec.total) - plan::gaps_drawn(spec, phase_->prefix_end());
  }
  out_->emplace_back(std::move(ended));
  arm_next_phase();
}

void RunMachine::start_merge() {
  state_ = RunState::kMerging;
  deadline_ = now_ + kMergeWaitMax;
  for (auto& [key, peer] : peers_) {
    if (const roster::Agent* agent = roster_.find(key)) {
      peer.pongs_before_merge = agent->clock.exchanges();
    }
  }
  roster_.burst(now_);
  ping();
  merge();
}

// The last look at the clocks, then goodbye.
void RunMachine::merge() {
  // Exchanges only grow: who was measured once need not be asked again at the next pong.
  const auto measured = [this](const auto& entry) {
    return !roster_.alive(entry.first) ||
           roster_.find(entry.first)->clock.exchanges() >=
               entry.second.pongs_before_merge + roster::Roster::kBurst;
  };
  const auto waiting = std::find_if_not(peers_.lower_bound(merged_below_), peers_.end(), measured);
  if (waiting != peers_.end() && now_ < deadline_) {
    merged_below_ = waiting->first;
    return;
  }
  for (const auto& [key, peer] : peers_) {
    if (!peer.joined || roster_.alive(key)) {
      send(key, wire::Goodbye{unstored_});
      out_->emplace_back(Close{key});
    }
  }
  finish(aborting_ ? RunState::kAborted : RunState::kDone);
}

void RunMachine::finish(RunState state) {
  if (!outcome_.valid && outcome_.exit == ExitCode::kOk) {
    outcome_.exit = ExitCode::kExecution;
  }
  state_ = state;
  out_->emplace_back(Finish{outcome_});
}

}  // namespace tutti::conduct
