#include "tests/sim/coordinator_node.h"

#include <algorithm>
#include <utility>

#include "common/plan/deal.h"

namespace tutti::sim {
namespace {

constexpr std::size_t kUnreadMax = 4096;  // SocketOptions::queue_max

}  // namespace

std::vector<conduct::StoredRecord> SimLedger::accept(std::size_t agent,
                                                     const wire::RecordBatch& batch) {
  std::vector<conduct::StoredRecord> fresh;
  if (!batches_.emplace(agent, batch.number).second) {
    return fresh;
  }
  if (batch.number > 1 && batches_.count({agent, batch.number - 1}) == 0) {
    witness_.complain("batch {} of node {} came before the one before it", batch.number, agent);
  }
  for (const wire::Record& record : batch.records) {
    if (!records_[record.phase].emplace(record.seq, record.outcome).second) {
      witness_.complain("seq {} of phase {} has two records", record.seq, record.phase);
      continue;
    }
    fresh.push_back({record.phase, record.seq, record.outcome});
    if (planted_ == Planted::kLedgerForgets && record.seq == 7) {
      records_[record.phase].erase(record.seq);
    }
  }
  for (const wire::TokenCount& count : batch.tokens) {
    if (!counts_.emplace(count.phase, count.seq).second) {
      witness_.complain("seq {} of phase {} has two counts", count.seq, count.phase);
    }
  }
  return fresh;
}

CoordinatorNode::CoordinatorNode(World& world, SimNetwork& network, Witness& witness,
                                 conduct::RunPlan plan, SimClock clock)
    : world_(world),
      network_(network),
      witness_(witness),
      clock_(clock),
      machine_(std::move(plan)),
      ledger_(witness),
      alarm_(world, clock_, [this] { turn(); }) {
  link_config_.heartbeat = machine_.plan().heartbeat;
  link_config_.lost_after = machine_.plan().lost_after;
  link_config_.retransmit_after = Duration::millis(100);
  network_.add([this](std::size_t from, const std::string& bytes) { receive(from, bytes); });
}

void CoordinatorNode::begin() {
  step(conduct::Tick{});
  turn();
}

void CoordinatorNode::freeze(Duration lasts) {
  world_.note("freeze", 0);
  frozen_until_ = std::max(frozen_until_, world_.now() + lasts);
  world_.at(frozen_until_, [this] { thaw(); });
}

void CoordinatorNode::thaw() {
  if (frozen() || crashed_) {
    return;
  }
  for (const auto& [from, bytes] : std::exchange(unread_, {})) {
    hear(from, bytes);
  }
  unread_of_.clear();
  turn();
}

void CoordinatorNode::dial(std::size_t node) {
  if (frozen()) {
    world_.at(frozen_until_, [this, node] { dial(node); });
    return;
  }
  peer_of(node, true);
  turn();
}

void CoordinatorNode::ask_stop(conduct::StopKind kind) {
  if (frozen()) {
    world_.at(frozen_until_, [this, kind] { ask_stop(kind); });
    return;
  }
  if (!crashed_ && !finished()) {
    world_.note("stop asked", 0, static_cast<std::uint64_t>(kind));
    step(conduct::StopAsked{kind, "a stop was asked for"});
    turn();
  }
}

CoordinatorNode::Peer& CoordinatorNode::peer_of(std::size_t node, bool dialled) {
  if (node >= peers_.size()) {
    peers_.resize(node + 1);
  }
  if (peers_[node].line == nullptr) {
    peers_[node].line = std::make_unique<Line>(network_, witness_, 0, node, link_config_,
                                               base::Id{node + 1, 0xC002D}, local());
    step(conduct::PeerJoined{node, dialled, fmt::format("sim://{}", node)});
  }
  return peers_[node];
}

void CoordinatorNode::receive(std::size_t from, const std::string& bytes) {
  if (crashed_) {
    return;
  }
  if (frozen()) {
    if (++unread_of_[from] <= kUnreadMax) {
      unread_.emplace_back(from, bytes);
    }
    return;
  }
  hear(from, bytes);
  turn();
}

void CoordinatorNode::hear(std::size_t from, const std::string& bytes) {
  Peer& peer = peer_of(from, false);
  if (peer.lost) {
    return;  // given up for good: its frames go nowhere
  }
  for (wire::Message& message : peer.line->receive(bytes, local())) {
    world_.note(wire::name_of(message), 0, from);
    if (const auto* batch = std::get_if<wire::RecordBatch>(&message)) {
      const roster::Agent* known = machine_.roster().find(from);
      if (known != nullptr && known->lost) {
        continue;  // as RunHost::take_batch()
      }
      if (disk_full_) {
        refuse(from, *batch);
        continue;
      }
      step(conduct::RecordsStored{from, batch->number, ledger_.accept(from, *batch)});
    } else {
      step(conduct::MessageFrom{from, std::move(message)});
    }
  }
}

// As RunHost::refuse_batch().
void CoordinatorNode::refuse(std::size_t from, const wire::RecordBatch& batch) {
  const conduct::RunState state = machine_.state();
  const bool matters = state >= conduct::RunState::kArmed &&
                       state <= conduct::RunState::kDraining && machine_.roster().alive(from);
  refused_ = refused_ || matters;
  refused_records_ = refused_records_ || (matters && !batch.records.empty());
  conduct::RecordsRefused refused{from, batch.number, {}, kDiskFull};
  for (const wire::Record& record : batch.records) {
    refused.records.push_back({record.phase, record.seq, record.outcome});
  }
  step(refused);
}

// Nobody's part grows or shrinks by another's loss: it is what the whole crowd's split gives it.
void CoordinatorNode::check_slots(const conduct::PhaseStarted& started) {
  const PhaseTruth& truth = witness_.phases().at(started.phase);
  if (!truth.closed_loop) {
    return;
  }
  const auto crowd = machine_.roster().by_name();
  const auto shares = plan::split_slots(truth.concurrency, crowd.size());
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    const auto seat = std::find_if(started.slots.begin(), started.slots.end(),
                                   [&](const auto& entry) { return entry.first == crowd[i]->key; });
    const bool here = seat != started.slots.end();
    if (here == crowd[i]->lost || (here && seat->second != shares[i])) {
      witness_.complain("phase {}: agent {} ({}) has {} slots, its share is {}", started.phase,
                        crowd[i]->name(), crowd[i]->lost ? "lost" : "alive",
                        here ? seat->second : 0, shares[i]);
    }
  }
}

void CoordinatorNode::step(const conduct::Event& event) {
  std::vector<conduct::Command> commands = std::exchange(spare_commands_, {});
  machine_.step(event, local(), commands);
  for (const conduct::Command& command : commands) {
    perform(command);
  }
  commands.clear();
  spare_commands_ = std::move(commands);
  const conduct::PhaseRun* phase = machine_.phase();
  if (phase != nullptr && phase->mode() == conduct::PhaseRun::Mode::kFilling) {
    settled_.try_emplace(phase->phase(), world_.now());
  }
}

void CoordinatorNode::perform(const conduct::Command& command) {
  if (const auto* send = std::get_if<conduct::Send>(&command)) {
    const Peer* peer = send->agent < peers_.size() ? &peers_[send->agent] : nullptr;
    if (peer != nullptr && peer->line != nullptr && !peer->lost && !peer->closing) {
      peer->line->send(send->message, local());
    }
  } else if (const auto* ship = std::get_if<conduct::ShipBodies>(&command)) {
    ship_bodies(*ship);
  } else if (const auto* close = std::get_if<conduct::Close>(&command)) {
    Peer& peer = peers_.at(close->agent);
    peer.closing = true;
    peer.close_by = world_.now() + kLinger;
  } else if (const auto* started = std::get_if<conduct::PhaseStarted>(&command)) {
    world_.note("phase started", 0, started->phase);
    conduct::PhaseStarted told = *started;
    if (planted_ == Planted::kSlotsMove && !told.slots.empty()) {
      ++told.slots.front().second;
    }
    check_slots(told);
  } else if (const auto* issued = std::get_if<conduct::PhaseIssuingEnded>(&command)) {
    world_.note("issuing ended", 0, issued->phase, issued->issued);
    issuing_ends_[issued->phase] = *issued;
  } else if (const auto* ended = std::get_if<conduct::PhaseEnded>(&command)) {
    world_.note("phase ended", 0, ended->phase, ended->totals.prefix);
    if (!totals_.emplace(ended->phase, ended->totals).second) {
      witness_.complain("phase {} ended twice", ended->phase);
    }
  } else if (const auto* notice = std::get_if<conduct::Notice>(&command)) {
    if (planted_ != Planted::kLossUntold) {
      notices_.push_back(notice->text);
    }
  } else if (const auto* finish = std::get_if<conduct::Finish>(&command)) {
    if (finished()) {
      witness_.complain("the run finished twice");
    }
    world_.note("finish", 0, static_cast<std::uint64_t>(finish->outcome.exit));
    finish_ = finish->outcome;
    if (planted_ == Planted::kAllIsWell) {
      finish_->complete = finish_->valid = true;
      finish_->exit = base::ExitCode::kOk;
    } else if (planted_ == Planted::kRefusalUntold) {
      finish_->reasons.clear();
    }
    finished_at_ = world_.now();
  }
}

void CoordinatorNode::ship_bodies(const conduct::ShipBodies& ship) {
  Line& line = *peers_.at(ship.agent).line;
  for (std::uint64_t i = 0; ship.bodies && i < 3; ++i) {
    line.send(wire::BodyChunk{i * 4, "body", i == 2}, local());
  }
  for (std::uint64_t i = 0; ship.model && i < 2; ++i) {
    line.send(wire::BodyChunk{i * 5, "model", i == 1, true}, local());
  }
}

void CoordinatorNode::look_for_lost(Instant now) {
  for (std::size_t node = 0; node < peers_.size(); ++node) {
    Peer& peer = peers_[node];
    if (peer.line == nullptr || peer.lost || !peer.line->lost(now) ||
        planted_ == Planted::kLossUnseen) {
      continue;
    }
    peer.lost = true;
    if (!peer.closing) {
      given_up_.emplace(node, world_.now());
      witness_.give_up(node);
    }
    world_.note("peer lost", 0, node);
    step(conduct::PeerLost{node, "silence"});
  }
}

void CoordinatorNode::turn() {
  if (crashed_ || frozen()) {
    return;
  }
  if (machine_.lost_after() != link_config_.lost_after) {
    link_config_.lost_after = machine_.lost_after();
    for (Peer& peer : peers_) {
      if (peer.line != nullptr) {
        peer.line->set_liveness(link_config_.heartbeat, link_config_.lost_after);
      }
    }
  }
  if (finished() && world_.now() > finished_at_ + kLinger) {
    crashed_ = true;  // the process has ended
    return;
  }
  const Instant now = local();
  look_for_lost(now);
  step(conduct::Tick{});
  Instant next = finished() ? base::kFarFuture : machine_.next_tick();
  for (Peer& peer : peers_) {
    if (peer.line == nullptr || peer.lost ||
        (peer.closing && (peer.line->done() || world_.now() >= peer.close_by))) {
      continue;
    }
    peer.line->poll(now);
    next = std::min(next, peer.line->next_deadline());
  }
  if (finished()) {
    next = std::min(next, clock_.at(finished_at_ + kLinger + Duration::millis(1)));
  }
  alarm_.set(next);
}

}  // namespace tutti::sim
