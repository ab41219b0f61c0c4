#pragma once

// judge(): from the counts of a finished (or stopped) run to valid or invalid, with reasons and the
// exit code. Every reason is one sentence that names the phase or agent and the number. Two kinds:
// a *failure* of the run (records lost, agents lost, a watchdog, nothing succeeded) also ends the
// process with kExecution; a *flaw* (some requests failed) makes the run invalid as a rehearsal of
// a submission point, but the exit code stays 0 as with the reference client. Pure; no owner.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"

namespace tutti::verdict {

struct PhaseCount {
  std::string name;
  base::PhaseKind kind = base::PhaseKind::kPerformance;
  std::uint64_t issued = 0;
  std::uint64_t completed = 0;  // records here, failed ones included
  std::uint64_t failed = 0;
  std::uint64_t missing = 0;  // issued, but no record
  std::vector<base::Seq> missing_examples = {};
  std::uint64_t doubled = 0;       // second records for a query
  std::uint64_t never_issued = 0;  // records nobody asked for
};

struct AgentCount {
  std::string name;
  std::optional<base::Duration> lost_after;  // since the run's start; nothing: it stayed
  std::uint64_t records_lost = 0;            // the recorder was full
  base::Duration clock_error{};
  double cpu_busiest_thread = 0;  // 0…1 of one core, worst interval
};

struct RunCount {
  bool interrupted = false;    // a person or the system asked us to stop
  bool stopped_early = false;  // for any cause: not all that was planned was done
  std::vector<std::string>
      watchdogs;  // each a sentence: which one, after how long, what was in flight
  std::vector<PhaseCount> phases;
  std::vector<AgentCount> agents;
  base::Duration issue_lag_p99{};  // issued − due over the performance phase
  std::optional<base::Duration> ttft_p50;
};

struct Rules {
  bool failed_requests_invalidate = true;
  // Beyond these a warning says the client may have shaped the numbers; it never decides validity.
  base::Duration issue_lag_p99_max = base::Duration::millis(1);
  double issue_lag_share_of_ttft_max = 0.01;  // of the TTFT p50; the larger of both limits counts
  double cpu_busiest_thread_max = 0.8;
  base::Duration clock_error_max = base::Duration::millis(1);
};

enum class Weight : std::uint8_t { kFailure, kFlaw };

struct Reason {
  Weight weight = Weight::kFailure;
  std::string text;
};

struct Verdict {
  bool valid = true;
  std::vector<Reason> reasons;        // why it is not valid; empty when it is
  std::vector<std::string> warnings;  // what a reader of the numbers should know
  base::ExitCode exit_code = base::ExitCode::kOk;
};

Verdict judge(const RunCount& run, const Rules& rules);

}  // namespace tutti::verdict
