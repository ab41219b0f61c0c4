#pragma once

// HealthMeter: from counters that only grow to what happened in one interval. Each close() answers
// for the time since begin() or the last close(); begin() drops what came before it. Percentiles
// are over the values of all workers, the CPU share is the busiest worker's. Pure: counters and
// `now` are arguments. Owned by the session thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/time.h"
#include "common/stats/shared_histogram.h"
#include "common/wire/messages.h"

namespace tutti::drive {

// One worker's counters at one moment.
struct WorkerReading {
  const stats::SharedHistogram* issue_lag = nullptr;
  const stats::SharedHistogram* read_lag = nullptr;
  const stats::SharedHistogram* turn = nullptr;
  base::Duration cpu{};                 // of its thread, ever
  std::uint64_t stalls = 0;             // ever
  std::uint64_t connect_failures = 0;   // ever
  std::uint64_t reads_unstamped = 0;    // ever
  std::uint64_t records_lost = 0;       // ever
  std::uint32_t connections = 0;        // now
  std::uint32_t ring_fill_percent = 0;  // at its fullest since the last reading
};

class HealthMeter {
 public:
  HealthMeter(std::size_t workers, base::Instant now);

  // As many readings as workers, in the same order each time.
  void begin(std::span<const WorkerReading> workers, base::Instant now);
  // Leaves alone what is not the workers': the process, the session thread, the host.
  wire::Health close(std::span<const WorkerReading> workers, base::Instant now);

 private:
  struct Seen {
    std::vector<std::uint32_t> issue_lag;
    std::vector<std::uint32_t> read_lag;
    std::vector<std::uint32_t> turn;
    base::Duration cpu{};
    std::uint64_t stalls = 0;
    std::uint64_t connect_failures = 0;
  };

  std::vector<Seen> seen_;
  base::Instant from_{};
};

}  // namespace tutti::drive
