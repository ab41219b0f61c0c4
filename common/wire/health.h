#pragma once

// Health: how an agent fared in one interval, from its arming or the last full second of its phase
// to the next one, or to the end of its drain. Rides up on Progress. Percentiles and largest values
// of durations come from histograms with 1 % cells; a percentile of nothing is 0. Plain value.

#include <cstdint>

#include "common/base/time.h"

namespace tutti::wire {

struct Health {
  // issued_at − due_at where a due time is a promise: not in a burst, and not for the queries that
  // fill a closed loop's slots at the phase's start.
  base::Duration issue_lag_p50{};
  base::Duration issue_lag_p99{};
  base::Duration turn_max{};      // longest turn of any worker's loop; a late wake-up counts in
  double cpu_busiest_worker = 0;  // busiest worker: 0..1 of one core
  std::uint32_t open_fds = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t records_lost = 0;       // ever: ring full; > 0 makes the run INVALID
  std::uint32_t ring_fill_percent = 0;  // fullest record ring at its fullest
  std::uint64_t unsent_batches = 0;     // not acknowledged by the coordinator
  // Instant of the read − kernel's receive stamp; 0 where the way has no stamps.
  base::Duration read_lag_p50{};
  base::Duration read_lag_p99{};
  std::uint64_t reads_unstamped = 0;  // ever: should have had a kernel stamp and had no usable one
  // The interval, on the agent's clock. `to` not set: this Progress closes none, and only
  // records_lost and unsent_batches mean something.
  base::Instant from{};
  base::Instant to{};
  base::Duration issue_lag_max{};
  base::Duration read_lag_max{};
  base::Duration turn_p50{};  // loop turns of all workers
  base::Duration turn_p99{};
  std::uint64_t stalls = 0;            // turns longer than 1 ms
  base::Duration session_turn_max{};   // the session thread's loop, likewise
  double cpu_session = 0;              // the session thread: 0..1 of one core
  std::uint32_t connections = 0;       // open to frontends; each takes a local port
  std::uint64_t connect_failures = 0;  // no port, descriptor or memory here, in the interval
  std::uint64_t fd_limit = 0;
  std::uint64_t spool_bytes = 0;        // on disk
  std::uint64_t unspooled_batches = 0;  // ever: went to the coordinator without a copy on disk
  // Of the whole network namespace: TCP segments in the interval, sockets now.
  std::uint64_t retransmits = 0;
  std::uint64_t segments_sent = 0;
  std::uint32_t sockets_in_use = 0;
  std::uint32_t sockets_time_wait = 0;
  std::uint64_t issue_lag_count = 0;  // values behind issue_lag_…
  // Counting of replies' tokens: the threads' CPU together, in cores; the most that waited for them
  // in the interval; ever counted, and ever left to the coordinator; and how long Drained has
  // waited for nothing else.
  double cpu_counting = 0;
  std::uint64_t counting_queued = 0;
  std::uint64_t counting_queued_bytes = 0;
  std::uint64_t replies_counted = 0;
  std::uint64_t replies_uncounted = 0;
  base::Duration counting_drain{};

  friend bool operator==(const Health&, const Health&) = default;
};

}  // namespace tutti::wire
