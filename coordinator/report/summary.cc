#include "coordinator/report/summary.h"

namespace tutti::report {

Summary summarize(const Snapshot& snapshot, const LoadPatternFacts& pattern) {
  const Counters& counters = snapshot.counters;
  Summary out;
  out.n_issued = counters.tracked_issued;
  out.n_completed = counters.tracked_completed;
  out.n_failed = counters.tracked_failed;
  out.n_succeeded = out.n_completed - out.n_failed;
  out.n_dropped = out.n_issued - out.n_completed;
  if (counters.tracked_duration_ns > 0) {
    out.duration_ns = counters.tracked_duration_ns;
  }
  const bool legacy = pattern.type == "poisson" && pattern.use_legacy_qps_window &&
                      counters.legacy_window_ns > 0 && out.n_completed >= 2;
  std::optional<double> window_s;
  double completed = static_cast<double>(out.n_completed);
  if (legacy) {
    out.legacy_window_ns = counters.legacy_window_ns;
    window_s = static_cast<double>(counters.legacy_window_ns) / 1e9;
    completed -= 1;
  } else if (out.duration_ns) {
    window_s = static_cast<double>(*out.duration_ns) / 1e9;
  }
  const double tokens = stats::to_double(snapshot.osl.total);
  if (window_s) {
    out.qps = completed / *window_s;
    if (snapshot.osl.count > 0) {
      out.tps = tokens / *window_s;
    }
  }
  const double latency_s = stats::to_double(snapshot.latency.total) / 1e9;
  if (out.n_failed == 0 && snapshot.osl.count > 0 && latency_s > 0) {
    out.e2e_avg_interactivity = tokens / latency_s;
  }
  return out;
}

}  // namespace tutti::report
