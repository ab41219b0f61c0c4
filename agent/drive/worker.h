#pragma once

// Worker: one I/O thread of an agent. One epoll loop, one transport, its share of the slots, its
// queue of commands, its record ring. It shares nothing with other workers; the session thread
// reaches it through a ring of orders and hears from it through rings of records and notes. Between
// a command's due time and its record: no lock, no allocation of ours, no log, no exception.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/drive/due_queue.h"
#include "agent/drive/fifo.h"
#include "agent/drive/gauges.h"
#include "agent/drive/trajectory_book.h"
#include "agent/record/recorder.h"
#include "agent/target/frontend_picker.h"
#include "agent/target/transport.h"
#include "common/base/ring.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"
#include "common/sys/fd.h"
#include "common/sys/poller.h"
#include "common/sys/timer.h"

namespace tutti::drive {

// Session → worker, strictly in order.
struct Order {
  enum class Kind : std::uint8_t { kIssue, kArm, kRecall, kAbort, kWarm, kStop };
  Kind kind = Kind::kIssue;
  base::Pacing pacing = base::Pacing::kBurst;  // kArm
  std::uint32_t phase = 0;                     // kIssue, kArm, kRecall
  std::uint32_t slots = 0;                     // kArm
  std::uint64_t first_slot = 0;                // kArm: slots of the workers before this one
  std::uint64_t ticket = 0;                    // comes back on the note that answers
  base::IssueCommand command{};                // kIssue
  base::Instant start_at{};                    // kArm
  std::unique_ptr<Trajectory> trajectory;      // kIssue, instead of `command`
  std::unique_ptr<std::string> reason;         // kAbort, kStop
  std::unique_ptr<target::WarmPlan> warm;      // kWarm
};

// Worker → session: the answer to a recall, an abort (also made by kStop) or a warm-up.
struct Note {
  enum class Kind : std::uint8_t { kRecalled, kAborted, kWarmed };
  Kind kind = Kind::kRecalled;
  std::uint64_t ticket = 0;
  std::vector<std::pair<std::uint32_t, base::Seq>> unstarted;  // (phase, seq)
  target::Warmed warmed{};
};

// Wakes the session once for any number of results between two of its polls.
class SessionBell {
 public:
  int fd() const { return bell_.fd(); }
  void ring() {
    if (!rung_.exchange(true, std::memory_order_acq_rel)) {
      bell_.ring();
    }
  }
  // Session, before it looks at the rings.
  void quiet() {
    bell_.quiet();
    rung_.exchange(false, std::memory_order_acq_rel);
  }

 private:
  sys::Doorbell bell_;
  std::atomic<bool> rung_{false};
};

struct WorkerConfig {
  target::TransportConfig transport{};
  std::size_t queue_max = 1;
  std::size_t record_ring = 1;
};

class Worker final : private target::ExchangeSink {
 public:
  Worker(WorkerConfig config, const base::Clock& clock, SessionBell& session_bell);
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // ---- session thread ----
  // False: no thread could be made.
  bool begin();
  // False: the ring is full, the order was not taken.
  bool order(Order&& order) { return orders_.push(std::move(order)); }
  void ring() { bell_.ring(); }
  // Returns once the thread has ended; a kStop order must be on its way.
  void join();
  record::Recorder& recorder() { return recorder_; }
  bool take_note(Note& note) { return notes_.pop(note); }
  WorkerGauges& gauges() { return gauges_; }
  const record::Recorder& recorder() const { return recorder_; }
  const WorkerGauges& gauges() const { return gauges_; }
  // CPU time of the thread; the last value once it has ended.
  base::Duration cpu() const;

 private:
  void on_done(std::unique_ptr<wire::Record>& record) override;
  void on_warmed(target::Warmed warmed) override;

  void run();
  void end_turn(base::Instant now);
  void wait_for_events();
  void hand_on(std::span<const sys::Ready> events);
  void take_orders();
  void obey(Order& order);
  void arm(const Order& order);
  void enqueue(const Queued& queued);
  void recall(const Order& order);
  void abort(const Order& order);
  void tell(Note&& note, std::size_t never_begun, std::size_t over);
  // Turns (worker_turns.cc).
  base::Instant next_turn_due() const;
  void issue_turn(base::Instant due_at, base::Instant now);
  void turn_ended(Trajectory& trajectory, std::unique_ptr<wire::Record>& record);
  void end_trajectory(const Trajectory& trajectory, base::Instant at);
  void go_on_skipping();
  void skip(const base::IssueCommand& turn, std::string_view why, base::Instant at);
  void drop_skips(Note& note, std::size_t& over);
  void recall_turns(Note& note, std::size_t& never_begun, std::size_t& over);
  base::Instant ring_at() const;  // kFarFuture: nothing to tell

  base::Instant next_due() const;
  void fire();
  void issue_next(base::Instant due_at, base::Instant now);
  void issue(const target::Query& query, base::Instant now);
  void send_waiting();
  bool may_send(std::uint32_t phase) const;
  void send(const target::Query& query, base::Instant now);
  std::string_view defect_of(const base::IssueCommand& command) const;
  void end_unsent(const target::Query& query, wire::Failure failure, std::string_view why);
  void close_out(std::unique_ptr<wire::Record>& record);
  void hand_over(std::unique_ptr<wire::Record>& record);

  const WorkerConfig config_;
  const base::Clock& clock_;
  SessionBell& session_bell_;

  base::SpscRing<Order> orders_;
  base::SpscRing<Note> notes_;
  record::Recorder recorder_;
  WorkerGauges gauges_;
  sys::Doorbell bell_;
  std::thread thread_;
  std::atomic<std::int64_t> last_cpu_ns_{-1};

  // ---- worker thread ----
  sys::Poller poller_;
  sys::AbsoluteTimer timer_;
  std::unique_ptr<target::Transport> transport_;
  target::FrontendPicker picker_;
  std::uint64_t warm_ticket_ = 0;
  bool armed_ = false;
  bool stopping_ = false;
  bool noted_ = false;               // a note lies in its ring that the session was not rung for
  std::uint32_t results_ = 0;        // records likewise …
  base::Instant first_result_at_{};  // … and when the first of them was done
  base::Instant rung_at_{};
  std::uint32_t phase_ = 0;
  base::Pacing pacing_ = base::Pacing::kBurst;
  std::size_t slots_ = 0;
  base::Instant start_at_{};
  base::Instant turn_began_at_{};
  std::size_t issued_ = 0;          // of the armed phase, not ended: waiting or on the wire
  std::size_t on_wire_ = 0;         // of the armed phase
  DueQueue ready_;                  // all of phase_
  TrajectoryBook book_;             // all of phase_
  std::vector<Queued> parked_;      // of phases that are not armed any more
  Fifo<target::Query> waiting_;     // issued, no room on the wire yet
  Fifo<base::Instant> free_since_;  // closed loop: when each free slot became free, oldest first
  std::unique_ptr<wire::Record> unsent_ = std::make_unique<wire::Record>();
  struct Skips {  // turns after a failed one, whose records are still to be made
    Trajectory* trajectory = nullptr;
    std::size_t next = 0;
    std::string why;
    base::Instant at{};
  };
  std::vector<Skips> skips_;
  std::unique_ptr<wire::Record> skipped_ = std::make_unique<wire::Record>();
};

}  // namespace tutti::drive
