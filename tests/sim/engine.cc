#include "tests/sim/engine.h"

#include <algorithm>
#include <utility>

namespace tutti::sim {

SimEngine::SimEngine(World& world, Witness& witness, const SimClock& clock, std::size_t node,
                     EngineOptions options, Answers answers)
    : world_(world),
      witness_(witness),
      clock_(clock),
      node_(node),
      options_(options),
      answers_(std::move(answers)) {}

void SimEngine::arm(const wire::ArmPhase& phase) {
  const std::size_t left = queue_.size() + flights_.size() + book_.size();
  if (left > 0) {
    witness_.complain("node {} is armed for phase {} with {} queries of phase {} left", node_,
                      phase.phase, left, armed_.phase);
  }
  armed_ = phase;
  armed_once_ = true;
  progress_.phase = phase.phase;
  progress_.started = 0;
  witness_.armed(node_, phase.phase, phase.slots);
  turn();
}

void SimEngine::issue(std::uint32_t phase, const std::vector<base::IssueCommand>& commands,
                      const std::vector<wire::Trajectory>& trajectories) {
  if (!armed_once_ || phase != armed_.phase) {
    witness_.complain("node {} got commands of phase {}, which is not armed", node_, phase);
    return;
  }
  auto next = commands.begin();
  for (const wire::Trajectory& leased : trajectories) {
    auto made = std::make_unique<drive::Trajectory>();
    made->turns.assign(next, next + leased.turns);
    next += leased.turns;
    book_.add(std::move(made));
  }
  for (const base::IssueCommand& command : commands) {
    if (!trajectories.empty()) {
      break;
    }
    if (!queue_.emplace(command.seq, command).second) {
      witness_.complain("node {} got seq {} while it has it queued", node_, command.seq);
    }
  }
  turn();
}

void SimEngine::freeze(Duration lasts) {
  frozen_until_ = std::max(frozen_until_, world_.now() + lasts);
  world_.at(frozen_until_, [this] { turn(); });
}

void SimEngine::turn() {
  if (crashed_ || !armed_once_ || world_.now() < frozen_until_) {
    return;
  }
  while (turn_of_conversations()) {
  }
  while (!queue_.empty() && flights_.size() < slots()) {
    base::IssueCommand command = queue_.begin()->second;
    const Instant due = armed_.start_at + command.due_offset;
    if (local() < due) {
      wake_at(due);
      break;
    }
    queue_.erase(queue_.begin());
    command.sample += planted(Planted::kOtherRow) ? 1U : 0U;
    start(command, due);
    if (planted(Planted::kStartsTwice) && flights_.size() < armed_.slots) {
      start(command, due);
    }
  }
}

bool SimEngine::turn_of_conversations() {
  if (book_.next_turn_at() <= local()) {
    const Instant due = book_.next_turn_at();
    const drive::Trajectory& trajectory = book_.go_on();
    start(trajectory.turns[trajectory.taken - 1], due);
    return true;
  }
  Instant next = book_.next_turn_at();
  if (book_.anyone_waits() && played_ < slots()) {
    if (local() >= armed_.start_at) {
      ++played_;
      start(book_.begin().turns.front(), armed_.start_at);
      return true;
    }
    next = std::min(next, armed_.start_at);
  }
  if (next != base::kFarFuture) {
    wake_at(next);
  }
  return false;
}

void SimEngine::wake_at(Instant local) {
  const Instant next = clock_.truth(local);
  if (wake_at_ <= world_.now() || next < wake_at_) {
    wake_at_ = next;
    world_.at(next, [this] { turn(); });
  }
}

void SimEngine::start(const base::IssueCommand& command, Instant due_at) {
  const std::uint64_t flight = next_flight_++;
  flights_.emplace(flight, Flight{command, due_at, local()});
  witness_.started(node_, armed_.phase, command);
  ++progress_.started;
  if (world_.maybe(options_.hang)) {
    return;
  }
  const double factor = 1.0 + options_.service_spread * world_.uniform(-1.0, 1.0);
  const Duration service = Duration::from_seconds(options_.service_mean.to_seconds() * factor);
  const auto outcome = world_.maybe(options_.failure) ? wire::Outcome::kFailed : wire::Outcome::kOk;
  world_.after(service, [this, flight, outcome] {
    awake([this, flight, outcome] { end(flight, outcome); });
  });
}

void SimEngine::end(std::uint64_t flight, wire::Outcome outcome) {
  const auto it = flights_.find(flight);
  if (crashed_ || it == flights_.end()) {
    return;
  }
  wire::Record record;
  record.seq = it->second.command.seq;
  record.sample = it->second.command.sample;
  record.phase = static_cast<std::uint16_t>(armed_.phase);
  record.outcome = outcome;
  record.due_at = it->second.due_at;
  record.issued_at = it->second.issued_at;
  record.done_at = local();
  record.output.content_first = outcome == wire::Outcome::kOk ? "x" : "";
  flights_.erase(it);
  const base::Seq seq = record.seq;
  const Instant at = record.done_at;
  witness_.ended(node_, armed_.phase, seq, outcome == wire::Outcome::kOk);
  ++progress_.done;
  progress_.failed += outcome == wire::Outcome::kOk ? 0U : 1U;
  if (outcome != wire::Outcome::kCancelled) {
    progress_.last_response_at = local();
  }
  hand_over(std::move(record));
  if (drive::Trajectory* trajectory = book_.find(seq); trajectory != nullptr) {
    go_on(*trajectory, outcome == wire::Outcome::kOk, at);
  }
  turn();
}

// A turn has ended: the next one, or what there is to say of the rest.
void SimEngine::go_on(drive::Trajectory& trajectory, bool ok, Instant at) {
  const Instant before = planted(Planted::kNoDelay) ? at - Duration::seconds(1) : at;
  if (ok && book_.await_next(trajectory, before)) {
    return;
  }
  for (std::size_t i = drive::TrajectoryBook::give_up(trajectory); i < trajectory.turns.size();
       ++i) {
    wire::Record record;
    record.seq = trajectory.turns[i].seq;
    record.sample = trajectory.turns[i].sample;
    record.phase = static_cast<std::uint16_t>(armed_.phase);
    record.outcome = wire::Outcome::kFailed;
    record.failure = wire::Failure::kTurnSkipped;
    record.due_at = record.issued_at = record.done_at = at;
    witness_.skipped(node_, armed_.phase, trajectory.turns[i]);
    ++progress_.started;
    ++progress_.done;
    ++progress_.failed;
    hand_over(std::move(record));
  }
  book_.close(trajectory);
  --played_;
}

void SimEngine::hand_over(wire::Record&& record) {
  if (world_.maybe(options_.record_loss)) {
    ++progress_.health.records_lost;
    witness_.record_lost(record.phase);
    world_.note("record lost", node_, record.phase, record.seq);
    return;
  }
  if (planted(Planted::kRecordVanishes) && record.seq % 50 == 49) {
    return;
  }
  std::vector<wire::Record> records;
  if (planted(Planted::kRecordTwice)) {
    records.push_back(record);
  }
  records.push_back(std::move(record));
  answers_.records(std::move(records));
}

std::vector<base::Seq> SimEngine::take_queue() {
  std::vector<base::Seq> unstarted;
  for (const auto& [seq, command] : queue_) {
    unstarted.push_back(seq);
  }
  queue_.clear();
  const auto back = book_.recall();
  unstarted.insert(unstarted.end(), back.turns.begin(), back.turns.end());
  std::sort(unstarted.begin(), unstarted.end());
  played_ -= static_cast<std::uint32_t>(back.over);
  return unstarted;
}

void SimEngine::recall(std::uint32_t phase, std::uint32_t number) {
  const bool ignored =
      planted(Planted::kRecallIgnored) || (number == 0 && planted(Planted::kGoesOnAlone));
  const auto kept = ignored ? queue_ : decltype(queue_)();
  auto unstarted = take_queue();
  queue_ = kept;
  const auto wait =
      static_cast<std::int64_t>(world_.uniform() * static_cast<double>(options_.answer_max.ns));
  world_.after(Duration::nanos(wait), [this, phase, number, seqs = std::move(unstarted)] {
    awake([this, phase, number, seqs] { answers_.recalled(phase, number, seqs); });
  });
}

// Answers after every earlier recall: answer_max bounds those.
void SimEngine::abort() {
  if (planted(Planted::kAbortIgnored)) {
    return;
  }
  auto unstarted = take_queue();
  while (!flights_.empty()) {
    end(flights_.begin()->first, wire::Outcome::kCancelled);
  }
  world_.after(options_.answer_max, [this, seqs = std::move(unstarted)] {
    awake([this, seqs] { answers_.aborted(armed_.phase, seqs); });
  });
}

void SimEngine::crash() {
  crashed_ = true;
  while (!flights_.empty()) {
    witness_.ended(node_, armed_.phase, flights_.begin()->second.command.seq, false);
    flights_.erase(flights_.begin());
  }
}

wire::Progress SimEngine::progress() const {
  wire::Progress progress = progress_;
  progress.in_flight = static_cast<std::uint32_t>(flights_.size());
  progress.queued = static_cast<std::uint32_t>(queue_.size());
  return progress;
}

}  // namespace tutti::sim
