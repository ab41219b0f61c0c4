#pragma once

// SimCounter: the counting threads of a simulated agent: one reply after the other, each taking a
// while; some get no count, and it may stand still for good. It remembers what it told, so that a
// run can be asked where the counts are. Its chance is its own: a run that counts nothing is the
// same run as without it. Single thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/session/agent_events.h"
#include "tests/sim/world.h"

namespace tutti::sim {

struct CountingOptions {
  Duration mean = Duration::millis(1);  // of one reply
  double uncounted = 0;                 // share of replies that get no count
  double stall = 0;                     // by reply: it and all after it never come back
};

class SimCounter {
 public:
  using Told = std::set<std::pair<std::uint32_t, base::Seq>>;

  SimCounter(World& world, CountingOptions options, std::uint64_t seed,
             std::function<void(session::RepliesCounted)> answer)
      : world_(world), options_(options), seed_(seed), answer_(std::move(answer)) {}

  void add(const std::vector<session::ReplyTask>& replies) {
    if (!chance_) {
      chance_.emplace(seed_);  // most worlds count nothing, and a seed takes a while
    }
    for (const session::ReplyTask& reply : replies) {
      stalled_ = stalled_ || chance_->next_double() < options_.stall;
      if (stalled_) {
        continue;
      }
      free_at_ = std::max(free_at_, world_.now()) +
                 Duration::from_seconds(options_.mean.to_seconds() * 2 * chance_->next_double());
      const bool counts = chance_->next_double() >= options_.uncounted;
      world_.at(free_at_, [this, counts, generation = generation_, phase = reply.phase,
                           seq = reply.seq] { tell(generation, counts, phase, seq); });
    }
  }
  void drop() {
    ++generation_;
    dropped_ = true;
    free_at_ = world_.now();
  }
  void crash() { ++generation_; }
  // Its threads stop with their process, and tell what they have a little after they go on.
  void freeze(Instant until) { frozen_until_ = std::max(frozen_until_, until + kWakes); }

  const Told& counted() const { return counted_; }
  const Told& uncounted() const { return uncounted_; }
  bool whole() const { return !stalled_ && !dropped_; }  // every reply was answered

 private:
  static constexpr Duration kWakes = Duration::millis(1);

  void tell(std::uint64_t generation, bool counts, std::uint16_t phase, base::Seq seq) {
    if (generation != generation_) {
      return;
    }
    if (world_.now() < frozen_until_) {
      world_.at(frozen_until_,
                [this, generation, counts, phase, seq] { tell(generation, counts, phase, seq); });
      return;
    }
    (counts ? counted_ : uncounted_).emplace(phase, seq);
    session::RepliesCounted told;
    if (counts) {
      told.counts.push_back({phase, seq, static_cast<std::int32_t>(seq % 1000), -1, false});
    } else {
      told.uncounted = 1;
    }
    answer_(std::move(told));
  }

  World& world_;
  CountingOptions options_;
  std::uint64_t seed_;
  std::optional<base::Mt19937> chance_;  // from the first reply on
  std::function<void(session::RepliesCounted)> answer_;
  Instant free_at_{};
  Instant frozen_until_{};
  std::uint64_t generation_ = 0;
  bool stalled_ = false;
  bool dropped_ = false;
  Told counted_;
  Told uncounted_;
};

}  // namespace tutti::sim
