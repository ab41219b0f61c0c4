#include "coordinator/report/own_sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/report/client_report.h"

namespace tutti::report {
namespace {

constexpr std::size_t kFailureLines = 40;

std::string ms(std::int64_t ns) { return fmt::format("{:.2f}", static_cast<double>(ns) * 1e-6); }

// "p50 / p99" in ms.
std::string pair(const std::optional<Tail>& tail) {
  return tail ? ms(tail->p50_ns) + " / " + ms(tail->p99_ns) : "-";
}

std::string us_pair(const std::optional<Tail>& tail) {
  return tail ? fmt::format("{:.0f} / {:.0f}", static_cast<double>(tail->p50_ns) * 1e-3,
                            static_cast<double>(tail->p99_ns) * 1e-3)
              : "-";
}

// Names a frontend that failed, and when; times are of the run.
void put_trouble(std::string& out, const Report& report, std::size_t i) {
  const Part& part = report.breakdown.frontends[i];
  const std::uint64_t failed = part.failed - part.cancelled;
  if (failed == 0) {
    return;
  }
  const auto since_start = [&](base::Instant at) {
    return (at - report.facts.started_at).to_seconds();
  };
  const auto& urls = report.facts.config.endpoints;
  out += fmt::format("  {}: {} of {} failed, the first at {:.3f} s, the last at {:.3f} s",
                     i < urls.size() ? urls[i] : "(not configured)", failed, part.completed,
                     since_start(part.first_failure_at), since_start(part.last_failure_at));
  if (!part.last_success_at.is_set()) {
    out += "; it never succeeded\n";
  } else if (part.last_success_at < part.first_failure_at) {
    out += fmt::format("; no success after {:.3f} s\n", since_start(part.last_success_at));
  } else {
    out += fmt::format("; last success at {:.3f} s\n", since_start(part.last_success_at));
  }
}

void put_frontends(std::string& out, const Report& report) {
  const auto& parts = report.breakdown.frontends;
  out += "------------------- Frontends -------------------\n";
  out += fmt::format("{:>10} {:>8} {:>12} {:>8} {:>21} {:>21}  {}\n", "completed", "failed",
                     "out tokens", "1st use", "TTFT p50 / p99 ms", "latency p50 / p99 ms", "url");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const auto& urls = report.facts.config.endpoints;
    out += fmt::format("{:>10} {:>8} {:>12} {:>8} {:>21} {:>21}  {}\n", part.completed, part.failed,
                       report.snapshot.osl.count > 0 ? std::to_string(part.output_tokens) : "-",
                       part.connections_opened, pair(part.ttft), pair(part.latency),
                       i < urls.size() ? urls[i] : "(not configured)");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    put_trouble(out, report, i);
  }
  out += "\n";
}

void put_agents(std::string& out, const Report& report) {
  out += "------------------- Agents -------------------\n";
  out +=
      fmt::format("{:>10} {:>8} {:>7} {:>20} {:>20} {:>24}  {}\n", "completed", "failed", "slots",
                  "lag p50 / p99 us", "send p50 / p99 us", "clock offset ± error ms", "agent");
  for (std::size_t i = 0; i < report.facts.agents.size(); ++i) {
    const AgentFacts& agent = report.facts.agents[i];
    const Part part = i < report.breakdown.agents.size() ? report.breakdown.agents[i] : Part{};
    const ledger::ClockMap clock = i < report.clocks.size() ? report.clocks[i] : ledger::ClockMap{};
    const std::string offset = fmt::format("{:.3f} ± {:.3f}", clock.offset.to_seconds() * 1e3,
                                           clock.error.to_seconds() * 1e3);
    out += fmt::format("{:>10} {:>8} {:>7} {:>20} {:>20} {:>24}  {}", part.completed, part.failed,
                       agent.slots, us_pair(part.issue_lag), us_pair(part.send_lag), offset,
                       agent.name);
    if (agent.lost_at.is_set()) {
      out += fmt::format(" (LOST after {:.3f} s)",
                         (agent.lost_at - report.facts.started_at).to_seconds());
    }
    out += "\n";
  }
  out += "\n";
}

// A line per agent: what the pings told of its clock, against the coordinator's.
void put_clocks(std::string& out, const Report& report) {
  const auto& clocks = report.clocks;
  if (std::all_of(clocks.begin(), clocks.end(),
                  [](const ledger::ClockMap& clock) { return clock.knots.empty(); })) {
    return;
  }
  const auto pair_ms = [](const ledger::ClockKnot& knot) {
    return fmt::format("{:.3f} ± {:.3f}", knot.offset.to_seconds() * 1e3,
                       knot.error.to_seconds() * 1e3);
  };
  out += "------------------- Clocks -------------------\n";
  out +=
      "  Offset (coordinator − agent) ± error in ms, before, during and after the run; drift of it "
      "in ppm.\n";
  out += fmt::format("{:>24} {:>24} {:>24} {:>20} {:>10} {:>6}  {}\n", "before", "during", "after",
                     "drift", "rtt ms", "pings", "agent");
  for (std::size_t i = 0; i < std::min(clocks.size(), report.facts.agents.size()); ++i) {
    const AgentFacts& agent = report.facts.agents[i];
    const ledger::ClockMap& clock = clocks[i];
    if (clock.knots.empty()) {
      out += fmt::format("{:>24} {:>24} {:>24} {:>20} {:>10} {:>6}  {}\n", "-", "-", "-", "-", "-",
                         clock.exchanges, agent.name);
      continue;
    }
    out += fmt::format(
        "{:>24} {:>24} {:>24} {:>20} {:>10.3f} {:>6}  {}\n", pair_ms(clock.knots.front()),
        pair_ms(clock.knots[(clock.knots.size() - 1) / 2]), pair_ms(clock.knots.back()),
        fmt::format("{:.1f} ± {:.1f}", clock.drift * 1e6, clock.drift_error * 1e6),
        agent.clock_rtt.to_seconds() * 1e3, clock.exchanges, agent.name);
  }
  out += "\n";
}

void put_failures(std::string& out, const Report& report) {
  const auto& failures = report.breakdown.failures;
  if (failures.empty()) {
    return;
  }
  out += "------------------- Failures -------------------\n";
  for (std::size_t i = 0; i < std::min(failures.size(), kFailureLines); ++i) {
    const FailureCount& failure = failures[i];
    const FailureKind& kind = failure.kind;
    const auto& phases = report.facts.phases;
    const auto& urls = report.facts.config.endpoints;
    std::string example = failure.example;
    std::replace_if(
        example.begin(), example.end(), [](char c) { return static_cast<unsigned char>(c) < 32; },
        ' ');
    out += fmt::format(
        "{:>10}  {}, {}, {}: {}\n", failure.count, failure_text(kind.failure, kind.http_status),
        kind.phase < phases.size() ? phases[kind.phase].name : "unknown phase",
        kind.frontend < urls.size() ? urls[kind.frontend] : "unknown frontend", example);
  }
  if (failures.size() > kFailureLines) {
    out += fmt::format("            … and {} more kinds\n", failures.size() - kFailureLines);
  }
  out += "\n";
}

void put_tail(std::string& out, const char* name, const std::optional<Tail>& tail) {
  if (tail) {
    out += fmt::format("  {}: p50 {:.3f} ms, p99 {:.3f} ms, max {:.3f} ms\n", name,
                       static_cast<double>(tail->p50_ns) * 1e-6,
                       static_cast<double>(tail->p99_ns) * 1e-6,
                       static_cast<double>(tail->max_ns) * 1e-6);
  }
}

// How long bytes lay in the kernel before the client read them. Nothing where there are no stamps.
void put_read_lag(std::string& out, const Report& report) {
  const AgentFacts* worst = nullptr;
  for (const AgentFacts& agent : report.facts.agents) {
    if (worst == nullptr || agent.health.read_lag_p99 > worst->health.read_lag_p99) {
      worst = &agent;
    }
  }
  if (worst != nullptr && worst->health.read_lag_p99.ns > 0) {
    out += fmt::format("  Read − arrival (read lag): p99 of the worst interval {:.3f} ms, {}\n",
                       static_cast<double>(worst->health.read_lag_p99.ns) * 1e-6, worst->name);
  }
}

void put_client(std::string& out, const Report& report) {
  const Breakdown& breakdown = report.breakdown;
  out += "------------------- Client -------------------\n";
  put_tail(out, "Issued − due", breakdown.all.issue_lag);
  if (breakdown.fill) {
    out += fmt::format(
        "    without the {} queries that filled the slots at the phase's start; the last of them "
        "went\n    out {} ms after it\n",
        breakdown.fills, ms(breakdown.fill->max_ns));
  }
  put_tail(out, "Sent − issued", breakdown.all.send_lag);
  put_read_lag(out, report);
  if (breakdown.mean_in_flight) {
    out += fmt::format("  Mean in flight, first to last issue: {:.2f}", *breakdown.mean_in_flight);
    const auto& target = report.facts.config.load_pattern.target_concurrency;
    out += target ? fmt::format(" (target {})\n", *target) : "\n";
  }
  if (breakdown.resent > 0) {
    out += fmt::format(
        "  Sent again, once each, on a fresh connection (the kept one had been closed): {}\n",
        breakdown.resent);
  }
  if (breakdown.malformed_events > 0) {
    out += fmt::format("  Malformed stream events skipped: {}\n", breakdown.malformed_events);
  }
  if (breakdown.success_latency.count > 0) {
    out += fmt::format("  Latency of successes only: p50 {} ms, p90 {} ms, p99 {} ms\n",
                       ms(static_cast<std::int64_t>(breakdown.success_latency.median())),
                       ms(static_cast<std::int64_t>(breakdown.success_latency.percentiles[4])),
                       ms(static_cast<std::int64_t>(breakdown.success_latency.percentiles[1])));
  }
  out += "\n";
}

// The reference's numbers leave out what is issued once measuring has ended: say so.
void put_conversations(std::string& out, const Report& report) {
  for (const PhaseFacts& phase : report.facts.phases) {
    if (!phase.conversations || phase.kind != base::PhaseKind::kPerformance) {
      continue;
    }
    const ConversationCount& count = *phase.conversations;
    out += "------------------- Conversations -------------------\n";
    out +=
        fmt::format("  {} planned, {} begun: {} to their end, {} failed on a turn, {} cut short\n",
                    count.planned, count.begun, count.whole, count.failed,
                    count.begun - count.whole - count.failed);
    if (count.turns_skipped > 0) {
      out += fmt::format(
          "  {} turns were not sent after a failed one; they count as issued, completed and "
          "failed, as in\n    the reference client\n",
          count.turns_skipped);
    }
    if (count.turns_withheld > 0) {
      out += fmt::format("  {} turns were not sent after the stop; they count nowhere\n",
                         count.turns_withheld);
    }
    if (phase.tracked_until.is_set()) {
      out += fmt::format(
          "  Measured: the {} turns issued in the first {:.2f} s, until a conversation ended with "
          "none left to\n    begin. What was issued later, with fewer at a time, is in the totals "
          "only.\n",
          report.snapshot.counters.tracked_issued,
          (phase.tracked_until - phase.start_at).to_seconds());
    }
    out += "\n";
  }
}

void put_budget(std::string& out, const Report& report) {
  if (report.facts.budget.empty()) {
    return;
  }
  out += "------------------- Budget -------------------\n";
  for (const std::string& line : report.facts.budget) {
    out += "  " + line + "\n";
  }
  out += "\n";
}

// Which replies were counted where, and what that took of the agents.
void put_counting(std::string& out, const Report& report) {
  AgentHealth worst;
  std::uint64_t left = 0;
  for (const AgentFacts& agent : report.facts.agents) {
    const AgentHealth& health = agent.health;
    worst.cpu_counting = std::max(worst.cpu_counting, health.cpu_counting);
    worst.counting_queued = std::max(worst.counting_queued, health.counting_queued);
    worst.counting_queued_bytes =
        std::max(worst.counting_queued_bytes, health.counting_queued_bytes);
    worst.counting_drain = std::max(worst.counting_drain, health.counting_drain);
    left += health.replies_uncounted;
  }
  const TokenCounts& counts = *report.tokens;
  if (counts.by_agents == 0 && left == 0) {
    return;
  }
  out += fmt::format(
      "    {} replies were counted by the agents while they ran, {} on this host after it.\n",
      counts.by_agents, counts.replies - counts.by_agents);
  out += fmt::format(
      "    An agent's largest backlog: {} replies, {:.1f} MB; its end was waited for {:.3f} s at "
      "most; CPU\n    of counting in the worst interval: {:.1f} % of a core.\n",
      worst.counting_queued, static_cast<double>(worst.counting_queued_bytes) * 1e-6,
      worst.counting_drain.to_seconds(), worst.cpu_counting * 100);
  if (left > 0) {
    out += fmt::format(
        "    {} replies were left uncounted by their agents: no room, no time, or no count.\n",
        left);
  }
}

// Counts by a tokenizer, and the server's own beside them where it told any.
void put_tokenizer(std::string& out, const Report& report) {
  const TokenCounts& counts = *report.tokens;
  out += fmt::format("  Token counts: by the tokenizer of {}, of {} prompts and {} replies.\n",
                     report.facts.config.tokenizer, counts.prompts, counts.replies);
  if (!report.facts.config.model_hash.empty()) {
    out += fmt::format("    Model files (xxh3-128): {}\n", report.facts.config.model_hash);
  }
  put_counting(out, report);
  if (counts.without_template > 0) {
    out += fmt::format(
        "    {} replies with reasoning or tool calls were counted by their pieces: the chat "
        "template cannot write them.\n",
        counts.without_template);
  }
  if (counts.pending > 0) {
    out += fmt::format("    {} queries were not counted{}{}.\n", counts.pending,
                       counts.first_error.empty() ? "" : ": ", counts.first_error);
  }
  if (report.breakdown.with_usage == 0) {
    return;
  }
  const auto ours = static_cast<double>(report.breakdown.all.output_tokens);
  const auto theirs = static_cast<double>(report.breakdown.usage_tokens);
  out += fmt::format("    The server's usage says {} output tokens in {} replies, {:+.1f} %.\n",
                     report.breakdown.usage_tokens, report.breakdown.with_usage,
                     ours > 0 ? (theirs / ours - 1) * 100 : 0.0);
}

void put_origin(std::string& out, const Report& report) {
  const Breakdown& breakdown = report.breakdown;
  out += "------------------- How these numbers were made -------------------\n";
  out +=
      "  Percentiles, averages, histograms: exact, from every value; a percentile is an observed "
      "value.\n";
  if (!report.timing.itl.exact && report.timing.itl.counted > 0) {
    out += fmt::format(
        "    But ITL's, which are from a histogram of {:.1f} % error (exact with "
        "stream_all_chunks).\n",
        report.timing.itl.relative_error() * 100);
  }
  out +=
      "  TTFT, TPOT, latency: from stamps of one agent's own clock, from issue (before any wait "
      "for "
      "a\n    connection); clock offsets touch only the run's window and the order of events.\n";
  out += report.facts.config.kernel_stamps
             ? "  Stamps of replies: the kernel's, of when the bytes reached the agent's host.\n"
             : "  Stamps of replies: of the read, when the agent came to the bytes.\n";
  if (!report.facts.config.reach.empty()) {
    out += fmt::format("  Frontends are reached {}.\n", report.facts.config.reach);
  }
  std::uint64_t unstamped = 0;
  for (const AgentFacts& agent : report.facts.agents) {
    unstamped += agent.health.reads_unstamped;
  }
  if (unstamped > 0) {
    out += fmt::format("    {} reads had no kernel stamp that could be used: time of the read.\n",
                       unstamped);
  }
  std::int64_t error_ns = 0;
  for (const ledger::ClockMap& clock : report.clocks) {
    error_ns = std::max(error_ns, clock.error.ns);
  }
  out += fmt::format("  Window edges and order across agents: within ± {:.3f} ms.\n",
                     static_cast<double>(error_ns) * 1e-6);
  if (report.tokens) {
    put_tokenizer(out, report);
  } else if (report.snapshot.osl.count > 0) {
    out += fmt::format(
        "  Token counts: from the server's usage, in {} of {} successful replies; the reference "
        "client\n    counts with a tokenizer instead. TPOT divides by completion_tokens − 1.\n",
        breakdown.with_usage, breakdown.succeeded);
  } else {
    out +=
        "  Token counts: none, as there was no tokenizer and usage was not asked for, or did not "
        "come; so\n    no sequence lengths, TPOT or TPS.\n";
  }
  out += "  Completed, latency and QPS include failed requests; token numbers do not.\n\n";
}

}  // namespace

void put_verdict(std::string& out, const Report& report) {
  out += fmt::format("Client: tutti {} ({})\n", report.facts.version, kRehearsal);
  if (report.snapshot.osl.count == 0 && report.breakdown.succeeded > 0) {
    out +=
        "Tokens: not counted (--tokenizer names the model's; --token-source usage asks servers)\n";
  }
  out += fmt::format("Verdict: {}\n", report.verdict.valid ? "VALID" : "INVALID");
  for (const verdict::Reason& reason : report.verdict.reasons) {
    out += fmt::format("  - {}\n", reason.text);
  }
  for (const std::string& warning : report.verdict.warnings) {
    out += fmt::format("  warning: {}\n", warning);
  }
  put_client_verdict(out, report);
  if (!report.facts.rebuilt.empty()) {
    out += "Rebuilt from spools:\n";
    for (const std::string& sentence : report.facts.rebuilt) {
      out += fmt::format("  - {}\n", sentence);
    }
  }
}

void put_own_sections(std::string& out, const Report& report) {
  put_timing(out, report.timing);
  put_frontends(out, report);
  put_agents(out, report);
  put_conversations(out, report);
  put_clocks(out, report);
  put_failures(out, report);
  put_client(out, report);
  put_client_health(out, report);
  put_budget(out, report);
  put_origin(out, report);
}

}  // namespace tutti::report
