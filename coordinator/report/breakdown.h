#pragma once

// Breakdown: the same records seen by frontend, by agent and by cause of failure, and the client's
// own lag; what the reference's report does not have. Performance phase only, failures of all
// phases. Exact, from all values. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/result.h"
#include "common/stats/series.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/row_tokens.h"
#include "coordinator/report/run_facts.h"
#include "coordinator/verdict/verdict.h"

namespace tutti::report {

// Order statistics of a set of durations, ns; nothing when the set is empty.
struct Tail {
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;
  std::uint64_t count = 0;
};

struct Part {
  std::uint64_t completed = 0;  // failures included
  std::uint64_t failed = 0;
  std::uint64_t output_tokens = 0;  // of successes, where reported
  std::uint64_t connections_opened = 0;
  std::optional<Tail> ttft;
  std::optional<Tail> latency;
  // issued − due, where a due time is a promise: not in a burst, and without the first queries of a
  // closed loop, whose due time is the phase's start whatever the number of slots.
  std::optional<Tail> issue_lag;
  std::optional<Tail> send_lag;  // sent − issued: waiting for a connection, and connecting
  std::uint64_t cancelled = 0;   // of the failed: by the run's end, so nobody's fault
  // Ends of the other failures and of successes, on the coordinator's clock; unset: none.
  base::Instant first_failure_at{};
  base::Instant last_failure_at{};
  base::Instant last_success_at{};
};

struct FailureKind {
  std::uint16_t phase = 0;
  wire::Failure failure = wire::Failure::kNone;
  std::uint16_t http_status = 0;
  std::uint16_t frontend = 0;
  friend auto operator<=>(const FailureKind&, const FailureKind&) = default;
};

struct FailureCount {
  FailureKind kind;
  std::uint64_t count = 0;
  std::string example;  // the first one's message, at most 200 bytes
};

struct Breakdown {
  std::vector<Part> frontends;  // index = endpoint
  std::vector<Part> agents;     // index = agent
  Part all;
  std::vector<FailureCount> failures;  // most frequent first
  stats::SeriesStat success_latency;   // ns, successes only
  std::uint64_t succeeded = 0;
  std::uint64_t with_usage = 0;    // successes whose server reported usage …
  std::uint64_t usage_tokens = 0;  // … and the output tokens it reported
  // Over the issue window, first to last issue: in all, by agent, by endpoint.
  std::optional<double> mean_in_flight;
  std::vector<double> agents_in_flight;
  std::vector<double> frontends_in_flight;
  // End of the performance phase without its drain, on the coordinator's clock: the last issue, in
  // a burst the last reply. Not set: nothing was issued.
  base::Instant load_ended_at{};
  // A closed loop's first queries, which fill its slots: issued − due is how long that took.
  std::uint64_t fills = 0;
  std::optional<Tail> fill;
  std::uint64_t resent = 0;
  std::uint64_t malformed_events = 0;
};

// `counts`: a tokenizer's; null: none.
base::Result<Breakdown> break_down(const RunFacts& facts, const ledger::Ledger& ledger,
                                   const TokenCounts* counts = nullptr);

// "refused or unreachable", "HTTP 503", …
std::string failure_text(wire::Failure failure, std::uint16_t http_status);

// What the verdict judges.
verdict::RunCount count_run(const RunFacts& facts, const ledger::Ledger& ledger,
                            const Breakdown& breakdown);

}  // namespace tutti::report
