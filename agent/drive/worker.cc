#include "agent/drive/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/sys/process.h"

namespace tutti::drive {
namespace {

constexpr std::size_t kEventsPerTurn = 512;
constexpr std::size_t kOrdersPerTurn = 4096;
constexpr std::size_t kControlOrders = 64;  // ring room beyond the queue
constexpr std::size_t kNotesMax = 1024;
// Events handled between two looks at due commands, and queries sent at one. Replies are read one
// after the other and so are their slots refilled: libcurl's ways for either fill the caches.
constexpr std::size_t kHandful = 16;
constexpr base::Duration kSpin = base::Duration::micros(50);
// Between two rings of the session: waking it for every reply would cost more than the reply. Few
// results can wait longer, and where no slot waits for them as long as any may.
constexpr base::Duration kRingGap = base::Duration::micros(500);
constexpr base::Duration kRingGapOfFew = base::Duration::millis(5);
constexpr std::uint32_t kManyResults = 256;
// A loop that never slept longer would not see that its process had been stopped.
constexpr base::Duration kSleepMax = base::Duration::millis(100);
// Timers are late by some of this on a healthy host; what is beyond is the host's stall, and ours.
constexpr base::Duration kWakeSlack = base::Duration::millis(1);

}  // namespace

Worker::Worker(WorkerConfig config, const base::Clock& clock, SessionBell& session_bell)
    : config_(std::move(config)),
      clock_(clock),
      session_bell_(session_bell),
      orders_(config_.queue_max + kControlOrders),
      notes_(kNotesMax),
      recorder_(config_.record_ring),
      gauges_(config_.transport.frontends.size()),
      poller_(kEventsPerTurn),
      transport_(target::make_transport(config_.transport, poller_, clock_, *this, gauges_.live)),
      picker_(target::pick_rules(*config_.transport.target, config_.transport.frontends),
              config_.transport.frontends.size(), config_.transport.global_worker) {
  TUTTI_CHECK(poller_.add(bell_.fd(), sys::kReadable));
  TUTTI_CHECK(poller_.add(timer_.fd(), sys::kReadable));
}

Worker::~Worker() { TUTTI_CHECK(!thread_.joinable()); }

// ---- session thread --------------------------------------------------------------------------

bool Worker::begin() {
  try {
    thread_ = std::thread(&Worker::run, this);
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void Worker::join() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

base::Duration Worker::cpu() const {
  const std::int64_t last = last_cpu_ns_.load(std::memory_order_acquire);
  if (last >= 0 || !thread_.joinable()) {
    return {std::max<std::int64_t>(last, 0)};
  }
  return sys::thread_cpu(const_cast<std::thread&>(thread_).native_handle());
}

// ---- the loop --------------------------------------------------------------------------------

void Worker::run() {
  sys::name_this_thread(fmt::format("tutti-io-{}", config_.transport.worker));
  turn_began_at_ = clock_.mono();
  while (!stopping_) {
    wait_for_events();
    take_orders();
    if (const base::Instant wake_at = transport_->next_wake(); wake_at != base::kFarFuture) {
      const base::Instant now = clock_.mono();
      if (wake_at <= now) {
        transport_->on_wake(now);
      }
    }
    go_on_skipping();
    fire();
    if (results_ > 0 && recorder_.size() == 0) {
      results_ = 0;  // the session was awake for something else, and has them
    }
    if (turn_began_at_ >= ring_at()) {
      noted_ = false;
      results_ = 0;
      rung_at_ = turn_began_at_;
      session_bell_.ring();
    }
  }
  last_cpu_ns_.store(sys::thread_cpu().ns, std::memory_order_release);
  session_bell_.ring();
}

void Worker::end_turn(base::Instant now) {
  const base::Duration turn = now - turn_began_at_;
  gauges_.turn.add(turn);
  if (turn > kStall) {
    gauges_.stalls.add();
  }
  gauges_.connections.set(transport_->open_connections());
}

void Worker::wait_for_events() {
  base::Instant next = std::min(next_due(), transport_->next_wake());
  base::Instant now = clock_.mono();
  end_turn(now);
  if (!skips_.empty()) {
    next = std::min(next, now + kRingGap);  // by then the session has taken records
  }
  const base::Instant wake_by = std::min(next, now + kSleepMax);
  int timeout_ms = static_cast<int>(kSleepMax.ns / 1'000'000);
  if (next <= now + kSpin || orders_.size() > 0) {
    timeout_ms = 0;  // too near for a timer, which wakes up late by about as much
  } else if (const base::Instant wake = std::min(next, ring_at()); wake != base::kFarFuture) {
    timer_.set_at_latest(wake);
  }
  const auto events = poller_.wait(timeout_ms);
  const base::Instant woke_at = clock_.mono();
  turn_began_at_ = woke_at > wake_by + kWakeSlack ? std::max(wake_by, now) : woke_at;
  for (std::size_t at = 0; at < events.size(); at += kHandful) {
    if (next_due() <= (at == 0 ? woke_at : clock_.mono())) {
      fire();
    }
    hand_on(events.subspan(at, std::min(kHandful, events.size() - at)));
  }
}

// The worker's own descriptors out of a handful of events; the rest is the transport's.
void Worker::hand_on(std::span<const sys::Ready> events) {
  std::array<sys::Ready, kHandful> sockets;
  std::size_t count = 0;
  for (const auto& event : events) {
    if (event.fd == bell_.fd()) {
      bell_.quiet();
    } else if (event.fd == timer_.fd()) {
      timer_.quiet();
    } else {
      sockets[count++] = event;
    }
  }
  transport_->on_sockets({sockets.data(), count});
}

void Worker::take_orders() {
  if (orders_.size() == 0) {
    return;
  }
  Order order;
  for (std::size_t i = 0; i < kOrdersPerTurn && !stopping_ && orders_.pop(order); ++i) {
    obey(order);
  }
}

void Worker::obey(Order& order) {
  switch (order.kind) {
    case Order::Kind::kIssue:
      if (order.trajectory != nullptr) {
        TUTTI_CHECK(armed_ && order.phase == phase_);  // the engine sees to it
        book_.add(std::move(order.trajectory));
      } else {
        enqueue(Queued{order.command, order.phase});
      }
      break;
    case Order::Kind::kArm:
      arm(order);
      break;
    case Order::Kind::kRecall:
      recall(order);
      break;
    case Order::Kind::kAbort:
      abort(order);
      break;
    case Order::Kind::kWarm:
      warm_ticket_ = order.ticket;
      transport_->warm(*order.warm);
      break;
    case Order::Kind::kStop:
      abort(order);
      stopping_ = true;
      break;
  }
}

void Worker::arm(const Order& order) {
  if (!armed_ || order.phase != phase_) {
    TUTTI_CHECK(book_.empty());  // a session arms when all of the phase before has come back
    while (!ready_.empty()) {
      parked_.push_back(ready_.pop());
    }
    issued_ = 0;
    on_wire_ = 0;
    gauges_.phase.set(order.phase);
    gauges_.started.set(0);
    gauges_.done.set(0);
    gauges_.failed.set(0);
    gauges_.live.output_tokens.store(0, std::memory_order_relaxed);
  }
  armed_ = true;
  phase_ = order.phase;
  pacing_ = order.pacing;
  slots_ = order.slots;
  start_at_ = order.start_at;
  picker_.arm(pacing_, order.first_slot, order.slots);
  free_since_.clear();
  for (std::size_t i = issued_; i < slots_; ++i) {
    free_since_.push(start_at_);
  }
  // Commands of this phase that were parked when another one was armed meanwhile.
  const auto mine = std::stable_partition(parked_.begin(), parked_.end(),
                                          [this](const Queued& q) { return q.phase != phase_; });
  const std::vector<Queued> back(mine, parked_.end());
  parked_.erase(mine, parked_.end());
  for (const auto& queued : back) {
    enqueue(queued);
  }
}

void Worker::enqueue(const Queued& queued) {
  if (!armed_ || queued.phase != phase_) {
    parked_.push_back(queued);
    return;
  }
  ready_.push(queued);
}

void Worker::recall(const Order& order) {
  const std::uint32_t phase = order.phase;
  Note note;
  note.kind = Note::Kind::kRecalled;
  note.ticket = order.ticket;
  while (phase == phase_ && !ready_.empty()) {
    note.unstarted.emplace_back(phase, ready_.pop().command.seq);
  }
  std::erase_if(parked_, [&note, phase](const Queued& q) {
    if (q.phase == phase) {
      note.unstarted.emplace_back(q.phase, q.command.seq);
    }
    return q.phase == phase;
  });
  std::size_t never_begun = note.unstarted.size();
  std::size_t over = never_begun;
  if (phase == phase_) {
    recall_turns(note, never_begun, over);
  }
  tell(std::move(note), never_begun, over);
}

void Worker::abort(const Order& order) {
  const std::string& reason = *order.reason;
  Note note;
  note.kind = Note::Kind::kAborted;
  note.ticket = order.ticket;
  while (!ready_.empty()) {
    parked_.push_back(ready_.pop());
  }
  for (const auto& queued : parked_) {
    note.unstarted.emplace_back(queued.phase, queued.command.seq);
  }
  parked_.clear();
  std::size_t never_begun = note.unstarted.size();
  std::size_t over = never_begun;
  recall_turns(note, never_begun, over);
  drop_skips(note, over);
  while (!waiting_.empty()) {
    end_unsent(waiting_.pop(), wire::Failure::kCancelled, reason);
  }
  transport_->cancel_all(reason);
  tell(std::move(note), never_begun, over);
}

// The dealer counts what was dealt: commands, or whole trajectories.
void Worker::tell(Note&& note, std::size_t never_begun, std::size_t over) {
  gauges_.settled.add(never_begun);
  gauges_.finished.add(over);
  // A session that sends a thousand orders without one poll is a programmer's error.
  TUTTI_CHECK(notes_.push(std::move(note)));
  noted_ = true;
}

base::Instant Worker::ring_at() const {
  if (noted_ || results_ >= kManyResults) {
    return rung_at_ + kRingGap;
  }
  if (results_ == 0) {
    return base::kFarFuture;
  }
  const bool starving = !free_since_.empty() && ready_.empty() && !book_.anyone_waits();
  return starving || issued_ == 0 ? rung_at_ + kRingGapOfFew
                                  : first_result_at_ + record::kCompanyMax;
}

// ---- pacing ----------------------------------------------------------------------------------

// When the next queued command is due and may be taken up; kFarFuture while nothing can be.
base::Instant Worker::next_due() const {
  if (ready_.empty()) {
    return next_turn_due();
  }
  switch (pacing_) {
    case base::Pacing::kTimed:
      return start_at_ + ready_.front().command.due_offset;
    case base::Pacing::kBurst:
      return may_send(phase_) && waiting_.empty() ? start_at_ : base::kFarFuture;
    case base::Pacing::kClosedLoop:
      return free_since_.empty() ? base::kFarFuture : std::max(start_at_, free_since_.front());
  }
  return base::kFarFuture;
}

void Worker::fire() {
  send_waiting();
  // In handfuls: thousands of first requests must not keep replies waiting.
  for (std::size_t left = kHandful; left > 0; --left) {
    const base::Instant due_at = next_due();
    if (due_at == base::kFarFuture) {
      break;
    }
    const base::Instant now = clock_.mono();
    if (due_at > now) {
      break;
    }
    if (ready_.empty()) {
      issue_turn(due_at, now);
    } else {
      issue_next(due_at, now);
    }
  }
  transport_->flush();
}

void Worker::issue_next(base::Instant due_at, base::Instant now) {
  target::Query query;
  query.command = ready_.pop().command;
  query.phase = static_cast<std::uint16_t>(phase_);
  query.due_at = due_at;
  query.issued_at = now;
  if (pacing_ == base::Pacing::kClosedLoop) {
    free_since_.pop();
  }
  // The first queries of a closed loop are all due at the phase's start and fill its slots one
  // after the other: that is the load's shape, not this client's lateness.
  const bool fills = pacing_ == base::Pacing::kClosedLoop && due_at == start_at_;
  if (pacing_ != base::Pacing::kBurst && !fills) {
    gauges_.issue_lag.add(now - due_at);
  }
  issue(query, now);
}

void Worker::issue(const target::Query& query, base::Instant now) {
  ++issued_;
  gauges_.started.add();
  gauges_.in_flight.add();
  if (const auto defect = defect_of(query.command); !defect.empty()) {
    end_unsent(query, wire::Failure::kInternal, defect);
  } else if (waiting_.empty() && may_send(phase_)) {
    send(query, now);
  } else {
    waiting_.push(query);
  }
}

bool Worker::may_send(std::uint32_t phase) const {
  // A closed loop counted its slots when it issued.
  const bool slot_free =
      phase != phase_ || pacing_ == base::Pacing::kClosedLoop || on_wire_ < slots_;
  return slot_free && transport_->room() > 0;
}

void Worker::send_waiting() {
  while (!waiting_.empty() && may_send(waiting_.front().phase)) {
    send(waiting_.pop(), clock_.mono());
  }
}

void Worker::send(const target::Query& query, base::Instant now) {
  target::Query chosen = query;
  chosen.frontend = picker_.pick(query.command.seq, target::affinity_of(query));
  picker_.started(chosen.frontend);
  gauges_.frontends[chosen.frontend].started.add();
  gauges_.settled.add(query.conversation == nullptr ? 1 : 0);
  on_wire_ += chosen.phase == phase_ ? 1U : 0U;
  transport_->start(chosen, now);
}

// ---- results ---------------------------------------------------------------------------------

std::string_view Worker::defect_of(const base::IssueCommand& command) const {
  const data::BodySet& bodies = *config_.transport.bodies;
  if (command.sample >= bodies.rows()) {
    return "the command names a row that the body set does not have";
  }
  if (command.salted && bodies.row(command.sample).splice < 0) {
    return "the command wants a salt, but the row has no place for one";
  }
  return {};
}

void Worker::end_unsent(const target::Query& query, wire::Failure failure, std::string_view why) {
  *unsent_ = wire::Record{};
  unsent_->seq = query.command.seq;
  unsent_->sample = query.command.sample;
  unsent_->phase = query.phase;
  unsent_->worker = config_.transport.worker;
  unsent_->outcome =
      failure == wire::Failure::kCancelled ? wire::Outcome::kCancelled : wire::Outcome::kFailed;
  unsent_->failure = failure;
  unsent_->due_at = query.due_at;
  unsent_->issued_at = query.issued_at;
  unsent_->done_at = clock_.mono();
  unsent_->error_message.assign(why.substr(0, wire::kErrorTextMax));
  gauges_.settled.add(query.conversation == nullptr ? 1 : 0);
  close_out(unsent_);
}

void Worker::on_done(std::unique_ptr<wire::Record>& record) {
  picker_.ended(record->frontend);
  if (record->outcome != wire::Outcome::kCancelled) {
    picker_.judged(record->frontend, record->outcome == wire::Outcome::kOk);
  }
  FrontendCounts& frontend = gauges_.frontends[record->frontend];
  frontend.done.add();
  frontend.failed.add(record->outcome == wire::Outcome::kOk ? 0 : 1);
  on_wire_ -= record->phase == phase_ ? 1U : 0U;
  close_out(record);
}

// Common end of a sent and an unsent query: counted, its slot freed, its record handed over.
void Worker::close_out(std::unique_ptr<wire::Record>& record) {
  const bool ok = record->outcome == wire::Outcome::kOk;
  const base::Instant free_at = record->done_at;
  const bool mine = record->phase == phase_;
  Trajectory* const trajectory = mine ? book_.find(record->seq) : nullptr;
  if (mine) {
    gauges_.done.add();
    gauges_.failed.add(ok ? 0 : 1);
    --issued_;
  }
  gauges_.in_flight.set(gauges_.in_flight.get() - 1);
  if (trajectory != nullptr) {
    turn_ended(*trajectory, record);
    return;
  }
  hand_over(record);
  gauges_.finished.add();
  if (!mine) {
    return;
  }
  if (pacing_ == base::Pacing::kClosedLoop && issued_ + free_since_.size() < slots_) {
    free_since_.push(free_at);
  }
}

void Worker::hand_over(std::unique_ptr<wire::Record>& record) {
  if (results_++ == 0) {
    first_result_at_ = record->done_at;
  }
  recorder_.add(record);
}

void Worker::on_warmed(target::Warmed warmed) {
  Note note;
  note.kind = Note::Kind::kWarmed;
  note.ticket = warm_ticket_;
  note.warmed = std::move(warmed);
  tell(std::move(note), 0, 0);
}

}  // namespace tutti::drive
