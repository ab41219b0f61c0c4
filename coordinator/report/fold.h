#pragma once

// Fold: rows of queries → counters and series → Snapshot, the one place where "who counts" is
// decided for a finished run (docs/measuring.md). The production path makes rows from the ledger,
// the conformance path from an event file; both end here. No result depends on the order of rows.
// Pure; one owner.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "common/stats/series.h"
#include "common/wire/record.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

// One query. Instants of one row and of the tracking blocks are on one clock.
struct Row {
  bool tracked = false;
  std::uint32_t block = 0;  // tracking block it was issued in; see Fold::begin_tracking
  base::Instant issued_at{};
  base::Instant first_token_at{};  // not set: no chunk came
  base::Instant completed_at{};    // not set: never ended (or its end is not published: warm-up)
  std::uint32_t errors = 0;        // > 0: failed
  wire::FinishReason finish_reason = wire::FinishReason::kNone;
  std::int64_t prompt_tokens = -1;  // -1: not known
  std::int64_t output_tokens = -1;
  std::int64_t tokens_after_first = -1;          // TPOT's divisor; ≤ 0: no TPOT
  std::span<const base::Instant> chunk_at = {};  // content chunks after the first
};

struct Counters {
  std::int64_t total_issued = 0;
  std::int64_t total_completed = 0;
  std::int64_t total_failed = 0;
  std::int64_t tracked_issued = 0;
  std::int64_t tracked_completed = 0;
  std::int64_t tracked_failed = 0;
  std::int64_t finish_stop = 0;
  std::int64_t finish_length = 0;
  std::int64_t finish_tool_calls = 0;
  std::int64_t finish_content_filter = 0;
  std::int64_t finish_function_call = 0;
  std::int64_t finish_other = 0;
  std::int64_t tracked_duration_ns = 0;
  std::int64_t legacy_window_ns = 0;
  std::int64_t total_duration_ns = 0;
};

// The counters and final statistics of a run; rendered as metrics/final_snapshot.json.
struct Snapshot {
  std::uint64_t number = 1;  // of this snapshot; a run has one
  base::Instant taken_at{};
  RunState state = RunState::kComplete;
  std::uint64_t pending = 0;  // token counts still to come
  bool streaming = true;      // without it the last three series do not exist
  Counters counters;
  stats::SeriesStat latency;  // ns, failures included
  stats::SeriesStat isl;      // tokens
  stats::SeriesStat osl;
  stats::SeriesStat ttft;         // ns
  stats::SeriesStat chunk_delta;  // ns
  stats::SeriesStat tpot;         // ns per token, float

  bool complete() const { return state == RunState::kComplete && pending == 0; }
};

class Fold {
 public:
  Fold(base::Instant session_started_at, bool streaming)
      : started_at_(session_started_at), streaming_(streaming) {}

  // Opens the next tracking block and returns its number, from 0. Its duration runs from `at`, the
  // start *event*, to the last completion of a row issued in it.
  std::uint32_t begin_tracking(base::Instant at);
  void add(const Row& row);
  // Issued, but nothing else is known of it: no record came.
  void add_lost(bool tracked, std::uint64_t count);
  // Ends and errors of queries no row is known of (event files only).
  void add_stray_completion(base::Instant at);
  void add_stray_error(base::Instant at);
  // Any event's stamp counts towards the total duration.
  void see(base::Instant at);

  // Early-stopping estimates are made of complete runs only. Ends the fold's use.
  Snapshot finish(RunState state, bool early_stopping, base::Instant now);

 private:
  struct Block {
    base::Instant start_at{};
    base::Instant last_completed_at{};
  };
  void add_tracked(const Row& row);
  void count_finish(wire::FinishReason reason);

  base::Instant started_at_;
  bool streaming_;
  Counters counters_;
  std::vector<Block> blocks_;
  base::Instant first_issued_at_{};       // tracked
  base::Instant last_of_completed_at_{};  // largest tracked issue instant among the completed …
  base::Instant its_completion_at_{};     // … and when that one completed
  stats::IntSeries latency_;
  stats::IntSeries isl_;
  stats::IntSeries osl_;
  stats::IntSeries ttft_;
  stats::IntSeries chunk_delta_;
  stats::FloatSeries tpot_;
};

}  // namespace tutti::report
