#include "tests/sim/fates.h"

#include <algorithm>
#include <utility>

namespace tutti::sim {
namespace {

// Only a phase has the promise: agents that prepare are borne with.
bool takes_part(const AgentNode& agent, const CoordinatorNode& coordinator) {
  const conduct::RunState state = coordinator.machine().state();
  return agent.machine().state() == session::AgentState::kInPhase && !coordinator.crashed() &&
         state >= conduct::RunState::kArmed && state <= conduct::RunState::kDraining;
}

}  // namespace

void Fates::crashed(const AgentNode& agent, const CoordinatorNode& coordinator) {
  crashed_.insert(agent.node());
  silences_.push_back(
      {world_.now(), base::kFarFuture, agent.node(), takes_part(agent, coordinator)});
}

void Fates::frozen(const AgentNode& agent, const CoordinatorNode& coordinator, Duration lasts) {
  for (Silence& silence : silences_) {
    if (silence.node == agent.node() && silence.until >= world_.now()) {
      silence.until = std::max(silence.until, world_.now() + lasts);  // it sleeps on
      return;
    }
  }
  silences_.push_back(
      {world_.now(), world_.now() + lasts, agent.node(), takes_part(agent, coordinator)});
}

void Fates::coordinator_silent(Duration lasts, std::set<std::size_t> running) {
  const bool for_ever = lasts == base::kFarFuture - Instant{};
  coordinator_.push_back(
      {world_.now(), for_ever ? base::kFarFuture : world_.now() + lasts, std::move(running)});
}

bool Fates::coordinator_awake(Instant from, Instant until) const {
  return std::none_of(coordinator_.begin(), coordinator_.end(), [&](const Absence& absence) {
    return absence.from < until && absence.until > from;
  });
}

// Whoever is dead, or frozen for longer than lost_after, is given up within lost_after of its last
// sign, which came before the silence began.
void Fates::judge_detection(const CoordinatorNode& coordinator, Duration lost_after) const {
  for (const Silence& silence : silences_) {
    const Instant by = silence.from + lost_after + kSlack;
    const bool ended =
        (coordinator.finished() && coordinator.finished_at() <= by) || by > world_.now();
    if (!silence.in_phase || silence.until < by || ended ||
        !coordinator_awake(silence.from - kSlack, by)) {
      continue;
    }
    const Instant at = coordinator.given_up_at(silence.node);
    if (!at.is_set() || at > by) {
      witness_.complain(
          "node {} fell silent at {:.3f} s and was given up at {:.3f} s, not by {:.3f} s",
          silence.node, static_cast<double>(silence.from.ns) / 1e9,
          static_cast<double>(at.ns) / 1e9, static_cast<double>(by.ns) / 1e9);
    }
  }
}

// When the coordinator was silent for that long, first.
Instant Fates::silent_from(std::size_t node, Duration at_least) const {
  for (const Absence& absence : coordinator_) {
    if (absence.until - absence.from >= at_least && absence.running.count(node) > 0) {
      return absence.from;
    }
  }
  return base::kFarFuture;
}

void Fates::judge_orphan(const AgentNode& agent, const CoordinatorNode& coordinator,
                         Duration lost_after) const {
  const Instant given_up = coordinator.given_up_at(agent.node());
  const Instant alone = std::min(given_up.is_set() ? given_up : base::kFarFuture,
                                 silent_from(agent.node(), lost_after + kSlack));
  if (is_crashed(agent.node()) || alone == base::kFarFuture) {
    return;
  }
  // Itself silent meanwhile: then it is to know that when it wakes, not to find out by waiting.
  Instant stop_by = alone + lost_after + kSlack;
  Instant woken_at{};  // from the last of the silences that held when it was given up
  for (const Silence& silence : silences_) {
    if (silence.node != agent.node()) {
      continue;
    }
    const bool whole = silence.until - silence.from >= lost_after;
    if (whole && silence.from <= alone && silence.until >= alone) {
      woken_at = std::max(woken_at, silence.until);
    } else if (silence.from < stop_by && silence.until > silence.from) {
      stop_by = stop_by + (silence.until - silence.from);  // slept through a part of its time
    }
  }
  if (woken_at.is_set()) {
    stop_by = woken_at + kEngineSlack;
  }
  Instant end_by = stop_by + session::AgentConfig{}.orphan_drain_max + kSlack;
  for (const Silence& silence : silences_) {
    if (silence.node == agent.node() && silence.from < end_by && silence.until > end_by) {
      end_by = silence.until + kSlack;  // slept through the end of that
    }
  }
  const Instant last_start = witness_.last_start_of(agent.node());
  const Instant last_end = witness_.last_end_of(agent.node());
  if (last_start > stop_by) {
    witness_.complain("node {} was alone from {:.3f} s on, and started a query at {:.3f} s",
                      agent.node(), static_cast<double>(alone.ns) / 1e9,
                      static_cast<double>(last_start.ns) / 1e9);
  }
  if (last_end > end_by) {
    witness_.complain("node {} was alone from {:.3f} s on, and had a query in flight at {:.3f} s",
                      agent.node(), static_cast<double>(alone.ns) / 1e9,
                      static_cast<double>(last_end.ns) / 1e9);
  }
  if (given_up.is_set() && agent.exit_code() == base::ExitCode::kOk) {
    witness_.complain("node {} was given up, and ended with 0", agent.node());
  }
}

}  // namespace tutti::sim
