#pragma once

// TrajectoryBook: a worker's conversations of the armed phase: those that wait for a slot, and
// those that are played, turn by turn. It knows which turn may be sent when and what is left of a
// conversation; sending, slots and records are the worker's. Promise: every turn it was given is
// taken up once, or handed back once. Allocates only in add(). Pure but for that; one owner.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "agent/target/transport.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"

namespace tutti::drive {

struct Trajectory {
  target::Conversation conversation;
  std::vector<base::IssueCommand> turns;  // of ascending numbers, without a gap; at least one
  std::size_t taken = 0;                  // turns that were taken up
  bool in_flight = false;                 // the newest of them has not ended
};

class TrajectoryBook {
 public:
  void add(std::unique_ptr<Trajectory> trajectory);

  bool empty() const { return waiting_.empty() && played_.empty(); }
  std::size_t size() const { return waiting_.size() + played_.size(); }
  bool anyone_waits() const { return !waiting_.empty(); }
  // When the next turn of a conversation that is played is due; kFarFuture: none waits.
  base::Instant next_turn_at() const {
    return due_.empty() ? base::kFarFuture : due_.front().first;
  }

  // The waiting one of the lowest number begins: its first turn is taken up. Some one waits.
  Trajectory& begin();
  // The turn of next_turn_at() is taken up: the newest taken of the result. Some turn is due.
  Trajectory& go_on();
  // Whose turn this is; null: nobody's that is played.
  Trajectory* find(base::Seq seq);

  // The turn in flight has ended well. False: it was the last, and the conversation is over.
  bool await_next(Trajectory& trajectory, base::Instant ended_at);
  // A turn has failed: the others are taken up as well, for their records say so. The place of the
  // first of them in `turns`; recall() leaves the trajectory alone until it is closed.
  static std::size_t give_up(Trajectory& trajectory);
  // It is over, and gone.
  void close(const Trajectory& trajectory);

  struct Unstarted {
    std::vector<base::Seq> turns;
    std::size_t never_begun = 0;  // whole conversations among them
    std::size_t over = 0;         // played ones that had no turn in flight: they are gone
  };
  // Nothing further is taken up: what is in flight is the last turn of its conversation.
  Unstarted recall();

 private:
  using Shelf = std::map<base::Seq, std::unique_ptr<Trajectory>>;  // by their first number

  Shelf waiting_;
  Shelf played_;
  std::vector<std::pair<base::Instant, base::Seq>> due_;  // a heap, earliest first
};

}  // namespace tutti::drive
