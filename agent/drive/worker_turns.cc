// Conversations: the part of Worker that plays them, turn by turn, each in one slot from its first
// turn to its end.

#include <fmt/format.h>

#include <algorithm>

#include "agent/drive/worker.h"
#include "common/wire/failure_type.h"

namespace tutti::drive {

base::Instant Worker::next_turn_due() const {
  base::Instant next = book_.next_turn_at();
  if (book_.anyone_waits() && !free_since_.empty()) {
    next = std::min(next, std::max(start_at_, free_since_.front()));
  }
  return next;
}

// A turn of a conversation that is played goes before one that begins.
void Worker::issue_turn(base::Instant due_at, base::Instant now) {
  const bool begins = book_.next_turn_at() > due_at;
  Trajectory& trajectory = begins ? book_.begin() : book_.go_on();
  target::Query query;
  query.command = trajectory.turns[trajectory.taken - 1];
  query.conversation = &trajectory.conversation;
  query.phase = static_cast<std::uint16_t>(phase_);
  query.due_at = due_at;
  query.issued_at = now;
  if (begins) {
    free_since_.pop();
    gauges_.settled.add();
  }
  if (due_at != start_at_) {  // the first ones fill the slots; see issue_next()
    gauges_.issue_lag.add(now - due_at);
  }
  issue(query, now);
}

// Its record goes out, and after a failure one of each turn that will not be sent.
void Worker::turn_ended(Trajectory& trajectory, std::unique_ptr<wire::Record>& record) {
  const bool ok = record->outcome == wire::Outcome::kOk;
  const base::Instant at = record->done_at;
  std::string why;
  if (record->failure == wire::Failure::kTurnTimeout) {
    // The run's files name the query by its id, which the coordinator knows.
    why = fmt::format("prior turn timed out (query={})", record->seq);
  } else if (!ok) {
    why = fmt::format("prior turn errored: {}",
                      wire::failure_type(record->failure, record->error_message));
  }
  hand_over(record);
  if (ok && book_.await_next(trajectory, at)) {
    return;
  }
  if (trajectory.taken == trajectory.turns.size()) {
    end_trajectory(trajectory, at);
    return;
  }
  skips_.push_back({&trajectory, TrajectoryBook::give_up(trajectory), std::move(why), at});
  go_on_skipping();
}

void Worker::end_trajectory(const Trajectory& trajectory, base::Instant at) {
  book_.close(trajectory);
  gauges_.finished.add();
  free_since_.push(at);
}

// A frontend that goes down ends many conversations at once: the next failure of each has its place
// in the ring before these, and the session takes some out in the meantime.
void Worker::go_on_skipping() {
  const auto may_add = [this] {
    const std::size_t there = recorder_.size();
    return there == 0 || there + book_.size() < config_.record_ring;
  };
  while (!skips_.empty() && may_add()) {
    Skips& skips = skips_.back();
    const Trajectory& trajectory = *skips.trajectory;
    skip(trajectory.turns[skips.next], skips.why, skips.at);
    if (++skips.next == trajectory.turns.size()) {
      end_trajectory(trajectory, skips.at);
      skips_.pop_back();
    }
  }
}

void Worker::skip(const base::IssueCommand& turn, std::string_view why, base::Instant at) {
  *skipped_ = wire::Record{};
  skipped_->seq = turn.seq;
  skipped_->sample = turn.sample;
  skipped_->phase = static_cast<std::uint16_t>(phase_);
  skipped_->worker = config_.transport.worker;
  skipped_->outcome = wire::Outcome::kFailed;
  skipped_->failure = wire::Failure::kTurnSkipped;
  skipped_->due_at = at;
  skipped_->issued_at = at;
  skipped_->done_at = at;
  skipped_->error_message.assign(why);
  hand_over(skipped_);
  gauges_.started.add();
  gauges_.done.add();
  gauges_.failed.add();
}

// An abort: what has no record yet gets none.
void Worker::drop_skips(Note& note, std::size_t& over) {
  for (const Skips& skips : skips_) {
    const Trajectory& trajectory = *skips.trajectory;
    for (std::size_t turn = skips.next; turn < trajectory.turns.size(); ++turn) {
      note.unstarted.emplace_back(phase_, trajectory.turns[turn].seq);
    }
    book_.close(trajectory);
    free_since_.push(skips.at);
    ++over;
  }
  skips_.clear();
}

void Worker::recall_turns(Note& note, std::size_t& never_begun, std::size_t& over) {
  const TrajectoryBook::Unstarted back = book_.recall();
  for (const base::Seq seq : back.turns) {
    note.unstarted.emplace_back(phase_, seq);
  }
  never_begun += back.never_begun;
  over += back.never_begun + back.over;
  for (std::size_t i = 0; i < back.over; ++i) {
    free_since_.push(clock_.mono());
  }
}

}  // namespace tutti::drive
