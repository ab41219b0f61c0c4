#pragma once

// Report: everything computed about a finished or stopped run, and its renderings. make_report()
// does the arithmetic; the rest turns one Report into the texts of the run folder. Forms that the
// reference client has are the reference's, field for field; what we add stands after them. Pure;
// no owner.

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "coordinator/accuracy/results.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/breakdown.h"
#include "coordinator/report/fold.h"
#include "coordinator/report/row_tokens.h"
#include "coordinator/report/run_facts.h"
#include "coordinator/report/summary.h"
#include "coordinator/report/timing.h"
#include "coordinator/verdict/verdict.h"

namespace tutti::report {

// Says what a run of this program is not. Stands in every report and summary.
inline constexpr const char* kRehearsal =
    "rehearsal — not produced by the MLCommons reference client";

struct Report {
  RunFacts facts;
  Snapshot snapshot;
  Summary summary;
  Breakdown breakdown;
  Timing timing;
  verdict::RunCount count;
  verdict::Verdict verdict;
  verdict::ClientLimits client_limits;
  verdict::ClientVerdict client;
  std::vector<ledger::ClockMap> clocks;  // index = agent
  accuracy::Entries accuracy;            // one for each data set that is scored; the mains fill it
  std::string turn_scores;               // scores.json; empty: no turns were scored
  std::optional<TokenCounts> tokens;     // without its rows
  std::uint64_t repeated_batches = 0;    // came twice and were stored once: no defect

  bool has_performance_phase() const;
  // What told the token numbers: "tokenizer", "usage" or, when nothing did, "none".
  const char* token_source() const;
};

// `counts`: a tokenizer's, when facts.config.token_source says so.
base::Result<Report> make_report(const RunFacts& facts, const ledger::Ledger& ledger,
                                 const verdict::Rules& rules, const TokenCounts* counts = nullptr);

// metrics/final_snapshot.json
std::string snapshot_json(const Snapshot& snapshot);
// One series as result_summary.json has it.
std::string series_json(const stats::SeriesStat& stat);
// performance/result_summary.json. test_started_at is unix time in nanoseconds.
std::string result_summary_json(const Report& report);
// report.txt
std::string report_text(const Report& report);
// The first part of it, for the terminal.
std::string console_text(const Report& report);

}  // namespace tutti::report
