#pragma once

// Witness: sees every query start and end, whoever did it, and complains at once when a promise is
// broken: a query started twice, started without being what the schedule says, or more in flight
// than the slots allow. Single thread.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/plan/schedule.h"
#include "tests/sim/world.h"

namespace tutti::sim {

struct PhaseTruth {
  bool closed_loop = false;
  std::uint32_t concurrency = 0;
  std::vector<base::IssueCommand> schedule;                // the whole, from a Schedule of our own
  std::vector<std::uint8_t> starts;                        // by seq
  std::vector<Instant> started_at;                         // by seq
  std::vector<std::size_t> started_by;                     // by seq: the node
  std::shared_ptr<const plan::Trajectories> trajectories;  // null: each query on its own
  std::vector<Instant> ended_at;                           // by seq …
  std::vector<std::uint8_t> ended_well;                    // … and whether it was a success
  std::vector<std::uint8_t> begun;                         // by trajectory
  std::map<std::size_t, std::uint32_t> slots;              // by node, as armed
  std::map<std::size_t, std::uint32_t> in_flight_of;       // by node
  std::uint32_t in_flight = 0;
  std::uint64_t started = 0;
  std::uint64_t records_lost = 0;
  // ∫ in-flight dt since the first query, and its value at the newest start.
  double area = 0;
  double area_at_last_start = 0;
  Instant first_start{};
  Instant last_start{};
  Instant changed{};
};

class Witness {
 public:
  explicit Witness(World& world) : world_(world) {}

  void expect(const std::vector<plan::PhaseSpec>& specs) {
    for (const plan::PhaseSpec& spec : specs) {
      PhaseTruth truth;
      truth.closed_loop = spec.pacing == base::Pacing::kClosedLoop;
      truth.concurrency = spec.concurrency;
      plan::Schedule(spec).take(spec.total, truth.schedule);
      truth.starts.assign(spec.total, 0);
      truth.started_at.assign(spec.total, Instant{});
      truth.started_by.assign(spec.total, 0);
      truth.trajectories = spec.trajectories;
      truth.ended_at.assign(spec.total, Instant{});
      truth.ended_well.assign(spec.total, 0);
      truth.begun.assign(spec.trajectories == nullptr ? 0 : spec.trajectories->count(), 0);
      phases_.push_back(std::move(truth));
    }
  }

  void armed(std::size_t node, std::uint32_t phase, std::uint32_t slots) {
    phases_.at(phase).slots[node] = slots;
    std::uint64_t sum = 0;
    for (const auto& [who, count] : phases_[phase].slots) {
      sum += count;
    }
    if (phases_[phase].closed_loop && sum > phases_[phase].concurrency) {
      complain("slots of phase {} add up to {}, C is {}", phase, sum, phases_[phase].concurrency);
    }
  }

  void started(std::size_t node, std::uint32_t phase, const base::IssueCommand& command) {
    world_.note("start", node, phase, command.seq);
    if (phase >= phases_.size() || command.seq >= phases_[phase].schedule.size()) {
      complain("node {} started seq {} of phase {}: no such query", node, command.seq, phase);
      return;
    }
    PhaseTruth& truth = phases_[phase];
    if (!(truth.schedule[command.seq] == command)) {
      complain("node {} started seq {} of phase {} with another row, salt or due time", node,
               command.seq, phase);
    }
    if (++truth.starts[command.seq] > 1) {
      complain("seq {} of phase {} was started twice, now by node {}", command.seq, phase, node);
    }
    if (phase > 0 && of_others(phases_[phase - 1]) > 0) {
      complain("phase {} began with {} queries of the one before in flight", phase,
               of_others(phases_[phase - 1]));
    }
    if (truth.trajectories != nullptr) {
      check_turn(node, phase, truth, command);
    }
    last_start_of_[node] = world_.now();
    truth.started_at[command.seq] = world_.now();
    truth.started_by[command.seq] = node;
    change(truth);
    ++truth.started;
    ++truth.in_flight;
    ++truth.in_flight_of[node];
    if (!truth.first_start.is_set()) {
      truth.first_start = world_.now();
    }
    truth.last_start = world_.now();
    truth.area_at_last_start = truth.area;
    if (truth.in_flight_of[node] > truth.slots[node]) {
      complain("node {} has {} in flight in phase {}, its slots are {}", node,
               truth.in_flight_of[node], phase, truth.slots[node]);
    }
    if (truth.closed_loop && truth.in_flight > truth.concurrency) {
      complain("{} in flight in phase {}, C is {}", truth.in_flight, phase, truth.concurrency);
    }
  }

  void record_lost(std::uint32_t phase) { ++phases_.at(phase).records_lost; }

  // A turn that will never be sent, as the one before it failed, or was not sent either.
  void skipped(std::size_t node, std::uint32_t phase, const base::IssueCommand& turn) {
    world_.note("skip", node, phase, turn.seq);
    PhaseTruth& truth = phases_.at(phase);
    const base::Seq before = turn.seq - 1;
    if (truth.trajectories == nullptr || truth.trajectories->place_of(turn.seq).turn == 0 ||
        !truth.ended_at[before].is_set() || truth.ended_well[before] != 0 ||
        truth.started_by[before] != node) {
      complain("seq {} of phase {} was skipped by node {}, and nothing before it failed", turn.seq,
               phase, node);
    }
    if (++truth.starts[turn.seq] > 1) {
      complain("seq {} of phase {} was started and skipped", turn.seq, phase);
    }
    truth.started_at[turn.seq] = truth.ended_at[turn.seq] = world_.now();
    truth.started_by[turn.seq] = node;
    ++truth.started;
  }

  void ended(std::size_t node, std::uint32_t phase, base::Seq seq, bool well) {
    world_.note("end", node, phase, seq);
    PhaseTruth& truth = phases_[phase];
    truth.ended_at[seq] = world_.now();
    truth.ended_well[seq] = well ? 1 : 0;
    change(truth);
    --truth.in_flight;
    --truth.in_flight_of[node];
    last_end_of_[node] = world_.now();
  }

  // What an agent still has in flight when the coordinator has given it up is not the run's.
  void give_up(std::size_t node) { given_up_.insert(node); }
  Instant last_start_of(std::size_t node) const { return at_or_never(last_start_of_, node); }
  Instant last_end_of(std::size_t node) const { return at_or_never(last_end_of_, node); }

  template <class... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    if (complaints_.size() < 20) {
      complaints_.push_back(
          fmt::format("at {:.6f} s: ", static_cast<double>(world_.now().ns) / 1e9) +
          fmt::format(format, std::forward<Args>(args)...));
    }
  }

  const std::vector<std::string>& complaints() const { return complaints_; }
  const std::vector<PhaseTruth>& phases() const { return phases_; }

 private:
  // Turns go out one after the other, on one agent, each after its delay; and conversations begin
  // in their order, but for those that wait for a slot that is on its way to them, or that is taken
  // after all: each lost record may have been a whole conversation, as far as the coordinator
  // knows.
  void check_turn(std::size_t node, std::uint32_t phase, PhaseTruth& truth,
                  const base::IssueCommand& command) {
    const auto place = truth.trajectories->place_of(command.seq);
    if (place.turn == 0) {
      truth.begun[place.trajectory] = 1;
      const auto until = truth.begun.begin() + static_cast<std::ptrdiff_t>(place.trajectory);
      const auto passed = std::count(truth.begun.begin(), until, 0);
      if (passed > static_cast<std::ptrdiff_t>(truth.concurrency + truth.records_lost)) {
        complain("trajectory {} of phase {} begins, and {} before it have not", place.trajectory,
                 phase, passed);
      }
      return;
    }
    const base::Seq before = command.seq - 1;
    if (truth.starts[before] == 0 || !truth.ended_at[before].is_set() ||
        truth.ended_well[before] == 0 || truth.started_by[before] != node) {
      complain(
          "node {} started seq {} of phase {}, and the turn before it had not ended well there",
          node, command.seq, phase);
      return;
    }
    // A clock that runs fast by 0.1 % waits that much less.
    const double least = command.due_offset.to_seconds() * 0.999;
    if ((world_.now() - truth.ended_at[before]).to_seconds() < least) {
      complain("node {} did not wait for the delay of seq {} of phase {}", node, command.seq,
               phase);
    }
  }
  void change(PhaseTruth& truth) {
    if (truth.changed.is_set()) {
      truth.area += truth.in_flight * (world_.now() - truth.changed).to_seconds();
    }
    truth.changed = world_.now();
  }

  std::uint32_t of_others(const PhaseTruth& truth) const {
    std::uint32_t sum = truth.in_flight;
    for (const auto& [node, count] : truth.in_flight_of) {
      sum -= given_up_.count(node) > 0 ? count : 0;
    }
    return sum;
  }
  static Instant at_or_never(const std::map<std::size_t, Instant>& of, std::size_t node) {
    const auto it = of.find(node);
    return it == of.end() ? Instant{} : it->second;
  }

  World& world_;
  std::vector<PhaseTruth> phases_;
  std::set<std::size_t> given_up_;
  std::map<std::size_t, Instant> last_start_of_;
  std::map<std::size_t, Instant> last_end_of_;
  std::vector<std::string> complaints_;
};

}  // namespace tutti::sim
