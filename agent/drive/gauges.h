#pragma once

// What a worker shows of itself while it runs: counters with one writer (the worker) and relaxed
// reads by the session. They are gauges: each is right, but two of them may be of different
// moments.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/target/transport.h"
#include "common/base/time.h"
#include "common/stats/shared_histogram.h"

namespace tutti::drive {

// A counter that one thread advances.
class Count {
 public:
  void add(std::uint64_t n = 1) { set(get() + n); }
  void set(std::uint64_t n) { value_.store(n, std::memory_order_release); }
  std::uint64_t get() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// A turn of a loop beyond this is counted as a stall.
inline constexpr base::Duration kStall = base::Duration::millis(1);

struct FrontendCounts {
  Count started;
  Count done;    // ended, well or not
  Count failed;  // of these
};

struct WorkerGauges {
  explicit WorkerGauges(std::size_t frontend_count) : frontends(frontend_count) {}

  Count settled;   // commands that left the queues: on the wire, ended here, or returned unstarted
  Count finished;  // commands that came back in any way
  Count phase;     // the armed one; the next three count in it, from 0
  Count started;
  Count done;       // ended, well or not
  Count failed;     // of these
  Count in_flight;  // issued and not ended, of any phase
  // issued_at − due_at, where a due time is a promise: not in a burst, and not for the queries that
  // fill a closed loop's slots at the phase's start.
  stats::SharedHistogram issue_lag;
  stats::SharedHistogram turn;  // of the loop: from when it woke, or should have, to its next wait
  Count stalls;                 // turns longer than kStall
  Count connections;            // open to frontends
  target::LiveGauges live;
  std::vector<FrontendCounts> frontends;
};

}  // namespace tutti::drive
