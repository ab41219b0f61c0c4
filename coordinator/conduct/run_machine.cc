#include "coordinator/conduct/run_machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "coordinator/conduct/counting_place.h"

// Stepping, joining and getting ready; the phases are in run_machine_phases.cc.

namespace tutti::conduct {
namespace {

using base::Duration;
using base::ExitCode;
using base::Instant;

}  // namespace

const char* name_of(RunState state) {
  constexpr const char* kNames[] = {"gathering", "preparing", "armed", "running",
                                    "draining",  "merging",   "done",  "aborted"};
  return kNames[static_cast<std::size_t>(state)];
}

RunMachine::RunMachine(RunPlan plan) : plan_(std::move(plan)) { TUTTI_CHECK(check(plan_).empty()); }

void RunMachine::step(const Event& event, Instant now, std::vector<Command>& out) {
  if (finished()) {
    return;  // the last pongs and goodbyes
  }
  now_ = now;
  out_ = &out;
  const Tick* const tick = std::get_if<Tick>(&event);
  ticking_ = tick != nullptr && tick->all_heard;
  if (!began_at_.is_set()) {
    began_at_ = now;
    deadline_ = now + plan_.timeouts.gather;
  }
  const std::size_t said = out.size();
  std::visit([this](const auto& e) { on(e); }, event);
  if (in_phase()) {
    run_phase();
  }
  if (!finished()) {
    pay_acks(said);
  }
  out_ = nullptr;
}

Instant RunMachine::next_tick() const {
  if (in_phase() && phase_->has_more_to_lease()) {
    return now_;
  }
  return std::min(roster_.next_ping_at(), now_ + (in_phase() ? kTickInPhase : kTickOutside));
}

// ---- events ----------------------------------------------------------------------------------

void RunMachine::on(const PeerJoined& event) {
  if (!peers_.emplace(event.agent, Peer{event.label}).second) {
    ++illegal_;
    return;
  }
  if (event.dialled) {
    send(event.agent, wire::Dial{wire::kProtocolVersion, plan_.run});
  }
}

void RunMachine::on(const MessageFrom& event) {
  if (peers_.count(event.agent) == 0) {
    ++illegal_;
    return;
  }
  const AgentKey agent = event.agent;
  std::visit([this, agent](const auto& message) { take(agent, message); }, event.message);
}

void RunMachine::on(const PeerLost& event) {
  const auto peer = peers_.find(event.agent);
  if (peer == peers_.end()) {
    ++illegal_;
    return;
  }
  if (!peer->second.joined) {
    notice(NoticeLevel::kWarning,
           fmt::format("{} never joined: {}",
                       peer->second.label.empty() ? "an agent" : peer->second.label, event.why));
    peers_.erase(peer);
    return;
  }
  lose_agent(event.agent, event.why);
}

void RunMachine::on(const RecordsStored& event) {
  if (roster_.find(event.agent) == nullptr) {
    ++illegal_;
    return;
  }
  owe_ack(event.agent, event.batch);
  Peer& peer = peers_.at(event.agent);
  peer.batch_stored = std::max(peer.batch_stored, event.batch);
  if (phase_ == nullptr) {
    ++illegal_;
    return;
  }
  phase_->batch_stored(event.agent, event.batch);
  for (const StoredRecord& record : event.records) {
    if (record.phase == phase_->phase()) {
      phase_->record_stored(event.agent, record, now_);
      last_response_at_ = std::max(last_response_at_, now_);
    } else {
      ++illegal_;
    }
  }
}

void RunMachine::owe_ack(AgentKey agent, std::uint64_t batch) {
  Peer& peer = peers_.at(agent);
  if (peer.ack_owed == 0) {
    peer.ack_due = now_ + kAckHeldMax;
    acks_due_.emplace_back(peer.ack_due, agent);
  }
  peer.ack_owed = std::max(peer.ack_owed, batch);
  if (++peer.acks_owed >= kAcksHeldMax || state_ != RunState::kRunning) {
    pay_ack(agent);
  }
}

void RunMachine::pay_ack(AgentKey agent) {
  Peer& peer = peers_.at(agent);
  if (peer.ack_owed > 0 && roster_.alive(agent)) {
    send(agent, wire::BatchAck{peer.ack_owed});
  }
  peer.ack_owed = peer.acks_owed = 0;
}

// Those that are due, and of agents to which the commands beginning at `from` send a lease.
void RunMachine::pay_acks(std::size_t from) {
  if (acks_due_.empty()) {
    return;
  }
  for (const std::size_t end = out_->size(); from < end; ++from) {
    const auto* const sent = std::get_if<Send>(&(*out_)[from]);
    if (sent != nullptr && std::holds_alternative<wire::Lease>(sent->message)) {
      pay_ack(sent->agent);
    }
  }
  while (!acks_due_.empty() && (acks_due_.front().first <= now_ || state_ != RunState::kRunning)) {
    const auto [due, agent] = acks_due_.front();
    acks_due_.pop_front();
    const auto peer = peers_.find(agent);
    if (peer != peers_.end() && peer->second.ack_due == due) {
      pay_ack(agent);
    }
  }
}

void RunMachine::on(const RecordsRefused& event) {
  if (!in_phase() || !roster_.alive(event.agent)) {
    ++illegal_;
    return;
  }
  peers_.at(event.agent).batch_stored = event.batch;
  phase_->batch_stored(event.agent, event.batch);
  for (const StoredRecord& record : event.records) {
    if (record.phase == phase_->phase()) {
      phase_->record_refused(event.agent, record, event.why);
      last_response_at_ = std::max(last_response_at_, now_);
    } else {
      ++illegal_;
    }
  }
  if (!unstored_.empty()) {
    return;
  }
  unstored_ = event.why;
  if (stopping_) {
    notice(NoticeLevel::kError, event.why);
    outcome_.reasons.push_back(event.why);
  } else {
    stop_run(ExitCode::kExecution, event.why, kUnstoredDrainMax);
  }
  stop_deadline_ = std::min(stop_deadline_, now_ + kUnstoredDrainMax);
}

void RunMachine::on(const StopAsked& event) {
  const bool interrupt = event.kind == StopKind::kInterrupt;
  stop_run(interrupt ? ExitCode::kInterrupted : ExitCode::kExecution, event.reason,
           plan_.timeouts.grace);
}

void RunMachine::on(const Tick& /*event*/) {
  ping();
  // The merge has a limit of its own, and nothing left that could be stopped.
  if (plan_.timeouts.run.ns > 0 && !stopping_ && state_ < RunState::kMerging) {
    const auto decision =
        plan::RunTimeout(plan_.timeouts.run).evaluate(counters(), now_ - began_at_);
    if (!decision.proceeds()) {
      stop_run(ExitCode::kExecution, decision.reason, Duration{});
      return;
    }
  }
  switch (state_) {
    case RunState::kGathering:
      gather();
      break;
    case RunState::kPreparing:
      prepare();
      break;
    case RunState::kMerging:
      merge();
      break;
    default:
      break;  // a running phase is advanced by every step
  }
}

void RunMachine::ping() {
  std::vector<std::pair<AgentKey, wire::ClockPing>> pings;
  roster_.due_pings(now_, pings);
  for (const auto& [agent, message] : pings) {
    send(agent, message);
  }
}

// ---- joining ---------------------------------------------------------------------------------

void RunMachine::take(AgentKey agent, const wire::Hello& message) {
  Peer& peer = peers_.at(agent);
  if (peer.joined) {
    ++illegal_;
    return;
  }
  std::string refusal;
  if (state_ != RunState::kGathering) {
    refusal = fmt::format("the run has begun with its {} agents; join before it starts",
                          plan_.agents_expected);
  } else if (auto number = roster_.join(agent, message, now_); number) {
    peer.joined = true;
    send(agent, wire::Welcome{plan_.run, *number, plan_.heartbeat, plan_.lost_after});
    notice(NoticeLevel::kInfo,
           fmt::format("agent {} joined from host {} ({} of {})", message.agent_name, message.host,
                       roster_.alive_count(), plan_.agents_expected));
  } else {
    refusal = number.error().message;
  }
  if (!refusal.empty()) {
    notice(NoticeLevel::kWarning,
           fmt::format("agent {} was refused: {}", message.agent_name, refusal));
    send(agent, wire::Refused{refusal});
    out_->emplace_back(Close{agent});
    peers_.erase(agent);
    return;
  }
  ping();
  gather();
}

void RunMachine::gather() {
  if (roster_.alive_count() == plan_.agents_expected) {
    prepare_agents();
    return;
  }
  if (now_ < deadline_) {
    return;
  }
  std::vector<std::string> here;
  std::vector<std::string> silent;
  for (const roster::Agent* agent : roster_.by_name()) {
    here.push_back(agent->name());
  }
  for (const auto& [key, peer] : peers_) {
    if (!peer.joined) {
      silent.push_back(peer.label.empty() ? fmt::format("peer {}", key) : peer.label);
    }
  }
  std::string text = fmt::format("{} of {} agents joined within {:.0f} s", here.size(),
                                 plan_.agents_expected, plan_.timeouts.gather.to_seconds());
  if (!here.empty()) {
    text += fmt::format("; here: {}", fmt::join(here, ", "));
  }
  if (!silent.empty()) {
    text += fmt::format("; called, but silent: {}", fmt::join(silent, ", "));
  }
  abort_setup(ExitCode::kSetup,
              text + "; start the missing ones (tutti-agent) or expect fewer (distributed.agents)");
}

// ---- getting ready ---------------------------------------------------------------------------

void RunMachine::prepare_agents() {
  const auto agents = roster_.by_name();
  Capacity capacity = share_capacity(plan_, agents);
  if (!capacity.problems.empty()) {
    abort_setup(ExitCode::kSetup, fmt::format("the agents cannot hold this load: {}",
                                              fmt::join(capacity.problems, "; ")));
    return;
  }
  const CountingPlace counting = choose_counting(plan_.counting, agents);
  if (!counting.problem.empty()) {
    abort_setup(ExitCode::kSetup, counting.problem);
    return;
  }
  if (!counting.notice.empty()) {
    notice(NoticeLevel::kInfo, counting.notice);
  }
  agents_count_ = counting.agents;
  for (const std::string& line : spoken_budget(capacity)) {
    notice(NoticeLevel::kInfo, line);
  }
  for (const std::string& line : capacity.warnings) {
    notice(NoticeLevel::kWarning, line);
  }
  budget_ = std::move(capacity.budget);
  budget_.insert(budget_.end(), capacity.warnings.begin(), capacity.warnings.end());
  state_ = RunState::kPreparing;
  deadline_ = now_ + plan_.timeouts.prepare;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    Peer& peer = peers_.at(agents[i]->key);
    peer.share = std::move(capacity.shares[i]);
    wire::Prepare message;
    message.target = plan_.target;
    message.target.connections_max = peer.share.connections_max;
    message.target.connections_warm = peer.share.connections_warm;
    message.target.source_addresses = peer.share.source_addresses;
    message.bodies_hash = plan_.bodies.hash;
    message.bodies_bytes = plan_.bodies.bytes;
    message.bodies_rows = plan_.bodies.rows;
    message.slots = peer.share.slots_max;
    message.run_note = plan_.note;
    message.counting = agents_count_ ? plan_.counting.terms : wire::ReplyCounting{};
    send(agents[i]->key, std::move(message));
  }
}

void RunMachine::take(AgentKey agent, const wire::BodiesWanted& message) {
  if (state_ != RunState::kPreparing || !peers_.at(agent).joined || peers_.at(agent).ready) {
    ++illegal_;
    return;
  }
  if (message.model_wanted && !agents_count_) {
    ++illegal_;
    return;
  }
  if (message.wanted || message.model_wanted) {
    out_->emplace_back(ShipBodies{agent, message.wanted, message.model_wanted});
  }
}

void RunMachine::take(AgentKey agent, const wire::Prepared& message) {
  Peer& peer = peers_.at(agent);
  if (state_ != RunState::kPreparing || !peer.joined || peer.ready) {
    ++illegal_;
    return;
  }
  const std::string name = roster_.find(agent)->name();
  std::vector<std::string> problems;
  if (!message.error.empty()) {
    problems.push_back(message.error);
  }
  for (std::size_t i = 0; i < message.frontends.size(); ++i) {
    const wire::Reach& reach = message.frontends[i];
    if (!reach.reachable) {
      const bool known = i < plan_.target.urls.size();
      problems.push_back(fmt::format("cannot reach {}: {}",
                                     known ? plan_.target.urls[i] : fmt::format("frontend {}", i),
                                     reach.error));
    }
  }
  if (!problems.empty()) {
    abort_setup(ExitCode::kSetup,
                fmt::format("agent {} is not ready: {}", name, fmt::join(problems, "; ")));
    return;
  }
  peer.ready = true;
  prepare();
}

std::string RunMachine::unready_names() const {
  std::vector<std::string> names;
  for (const roster::Agent* agent : roster_.by_name()) {
    if (!peers_.at(agent->key).ready) {
      names.push_back(agent->name());
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void RunMachine::prepare() {
  const bool all = std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    return entry.second.ready || !entry.second.joined;
  });
  if (all) {
    all_prepared();
  } else if (now_ >= deadline_) {
    abort_setup(ExitCode::kSetup,
                fmt::format("not ready within {:.0f} s: {}", plan_.timeouts.prepare.to_seconds(),
                            unready_names()));
  }
}

// Everyone is ready. One more burst now that the start-up noise is over, then the clocks must be
// known well enough to agree on an instant.
void RunMachine::all_prepared() {
  if (!clocks_awaited_) {
    clocks_awaited_ = true;
    deadline_ = now_ + plan_.timeouts.clock;
    roster_.burst(now_);
    ping();
    return;
  }
  if (roster_.clocks_measured(roster::Roster::kBurst + 1) &&
      roster_.clock_error_max(now_ + plan_.timeouts.arm_lead) <= plan_.clock_error_max) {
    arm_next_phase();
    return;
  }
  if (now_ < deadline_) {
    return;
  }
  abort_setup(ExitCode::kSetup, clock_refusal());
}

std::string RunMachine::clock_refusal() const {
  const Instant at = now_ + plan_.timeouts.arm_lead;
  const auto beyond = roster_.clocks_beyond(plan_.clock_error_max, at);
  if (beyond.empty()) {
    return fmt::format("not every agent answered {} pings in {:.0f} s: look for a lossy network",
                       roster::Roster::kBurst + 1, plan_.timeouts.clock.to_seconds());
  }
  return fmt::format(
      "clocks are not known to ±{:.3f} ms ({}): the bound is half a round trip at least; look for "
      "a "
      "slow, busy or lossy way to these agents, or allow more (distributed.max_clock_error_ms), "
      "which widens window edges and the order across agents only",
      plan_.clock_error_max.to_seconds() * 1e3, fmt::join(beyond, "; "));
}

void RunMachine::take(AgentKey agent, const wire::ClockPong& message) {
  if (!roster_.pong(agent, message, now_)) {
    ++illegal_;
    return;
  }
  if (phase_ != nullptr) {
    phase_->set_delay(agent, replacement_delay(roster_.find(agent)->clock));
  }
  if (state_ == RunState::kPreparing && clocks_awaited_) {
    prepare();
  } else if (state_ == RunState::kMerging) {
    merge();
  }
}

// Before the first phase nothing was issued and nothing is lost: tell everybody and end.
void RunMachine::abort_setup(ExitCode exit, const std::string& reason) {
  outcome_.exit = exit;
  outcome_.complete = false;
  outcome_.reasons.push_back(reason);
  notice(NoticeLevel::kError, reason);
  for (const auto& [key, peer] : peers_) {
    if (!peer.joined || roster_.alive(key)) {
      send(key, wire::Goodbye{fmt::format("the run was called off: {}", reason)});
      out_->emplace_back(Close{key});
    }
  }
  finish(RunState::kAborted);
}

}  // namespace tutti::conduct
