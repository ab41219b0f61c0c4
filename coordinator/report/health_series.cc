#include "coordinator/report/health_series.h"

#include <algorithm>

namespace tutti::report {

std::size_t HealthSeries::rows_max_of(std::size_t agents) {
  return std::clamp(kRowsAll / std::max<std::size_t>(1, agents), kRowsMin, kRowsMax);
}

verdict::HealthRow worse_of(const verdict::HealthRow& a, const verdict::HealthRow& b) {
  verdict::HealthRow out = a;
  out.in_flight = std::max(a.in_flight, b.in_flight);
  out.intervals = a.intervals + b.intervals;
  out.beyond = verdict::times_beyond(a, {});
  const verdict::TimesBeyond more = verdict::times_beyond(b, {});
  for (std::size_t i = 0; i < more.size(); ++i) {
    out.beyond[i] = out.beyond[i] + more[i];
  }
  wire::Health& h = out.health;
  const wire::Health& other = b.health;
  const auto worst = [&h, &other](auto wire::Health::*field) {
    h.*field = std::max(h.*field, other.*field);
  };
  worst(&wire::Health::to);
  worst(&wire::Health::issue_lag_p50);
  worst(&wire::Health::issue_lag_p99);
  worst(&wire::Health::issue_lag_max);
  worst(&wire::Health::read_lag_p50);
  worst(&wire::Health::read_lag_p99);
  worst(&wire::Health::read_lag_max);
  worst(&wire::Health::turn_p50);
  worst(&wire::Health::turn_p99);
  worst(&wire::Health::turn_max);
  worst(&wire::Health::session_turn_max);
  worst(&wire::Health::cpu_busiest_worker);
  worst(&wire::Health::cpu_session);
  worst(&wire::Health::connections);
  worst(&wire::Health::open_fds);
  worst(&wire::Health::fd_limit);
  worst(&wire::Health::rss_bytes);
  worst(&wire::Health::records_lost);
  worst(&wire::Health::ring_fill_percent);
  worst(&wire::Health::unsent_batches);
  worst(&wire::Health::spool_bytes);
  worst(&wire::Health::unspooled_batches);
  worst(&wire::Health::reads_unstamped);
  worst(&wire::Health::sockets_in_use);
  worst(&wire::Health::sockets_time_wait);
  worst(&wire::Health::cpu_counting);
  worst(&wire::Health::counting_queued);
  worst(&wire::Health::counting_queued_bytes);
  worst(&wire::Health::replies_counted);
  worst(&wire::Health::replies_uncounted);
  worst(&wire::Health::counting_drain);
  h.issue_lag_count += other.issue_lag_count;
  h.stalls += other.stalls;
  h.connect_failures += other.connect_failures;
  h.retransmits += other.retransmits;
  h.segments_sent += other.segments_sent;
  return out;
}

void HealthSeries::add(const verdict::HealthRow& row) {
  if (!row.health.to.is_set() || row.health.to < row.health.from) {
    return;
  }
  if (!rows_.empty() && rows_.back().intervals < per_row_ && rows_.back().phase == row.phase) {
    rows_.back() = worse_of(rows_.back(), row);
    return;
  }
  rows_.push_back(row);
  if (rows_.size() > rows_max_) {
    halve();
  }
}

void HealthSeries::halve() {
  per_row_ *= 2;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool joins = kept > 0 && rows_[kept - 1].phase == rows_[i].phase &&
                       rows_[kept - 1].intervals + rows_[i].intervals <= per_row_;
    if (joins) {
      rows_[kept - 1] = worse_of(rows_[kept - 1], rows_[i]);
    } else {
      rows_[kept] = rows_[i];
      ++kept;
    }
  }
  rows_.resize(kept);
}

}  // namespace tutti::report
