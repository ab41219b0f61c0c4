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
              sorted.back(), sorted.size()};
}

// A part with the values its tails will be made of.
struct Gathering {
  Part part;
  Values ttft;
  Values latency;
  Values issue_lag;
  Values send_lag;

  void add(const ledger::Fact& fact, bool due_is_promise, base::Instant done_at) {
    ++part.completed;
    note_end(fact, done_at);
    part.failed += fact.ok() ? 0U : 1U;
    part.connections_opened += fact.sent_at.is_set() && !fact.connection_reused ? 1U : 0U;
    if (has_first_chunk(fact)) {
      ttft.push_back((fact.first_token_at - fact.issued_at).ns);
    }
    latency.push_back((fact.done_at - fact.issued_at).ns);
    if (due_is_promise && fact.due_at.is_set() && fact.issued_at.is_set()) {
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

base::Pacing pacing_of(const RunFacts& facts) {
  for (const PhaseFacts& phase : facts.phases) {
    if (phase.kind == base::PhaseKind::kPerformance) {
      return phase.pacing;
    }
  }
  return base::Pacing::kTimed;
}

// Which due times are promises. In a closed loop the queries that fill an agent's slots share one
// due time, the phase's start on its clock, which is its earliest.
class DuePromise {
 public:
  DuePromise(const RunFacts& facts, const ledger::Ledger& ledger) : pacing_(pacing_of(facts)) {
    for (std::uint64_t i = 0; i < ledger.size(); ++i) {
      const ledger::Fact& fact = ledger.fact(i);
      if (pacing_ == base::Pacing::kClosedLoop && is_performance(facts, fact) &&
          fact.due_at.is_set()) {
        const auto [at, first] = starts_.emplace(fact.agent, fact.due_at);
        at->second = std::min(at->second, fact.due_at);
      }
    }
  }

  bool fills(const ledger::Fact& fact) const {
    const auto start = starts_.find(fact.agent);
    return start != starts_.end() && fact.due_at == start->second;
  }
  bool operator()(const ledger::Fact& fact) const {
    return pacing_ != base::Pacing::kBurst && !fills(fact);
  }

 private:
  base::Pacing pacing_;
  std::map<std::uint32_t, base::Instant> starts_;
};

constexpr std::size_t kNoPart = SIZE_MAX;

// Of a turn that was never sent: none.
std::size_t frontend_of(const ledger::Fact& fact) {
  return fact.failure == wire::Failure::kTurnSkipped ? kNoPart : std::size_t{fact.frontend};
}

struct Whole {
  const RunFacts& facts;
  const ledger::Ledger& ledger;
  const TokenCounts* counts;
};

// One pass per way of cutting the records, so that the values of one cut only are in memory at
// once: 32 bytes a record.
template <class PartOf>
std::vector<Part> cut(const Whole& run, const DuePromise& promise, std::size_t least,
                      PartOf part_of) {
  const auto& [facts, ledger, counts] = run;
  std::vector<Gathering> parts(least);
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    if (!is_performance(facts, fact)) {
      continue;
    }
    const std::size_t index = part_of(fact);
    if (index == kNoPart) {
      continue;
    }
    if (index >= parts.size()) {
      parts.resize(index + 1);  // an index nobody configured still gets a line
    }
    parts[index].add(fact, promise(fact), ledger.to_coordinator(fact, fact.done_at));
    parts[index].part.output_tokens += static_cast<std::uint64_t>(
        std::max<std::int64_t>(tokens_of(facts, ledger, counts, i).output, 0));
  }
  std::vector<Part> out;
  for (Gathering& part : parts) {
    out.push_back(part.finish());
  }
  return out;
}

void add_at(std::vector<double>& values, std::size_t index, double value) {
  values.resize(std::max(values.size(), index + 1));
  values[index] += value;
}

// Mean number of queries in flight between the first and the last issue: Σ of each query's time
// inside that window / its length. Exact up to the clock error between agents.
void put_in_flight(const RunFacts& facts, const ledger::Ledger& ledger, Breakdown& out) {
  base::Instant first = base::kFarFuture;
  base::Instant last{};
  base::Instant last_done{};
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    if (is_performance(facts, fact)) {
      const base::Instant issued = issued_at(ledger, fact);
      first = std::min(first, issued);
      last = std::max(last, issued);
      last_done = std::max(last_done, ledger.to_coordinator(fact, fact.done_at));
    }
  }
  if (last.is_set()) {
    out.load_ended_at = pacing_of(facts) == base::Pacing::kBurst ? last_done : last;
  }
  if (!(first < last)) {
    return;
  }
  const auto window_ns = static_cast<double>((last - first).ns);
  double inside_ns = 0;
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    if (is_performance(facts, fact)) {
      const base::Instant done = std::min(last, ledger.to_coordinator(fact, fact.done_at));
      const auto mine_ns =
          static_cast<double>(std::max<std::int64_t>(0, (done - issued_at(ledger, fact)).ns));
      inside_ns += mine_ns;
      add_at(out.agents_in_flight, fact.agent, mine_ns / window_ns);
      add_at(out.frontends_in_flight, fact.frontend, mine_ns / window_ns);
    }
  }
  out.mean_in_flight = inside_ns / window_ns;
}

void put_fill(const RunFacts& facts, const ledger::Ledger& ledger, const DuePromise& promise,
              Breakdown& out) {
  Values lags;
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    if (is_performance(facts, fact) && promise.fills(fact)) {
      lags.push_back((fact.issued_at - fact.due_at).ns);
    }
  }
  out.fills = lags.size();
  out.fill = tail_of(lags);
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

// Frontends with failures that were not the run's own end, or from which nothing came at all.
void put_troubled(const RunFacts& facts, const Breakdown& breakdown, verdict::RunCount& out) {
  for (std::size_t i = 0; i < breakdown.frontends.size(); ++i) {
    const Part& part = breakdown.frontends[i];
    const bool silent = part.cancelled > 0 && part.cancelled == part.completed;
    if (part.failed == part.cancelled && !silent) {
      continue;
    }
    const auto& urls = facts.config.endpoints;
    verdict::FrontendCount count;
    count.url = i < urls.size() ? urls[i] : fmt::format("{} (not configured)", i);
    count.completed = part.completed;
    count.failed = part.failed - part.cancelled;
    if (!silent) {
      count.first_failure = part.first_failure_at - facts.started_at;
      count.last_failure = part.last_failure_at - facts.started_at;
    }
    if (part.last_success_at.is_set()) {
      count.last_success = part.last_success_at - facts.started_at;
    }
    out.frontends.push_back(std::move(count));
  }
}

}  // namespace

base::Result<Breakdown> break_down(const RunFacts& facts, const ledger::Ledger& ledger,
                                   const TokenCounts* counts) {
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
      out.usage_tokens += static_cast<std::uint64_t>(std::max(fact.completion_tokens, 0));
      success_latency.add((fact.done_at - fact.issued_at).ns);
    }
  }
  const DuePromise promise(facts, ledger);
  const Whole run{facts, ledger, counts};
  out.all = cut(run, promise, 1, [](const ledger::Fact&) { return std::size_t{0}; }).front();
  out.frontends = cut(run, promise, facts.config.endpoints.size(), frontend_of);
  out.agents = cut(run, promise, facts.agents.size(),
                   [](const ledger::Fact& fact) { return std::size_t{fact.agent}; });
  out.failures = failures.finish();
  out.success_latency =
      success_latency.stat(facts.config.early_stopping && facts.state == RunState::kComplete);
  put_in_flight(facts, ledger, out);
  put_fill(facts, ledger, promise, out);
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
    case wire::Failure::kTurnTimeout:
      return "turn timeout";
    case wire::Failure::kTurnSkipped:
      return "not sent: a turn before it failed";
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
    count.completed = ledger.stored(i);
    count.failed = failed[i];
    count.doubled = ledger.doubled_count(i);
    if (facts.rebuilt.empty()) {
      count.issued = phase.issued - ledger.withheld_count(i);
      count.missing = ledger.missing_count(i, phase.issued);
      count.missing_examples = ledger.missing(i, phase.issued, kMissingExamples);
      count.never_issued = ledger.never_issued(i, phase.issued);
    } else {
      count.issued = count.completed;  // the others are not known
    }
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
    count.unspooled_batches = agent.health.unspooled_batches;
    out.agents.push_back(std::move(count));
  }
  put_troubled(facts, breakdown, out);
  return out;
}

}  // namespace tutti::report
