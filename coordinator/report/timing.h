#pragma once

// Timing: what a stream's stamps say beyond the reference's series: the gaps between content events
// (ITL), TTFT without connection set-up, and what set-up took. Performance phases only, failures
// included, as in the reference's TTFT. Exact, but for ITL's order statistics when the gaps were
// counted by the agents instead of kept. Pure.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/stats/live_histogram.h"
#include "common/stats/percentile.h"
#include "common/stats/series.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/fold.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

// Gaps between consecutive content events of one reply, all replies' together; ns.
struct Itl {
  bool exact = false;         // every gap was kept (stream_all_chunks); else from a histogram
  std::uint64_t count = 0;    // Σ (content events − 1), exact
  std::int64_t total_ns = 0;  // Σ (last token − first token), exact
  // How many gaps the numbers below stand on. Another number than `count` is a defect.
  std::uint64_t counted = 0;
  double min_ns = 0;
  double max_ns = 0;
  std::array<double, stats::kPercentileGrid.size()> percentiles{};
  std::vector<stats::LiveHistogram::Cell> cells;  // of the histogram, those hit

  double mean_ns() const {
    return count == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(count);
  }
  double median_ns() const { return percentiles[7]; }
  // Of min, max and every percentile, at most (relative; values above one hour count as one hour).
  double relative_error() const { return exact ? 0 : stats::LiveHistogram::kRelativeError; }
};

// One part of setting up a connection, over the queries that did it; µs.
struct SetupTail {
  std::uint64_t count = 0;
  std::uint32_t min_us = 0;
  std::uint32_t p50_us = 0;
  std::uint32_t p99_us = 0;
  std::uint32_t max_us = 0;
};

struct Timing {
  Itl itl;
  stats::SeriesStat ttft_from_sent;  // first token − sent: without waiting and connecting; ns
  std::uint64_t sent = 0;            // queries whose request went out …
  std::uint64_t first_on_connection = 0;  // … as the first on it: opened for them, or warm
  std::optional<SetupTail> dns;           // nothing: no query did it, or none took a microsecond
  std::optional<SetupTail> tcp;
  std::optional<SetupTail> tls;
};

// `snapshot` is fold_ledger()'s of the same run.
Timing take_timing(const RunFacts& facts, const ledger::Ledger& ledger, const Snapshot& snapshot);

// The "Timing" section of report.txt.
void put_timing(std::string& out, const Timing& timing);

}  // namespace tutti::report
