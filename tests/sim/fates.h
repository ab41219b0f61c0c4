#pragma once

// Fates: what was done to each node of a world and when: killed, frozen, given up. And the promises
// that follow: the dead are named in time, who was given up stops at once and is gone soon, an
// agent's loss takes no slot from and gives none to another. Single thread.

#include <cstdint>
#include <map>
#include <set>

#include "tests/sim/agent_node.h"
#include "tests/sim/coordinator_node.h"
#include "tests/sim/witness.h"
#include "tests/sim/world.h"

namespace tutti::sim {

class Fates {
 public:
  // For the way of a frame through the worst network, turns, ticks, and drifting clocks.
  static constexpr Duration kSlack = Duration::millis(300);
  // How long an engine may go on by itself before it hears of its session.
  static constexpr Duration kEngineSlack = Duration::millis(20);

  Fates(const World& world, Witness& witness) : world_(world), witness_(witness) {}

  void crashed(const AgentNode& agent, const CoordinatorNode& coordinator);
  void frozen(const AgentNode& agent, const CoordinatorNode& coordinator, Duration lasts);
  // Frozen, or crashed for ever; `running`: the agents in a phase, who are to notice it soon.
  void coordinator_silent(Duration lasts, std::set<std::size_t> running);
  void signalled(std::size_t node) { signalled_.insert(node); }

  bool is_crashed(std::size_t node) const { return crashed_.count(node) > 0; }

  // After the end of the world.
  void judge_detection(const CoordinatorNode& coordinator, Duration lost_after) const;
  void judge_orphan(const AgentNode& agent, const CoordinatorNode& coordinator,
                    Duration lost_after) const;

 private:
  struct Silence {
    Instant from{};
    Instant until{};
    std::size_t node = 0;
    bool in_phase = false;  // an armed agent of a running phase
  };

  bool coordinator_awake(Instant from, Instant until) const;
  Instant silent_from(std::size_t node, Duration at_least) const;

  const World& world_;
  Witness& witness_;
  std::vector<Silence> silences_;  // of agents
  struct Absence {
    Instant from{};
    Instant until{};
    std::set<std::size_t> running;
  };
  std::vector<Absence> coordinator_;
  std::set<std::size_t> crashed_;
  std::set<std::size_t> signalled_;
};

}  // namespace tutti::sim
