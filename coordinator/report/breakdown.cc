#include "coordinator/report/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "common/stats/percentile.h"
#include "common/text/utf8.h"
#include "coordinator/report/ledger_rows.h"

namespace tutti::report {
namespace {

constexpr std::size_t kExampleMax = 200;
constexpr std::size_t kMissingExamples = 8;

using Values = std::vector<std::int64_t>;

std::optional<Tail> tail_of(Values& values) {
  if (values.empty()) {
    return std::nullopt;
  }
  std::sort(values.begin(), values.end());
  const std::span<const std::int64_t> sorted(values);
  return Tail{stats::percentile_of_sorted(sorted, 50.0), stats::percentile_of_sorted(sorted, 99.0),
              sorted.back()};
}

// A part with the values its tails will be made of.
struct Gathering {
  Part part;
  Values ttft;
  Values latency;
  Values issue_lag;
  Values send_lag;

  void add(const ledger::Fact& fact, base::Instant done_at) {
    ++part.completed;
    note_end(fact, done_at);
    part.failed += fact.ok() ? 0U : 1U;
    part.connections_opened += fact.sent_at.is_set() && !fact.connection_reused ? 1U : 0U;
    if (fact.ok() && fact.completion_tokens > 0) {
      part.output_tokens += static_cast<std::uint64_t>(fact.completion_tokens);
    }
    if (has_first_chunk(fact)) {
      ttft.push_back((fact.first_token_at - fact.issued_at).ns);
    }
    latency.push_back((fact.done_at - fact.issued_at).ns);
    if (fact.due_at.is_set() && fact.issued_at.is_set()) {
      issue_lag.push_back((fact.issued_at - fact.due_at).ns);
    }
    if (fact.sent_at.is_set() && fact.issued_at.is_set()) {
      send_lag.push_back((fact.sent_at - fact.issued_at).ns);
    }
  }

  void note_end(const ledger::Fact& fact, base::Instant at) {
    if (fact.failure == wire::Failure::kCancelled) {
      ++part.cancelled;
      return;
    }
    if (fact.ok()) {
      part.last_success_at = std::max(part.last_success_at, at);
      return;
    }
    part.last_failure_at = std::max(part.last_failure_at, at);
    if (!part.first_failure_at.is_set() || at < part.first_failure_at) {
      part.first_failure_at = at;
    }
  }

  Part finish() {
    part.ttft = tail_of(ttft);
    part.latency = tail_of(latency);
    part.issue_lag = tail_of(issue_lag);
    part.send_lag = tail_of(send_lag);
    return part;
  }
};

bool is_performance(const RunFacts& facts, const ledger::Fact& fact) {
  return fact.phase < facts.phases.size() &&
         facts.phases[fact.phase].kind == base::PhaseKind::kPerformance;
}

// One pass per way of cutting the records, so that the values of one cut only are in memory at
// once: 32 bytes a record.
template <class PartOf>
std::vector<Part> cut(const RunFacts& facts, const ledger::Ledger& ledger, std::size_t least,
                      PartOf part_of) {
  std::vector<Gathering> parts(least);
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    if (!is_performance(facts, fact)) {
      continue;
    }
    const std::size_t index = part_of(fact);
    if (index >= parts.size()) {
      parts.resize(index + 1);  // an index nobody configured still gets a line
    }
    parts[index].add(fact, ledger.to_coordinator(fact, fact.done_at));
  }
  std::vector<Part> out;
  for (Gathering& part : parts) {
    out.push_back(part.finish());
  }
  return out;
}

// Mean number of queries in flight between the first and the last issue: Σ of each query's time
// inside that window / its length. Exact up to the clock error between agents.
std::optional<double> mean_in_flight(const RunFacts& facts, const ledger::Ledger& ledger) {
  base::Instant first = base::kFarFuture;
  base::Instant last{};
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    if (is_performance(facts, ledger.fact(i))) {
      const base::Instant issued = issued_at(ledger, ledger.fact(i));
      first = std::min(first, issued);
      last = std::max(last, issued);
    }
  }
  if (!(first < last)) {
    return std::nullopt;
  }
  double inside_ns = 0;
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    if (is_performance(facts, fact)) {
      const base::Instant done = std::min(last, ledger.to_coordinator(fact, fact.done_at));
      inside_ns +=
          static_cast<double>(std::max<std::int64_t>(0, (done - issued_at(ledger, fact)).ns));
    }
  }
  return inside_ns / static_cast<double>((last - first).ns);
}

class FailureTable {
 public:
  base::Status add(const ledger::Ledger& ledger, const ledger::Fact& fact) {
    FailureCount& count = counts_[{fact.phase, fact.failure, fact.http_status, fact.frontend}];
    if (++count.count == 1) {
      if (auto read = ledger.texts(fact, texts_); !read) {
        return read;
      }
      count.example = text::clip_utf8(texts_.error_message, kExampleMax);
    }
    return {};
  }

  std::vector<FailureCount> finish() {
    std::vector<FailureCount> out;
    for (auto& [kind, count] : counts_) {
      count.kind = kind;
      out.push_back(count);
    }
    std::stable_sort(out.begin(), out.end(), [](const FailureCount& a, const FailureCount& b) {
      return a.count > b.count;
    });
    return out;
  }

 private:
  std::map<FailureKind, FailureCount> counts_;
  ledger::Texts texts_;
};

}  // namespace

base::Result<Breakdown> break_down(const RunFacts& facts, const ledger::Ledger& ledger) {
  Breakdown out;
  FailureTable failures;
  stats::IntSeries success_latency;
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    if (!fact.ok()) {
      if (auto added = failures.add(ledger, fact); !added) {
        return tl::unexpected<base::Error>(added.error());
      }
    }
    if (!is_performance(facts, fact)) {
      continue;
    }
    out.resent += fact.resent ? 1U : 0U;
    out.malformed_events += fact.malformed_events;
    if (fact.ok()) {
      ++out.succeeded;
      out.with_usage += fact.completion_tokens >= 0 ? 1U : 0U;
      success_latency.add((fact.done_at - fact.issued_at).ns);
    }
  }
  out.all = cut(facts, ledger, 1, [](const ledger::Fact&) { return std::size_t{0}; }).front();
  out.frontends = cut(facts, ledger, facts.config.endpoints.size(),
                      [](const ledger::Fact& fact) { return std::size_t{fact.frontend}; });
  out.agents = cut(facts, ledger, facts.agents.size(),
                   [](const ledger::Fact& fact) { return std::size_t{fact.agent}; });
  out.failures = failures.finish();
  out.success_latency =
      success_latency.stat(facts.config.early_stopping && facts.state == RunState::kComplete);
  out.mean_in_flight = mean_in_flight(facts, ledger);
  return out;
}

std::string failure_text(wire::Failure failure, std::uint16_t http_status) {
  switch (failure) {
    case wire::Failure::kNone:
      return "no cause given";
    case wire::Failure::kHttpStatus:
      return fmt::format("HTTP {}", http_status);
    case wire::Failure::kConnect:
      return "could not connect";
    case wire::Failure::kConnectTimeout:
      return "connect timeout";
    case wire::Failure::kTls:
      return "TLS error";
    case wire::Failure::kReset:
      return "connection lost";
    case wire::Failure::kTruncated:
      return "stream cut short";
    case wire::Failure::kEmptyStream:
      return "empty stream";
    case wire::Failure::kStreamError:
      return "error in the stream";
    case wire::Failure::kBadReply:
      return "unreadable reply";
    case wire::Failure::kRequestTimeout:
      return "request timeout";
    case wire::Failure::kCancelled:
      return "cancelled by the run's end";
    case wire::Failure::kInternal:
      return "internal error of the agent";
  }
  return "unknown cause";
}

verdict::RunCount count_run(const RunFacts& facts, const ledger::Ledger& ledger,
                            const Breakdown& breakdown) {
  verdict::RunCount out;
  out.interrupted = facts.interrupted_by_user;
  out.stopped_early = facts.state == RunState::kInterrupted;
  out.watchdogs = facts.watchdogs;
  std::vector<std::uint64_t> failed(facts.phases.size(), 0);
  for (const FailureCount& failure : breakdown.failures) {
    if (failure.kind.phase < failed.size()) {
      failed[failure.kind.phase] += failure.count;
    }
  }
  for (std::uint32_t i = 0; i < facts.phases.size(); ++i) {
    const PhaseFacts& phase = facts.phases[i];
    verdict::PhaseCount count;
    count.name = phase.name;
    count.kind = phase.kind;
    count.issued = phase.issued;
    count.completed = ledger.stored(i);
    count.failed = failed[i];
    count.missing = ledger.missing_count(i, phase.issued);
    count.missing_examples = ledger.missing(i, phase.issued, kMissingExamples);
    count.doubled = ledger.doubled_count(i);
    count.never_issued = ledger.never_issued(i, phase.issued);
    out.phases.push_back(std::move(count));
  }
  for (std::uint32_t i = 0; i < facts.agents.size(); ++i) {
    const AgentFacts& agent = facts.agents[i];
    verdict::AgentCount count;
    count.name = agent.name;
    if (agent.lost_at.is_set()) {
      count.lost_after = agent.lost_at - facts.started_at;
    }
    count.records_lost = agent.health.records_lost;
    count.clock_error = ledger.clock(i).error;
    count.cpu_busiest_thread = agent.health.cpu_busiest_thread;
    out.agents.push_back(std::move(count));
  }
  if (breakdown.all.issue_lag) {
    out.issue_lag_p99 = base::Duration{breakdown.all.issue_lag->p99_ns};
  }
  if (breakdown.all.ttft) {
    out.ttft_p50 = base::Duration{breakdown.all.ttft->p50_ns};
  }
  return out;
}

}  // namespace tutti::report
