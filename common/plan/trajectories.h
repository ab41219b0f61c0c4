#pragma once

// Trajectories: which conversations a phase plays, in which order, as which queries. A conversation
// is played turn by turn: each turn is one query, sent when the reply to the one before is whole.
// The k-th trajectory, from 0, is conversation k of the seeded order (without replacement, as
// SampleOrder: each pass over the conversations is a shuffle of its own) in pass k div n + 1. Turns
// are numbered through: trajectory 0's come first, then trajectory 1's … so a query's number names
// its trajectory and its turn. Immutable; any thread. Memory: 12 B a trajectory.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/vocabulary.h"

namespace tutti::plan {

struct Turn {
  base::SampleIndex sample = 0;
  base::Duration delay{};    // after the end of the turn before; what a tool call took
  std::uint32_t number = 0;  // in the conversation, its recorded answers counted in; from 1
};

struct Conversation {
  std::string id;
  std::vector<Turn> turns;  // 1 … kTurnsMax
};
using Conversations = std::vector<Conversation>;

inline constexpr std::size_t kTurnsMax = 4096;  // of one conversation
inline constexpr std::uint64_t kTrajectoriesMax = 10'000'000;

struct TrajectorySpec {
  std::uint64_t count = 0;               // trajectories; 0: each conversation once
  std::optional<base::Seq> queries_max;  // the last one is cut short to fit; warm-up
  std::uint64_t order_seed = 0;
  bool salted = false;   // each query has the mark of its pass as its salt
  bool delayed = false;  // wait Turn::delay before a turn
};

class Trajectories {
 public:
  struct Place {
    std::uint64_t trajectory = 0;
    std::uint32_t turn = 0;  // from 0, among those that are sent
  };

  // kInput when there is nothing to play, or more than kTrajectoriesMax or 2³² − 2 queries.
  static base::Result<std::shared_ptr<const Trajectories>> make(
      std::shared_ptr<const Conversations> conversations, const TrajectorySpec& spec);

  std::uint64_t count() const { return conversation_.size(); }
  base::Seq queries() const { return first_.back(); }

  // k < count(), seq < queries(), all of them; first_seq(count()) is queries().
  Place place_of(base::Seq seq) const;
  base::Seq first_seq(std::uint64_t k) const { return first_[k]; }
  std::uint32_t turns(std::uint64_t k) const {
    return static_cast<std::uint32_t>(first_[k + 1] - first_[k]);
  }
  const Conversation& conversation(std::uint64_t k) const {
    return (*conversations_)[conversation_[k]];
  }
  std::uint64_t pass(std::uint64_t k) const { return k / conversations_->size() + 1; }
  // The conversation's id; from its second pass on with "__repeat_<pass>" behind it.
  std::string logical_id(std::uint64_t k) const;
  // `due_offset` is the delay before the turn.
  base::IssueCommand command(base::Seq seq) const;

 private:
  Trajectories() = default;

  std::shared_ptr<const Conversations> conversations_;
  bool salted_ = false;
  bool delayed_ = false;
  std::vector<std::uint32_t> conversation_;  // by trajectory
  std::vector<base::Seq> first_;             // by trajectory, and the number of all queries
};

// ---- the mark that keeps prefix caches from knowing a conversation played again ---------------

// Two bytes of BLAKE2b over the decimal digits, as a number: printed as 4 hex digits it is the
// text.
std::uint64_t pass_mark(std::uint64_t pass);
// Four hex digits.
std::string conversation_mark(const std::string& id);

// A salted system prompt is mark_text(pass_mark) + salted_rest(id, content).
std::string mark_text(std::uint64_t mark);  // "[salt: 4461"
std::string salted_rest(const std::string& id, const std::string& content);

}  // namespace tutti::plan
