#pragma once

// Summary: the headline numbers of a run, computed from its snapshot and its configuration: rates
// over the right window, what succeeded, what was dropped. Formulas: docs/measuring.md. Pure.

#include <cstdint>
#include <optional>

#include "coordinator/report/fold.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

struct Summary {
  std::int64_t n_issued = 0;
  std::int64_t n_completed = 0;  // failures included
  std::int64_t n_failed = 0;
  std::int64_t n_succeeded = 0;                  // completed − failed
  std::int64_t n_dropped = 0;                    // issued − completed
  std::optional<std::int64_t> duration_ns;       // tracking start → last tracked completion
  std::optional<std::int64_t> legacy_window_ns;  // there only when qps and tps are over it
  std::optional<double> qps;                     // completed per second
  std::optional<double> tps;  // output tokens per second; nothing when no token was counted
  // Σ output tokens / Σ latency in seconds; nothing once a request failed.
  std::optional<double> e2e_avg_interactivity;
};

// With poisson, the legacy window on, and at least two completions: (C − 1) / W and O / W, W from
// the first issue to the completion of the last issued one that completed. Else C / D and O / D
// over the tracked duration D. C counts failures, O does not.
Summary summarize(const Snapshot& snapshot, const LoadPatternFacts& pattern);

}  // namespace tutti::report
