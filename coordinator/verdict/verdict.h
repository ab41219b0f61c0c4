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
#include "coordinator/verdict/client_health.h"

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
  std::uint64_t unspooled_batches = 0;       // of whose records its disk had no copy
};

// A frontend with failures that were not the run's own end, or from which nothing came at all.
struct FrontendCount {
  std::string url;
  std::uint64_t completed = 0;     // of the performance phase, failed ones included
  std::uint64_t failed = 0;        // 0: nothing had ended before the run ended it
  base::Duration first_failure{};  // since the run's start, as the others
  base::Duration last_failure{};
  std::optional<base::Duration> last_success;  // nothing: it never succeeded
};

struct RunCount {
  bool interrupted = false;    // a person or the system asked us to stop
  bool stopped_early = false;  // for any cause: not all that was planned was done
  std::vector<std::string>
      watchdogs;  // each a sentence: which one, after how long, what was in flight
  std::vector<PhaseCount> phases;
  std::vector<AgentCount> agents;
  std::vector<FrontendCount> frontends;
};

struct Rules {
  bool failed_requests_invalidate = true;
  ClientLimits client;  // for judge_client(); they never decide validity
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
