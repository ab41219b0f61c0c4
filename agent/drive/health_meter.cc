#include "agent/drive/health_meter.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/stats/live_histogram.h"

namespace tutti::drive {
namespace {

base::Duration percentile(const stats::LiveHistogram& histogram, double percent) {
  return {static_cast<std::int64_t>(histogram.percentile(percent).value_or(0))};
}

}  // namespace

HealthMeter::HealthMeter(std::size_t workers, base::Instant now) : from_(now) {
  Seen none;
  none.issue_lag.assign(stats::LiveHistogram::kCells, 0);
  none.read_lag = none.issue_lag;
  none.turn = none.issue_lag;
  seen_.assign(workers, none);
}

void HealthMeter::begin(std::span<const WorkerReading> workers, base::Instant now) {
  close(workers, now);
}

wire::Health HealthMeter::close(std::span<const WorkerReading> workers, base::Instant now) {
  TUTTI_CHECK(workers.size() == seen_.size());
  wire::Health out;
  out.from = from_;
  out.to = now;
  from_ = now;
  const base::Duration interval = out.to - out.from;
  stats::LiveHistogram issue_lag;
  stats::LiveHistogram read_lag;
  stats::LiveHistogram turn;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const WorkerReading& worker = workers[i];
    Seen& seen = seen_[i];
    worker.issue_lag->collect(seen.issue_lag, issue_lag);
    worker.read_lag->collect(seen.read_lag, read_lag);
    worker.turn->collect(seen.turn, turn);
    if (interval.ns > 0) {
      out.cpu_busiest_worker = std::max(
          out.cpu_busiest_worker, (worker.cpu - seen.cpu).to_seconds() / interval.to_seconds());
    }
    out.stalls += worker.stalls - seen.stalls;
    out.connect_failures += worker.connect_failures - seen.connect_failures;
    out.reads_unstamped += worker.reads_unstamped;
    out.records_lost += worker.records_lost;
    out.connections += worker.connections;
    out.ring_fill_percent = std::max(out.ring_fill_percent, worker.ring_fill_percent);
    seen.cpu = worker.cpu;
    seen.stalls = worker.stalls;
    seen.connect_failures = worker.connect_failures;
  }
  out.issue_lag_count = issue_lag.count();
  out.issue_lag_p50 = percentile(issue_lag, 50);
  out.issue_lag_p99 = percentile(issue_lag, 99);
  out.issue_lag_max = percentile(issue_lag, 100);
  out.read_lag_p50 = percentile(read_lag, 50);
  out.read_lag_p99 = percentile(read_lag, 99);
  out.read_lag_max = percentile(read_lag, 100);
  out.turn_p50 = percentile(turn, 50);
  out.turn_p99 = percentile(turn, 99);
  out.turn_max = percentile(turn, 100);
  return out;
}

}  // namespace tutti::drive
