#pragma once

// CoordinatorNode: the simulated coordinator host: a real RunMachine, one real Link for each agent,
// and a ledger in memory that takes every batch once. Single thread.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/conduct/run_machine.h"
#include "tests/sim/line.h"
#include "tests/sim/network.h"
#include "tests/sim/planted.h"
#include "tests/sim/witness.h"
#include "tests/sim/world.h"

namespace tutti::sim {

// Idempotent by (agent, batch); a query with two records is a broken promise.
class SimLedger {
 public:
  explicit SimLedger(Witness& witness) : witness_(witness) {}
  void plant(Planted bug) { planted_ = bug; }
  std::vector<conduct::StoredRecord> accept(std::size_t agent, const wire::RecordBatch& batch);
  const std::map<std::uint32_t, std::map<base::Seq, wire::Outcome>>& records() const {
    return records_;
  }
  const std::set<std::pair<std::uint32_t, base::Seq>>& counts() const { return counts_; }

 private:
  Witness& witness_;
  Planted planted_ = Planted::kNothing;
  std::set<std::pair<std::size_t, std::uint64_t>> batches_;
  std::map<std::uint32_t, std::map<base::Seq, wire::Outcome>> records_;
  std::set<std::pair<std::uint32_t, base::Seq>> counts_;
};

class CoordinatorNode {
 public:
  // How long the last words may take to be delivered.
  static constexpr Duration kLinger = Duration::seconds(3);

  CoordinatorNode(World& world, SimNetwork& network, Witness& witness, conduct::RunPlan plan,
                  SimClock clock);

  // Must be made before any agent: the coordinator is node 0.
  void plant(Planted bug) {
    planted_ = bug;
    ledger_.plant(bug);
  }
  void begin();
  void dial(std::size_t node);
  void ask_stop(conduct::StopKind kind);
  void crash() { crashed_ = true; }
  static constexpr const char* kDiskFull = "the disk is full";
  void fill_disk() { disk_full_ = true; }
  bool refused() const { return refused_; }                  // a batch of a running phase …
  bool refused_records() const { return refused_records_; }  // … that had not only counts
  void freeze(Duration lasts);  // SIGSTOP, and SIGCONT later; frames wait, up to a socket's queue
  bool crashed() const { return crashed_; }

  bool finished() const { return finish_.has_value(); }
  Instant finished_at() const { return finished_at_; }
  const conduct::Outcome& outcome() const { return *finish_; }
  const conduct::RunMachine& machine() const { return machine_; }
  const SimLedger& ledger() const { return ledger_; }
  const std::map<std::uint32_t, conduct::PhaseTotals>& totals() const { return totals_; }
  const std::map<std::uint32_t, conduct::PhaseIssuingEnded>& issuing_ends() const {
    return issuing_ends_;
  }
  // When a stopped phase had all its commands back; unset when it was not stopped.
  Instant settled_at(std::uint32_t phase) const {
    const auto it = settled_.find(phase);
    return it == settled_.end() ? Instant{} : it->second;
  }
  const std::vector<std::string>& notices() const { return notices_; }
  // When a node was lost by its silence; not set: it was not.
  Instant given_up_at(std::size_t node) const {
    const auto it = given_up_.find(node);
    return it == given_up_.end() ? Instant{} : it->second;
  }
  const SimClock& clock() const { return clock_; }
  Instant local() const { return clock_.at(world_.now()); }

 private:
  struct Peer {
    std::unique_ptr<Line> line;
    bool lost = false;
    bool closing = false;
    Instant close_by{};
  };

  void receive(std::size_t from, const std::string& bytes);
  void hear(std::size_t from, const std::string& bytes);
  void refuse(std::size_t from, const wire::RecordBatch& batch);
  void thaw();
  bool frozen() const { return world_.now() < frozen_until_; }
  void check_slots(const conduct::PhaseStarted& started);
  Peer& peer_of(std::size_t node, bool dialled);
  void step(const conduct::Event& event);
  void perform(const conduct::Command& command);
  void turn();
  void look_for_lost(Instant now);
  void ship_bodies(const conduct::ShipBodies& ship);

  World& world_;
  SimNetwork& network_;
  Witness& witness_;
  SimClock clock_;
  wire::LinkConfig link_config_;
  conduct::RunMachine machine_;
  SimLedger ledger_;
  Alarm alarm_;
  std::vector<Peer> peers_;                                 // by node; no line: not heard of
  std::deque<std::pair<std::size_t, std::string>> unread_;  // came while it was frozen
  std::map<std::size_t, std::size_t> unread_of_;
  Instant frozen_until_{};
  std::map<std::size_t, Instant> given_up_;
  Planted planted_ = Planted::kNothing;
  bool crashed_ = false;
  bool disk_full_ = false;
  bool refused_ = false;
  bool refused_records_ = false;
  std::optional<conduct::Outcome> finish_;
  Instant finished_at_{};
  std::map<std::uint32_t, Instant> settled_;
  std::map<std::uint32_t, conduct::PhaseTotals> totals_;
  std::map<std::uint32_t, conduct::PhaseIssuingEnded> issuing_ends_;
  std::vector<std::string> notices_;
  std::vector<conduct::Command> spare_commands_;  // room that is used again
};

}  // namespace tutti::sim
