#pragma once

// SimEngine: an agent's engine without a network: it starts what it is told when a slot is free and
// the time has come, and ends it after a random while. It answers recalls and aborts late, as
// threads would, loses records when told to, and can hang. Single thread.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/drive/trajectory_book.h"
#include "common/wire/messages.h"
#include "tests/sim/planted.h"
#include "tests/sim/witness.h"
#include "tests/sim/world.h"

namespace tutti::sim {

struct EngineOptions {
  Duration service_mean = Duration::millis(50);
  double service_spread = 0.5;  // uniform in mean · [1 − spread, 1 + spread]
  double failure = 0;           // share of queries that fail
  double record_loss = 0;       // share of records that find the ring full
  double hang = 0;              // share of queries that never end by themselves
  Duration answer_max = Duration::millis(3);
  Planted planted = Planted::kNothing;
};

class SimEngine {
 public:
  struct Answers {
    std::function<void(std::vector<wire::Record>)> records;
    std::function<void(std::uint32_t phase, std::uint32_t number, std::vector<base::Seq>)> recalled;
    std::function<void(std::uint32_t phase, std::vector<base::Seq>)> aborted;
  };

  SimEngine(World& world, Witness& witness, const SimClock& clock, std::size_t node,
            EngineOptions options, Answers answers);

  void arm(const wire::ArmPhase& phase);
  void issue(std::uint32_t phase, const std::vector<base::IssueCommand>& commands,
             const std::vector<wire::Trajectory>& trajectories);
  void recall(std::uint32_t phase, std::uint32_t number);
  void abort();
  void freeze(Duration lasts);  // what ends meanwhile is seen, and what is due done, afterwards
  void crash();                 // everything in flight is gone, nothing is answered any more
  wire::Progress progress() const;
  std::uint32_t phase() const { return armed_.phase; }

 private:
  struct Flight {
    base::IssueCommand command;
    Instant due_at{};
    Instant issued_at{};
  };

  bool planted(Planted bug) const { return options_.planted == bug; }
  std::uint32_t slots() const { return armed_.slots + (planted(Planted::kOneSlotMore) ? 1U : 0U); }
  void turn();
  bool turn_of_conversations();  // false: nothing can be sent before a wake-up
  void start(const base::IssueCommand& command, Instant due_at);
  void go_on(drive::Trajectory& trajectory, bool ok, Instant at);
  void hand_over(wire::Record&& record);
  void wake_at(Instant local);
  void end(std::uint64_t flight, wire::Outcome outcome);
  std::vector<base::Seq> take_queue();
  // Now, or when this engine is awake again.
  template <class F>
  void awake(F then) {
    if (world_.now() < frozen_until_) {
      world_.at(frozen_until_,
                [this, then = std::move(then)]() mutable { awake(std::move(then)); });
    } else if (!crashed_) {
      then();
    }
  }
  Instant local() const { return clock_.at(world_.now()); }

  World& world_;
  Witness& witness_;
  const SimClock& clock_;
  std::size_t node_;
  EngineOptions options_;
  Answers answers_;
  bool crashed_ = false;
  Instant frozen_until_{};
  bool armed_once_ = false;
  wire::ArmPhase armed_{};
  std::map<base::Seq, base::IssueCommand> queue_;  // lowest first
  drive::TrajectoryBook book_;
  std::uint32_t played_ = 0;  // of it, conversations that have begun
  std::map<std::uint64_t, Flight> flights_;
  std::uint64_t next_flight_ = 0;
  Instant wake_at_ = base::kFarFuture;
  wire::Progress progress_;
};

}  // namespace tutti::sim
