#include "coordinator/report/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "coordinator/report/ledger_rows.h"

namespace tutti::report {
namespace {

bool is_performance(const RunFacts& facts, std::size_t phase) {
  return phase < facts.phases.size() && facts.phases[phase].kind == base::PhaseKind::kPerformance;
}

void fill_exact(Itl& out, const stats::SeriesStat& deltas) {
  out.counted = deltas.count;
  out.min_ns = stats::to_double(deltas.min);
  out.max_ns = stats::to_double(deltas.max);
  out.percentiles = deltas.percentiles;
}

void fill_from_histogram(Itl& out, const RunFacts& facts, const ledger::Ledger& ledger) {
  stats::LiveHistogram gaps;
  for (std::size_t phase = 0; phase < facts.phases.size(); ++phase) {
    const stats::LiveHistogram* part = ledger.gaps(static_cast<std::uint32_t>(phase));
    if (part != nullptr && is_performance(facts, phase)) {
      gaps.merge(*part);
    }
  }
  out.counted = gaps.count();
  out.cells = gaps.cells();
  out.min_ns = gaps.percentile(0).value_or(0);
  out.max_ns = gaps.percentile(100).value_or(0);
  for (std::size_t i = 0; i < out.percentiles.size(); ++i) {
    out.percentiles[i] = gaps.percentile(stats::kPercentileGrid[i].percentile).value_or(0);
  }
}

std::optional<SetupTail> setup_tail(std::vector<std::uint32_t>& values) {
  if (values.empty()) {
    return std::nullopt;
  }
  std::sort(values.begin(), values.end());
  const std::span<const std::uint32_t> sorted(values);
  return SetupTail{sorted.size(), sorted.front(), stats::percentile_of_sorted(sorted, 50.0),
                   stats::percentile_of_sorted(sorted, 99.0), sorted.back()};
}

std::string ms(double ns) { return fmt::format("{:.3f} ms", ns * 1e-6); }

void put_itl(std::string& out, const Itl& itl) {
  if (itl.count == 0 && itl.counted == 0) {
    return;
  }
  const std::string source =
      itl.exact ? "exact" : fmt::format("from a histogram, ± {:.1f} %", itl.relative_error() * 100);
  out += fmt::format("  ITL ({}): p50 {}, p90 {}, p99 {}, max {}\n", source, ms(itl.median_ns()),
                     ms(itl.percentiles[4]), ms(itl.percentiles[1]), ms(itl.max_ns));
  out += fmt::format("    mean {}, exact; {} gaps between content events of one reply\n",
                     ms(itl.mean_ns()), itl.count);
  if (itl.counted != itl.count) {
    out += fmt::format("    WARNING: the percentiles stand on {} gaps, the records have {}\n",
                       itl.counted, itl.count);
  }
}

void put_setup(std::string& out, const char* name, const std::optional<SetupTail>& tail) {
  if (tail) {
    out +=
        fmt::format("    {}: min {:.3f} ms, p50 {:.3f} ms, p99 {:.3f} ms, max {:.3f} ms, of {}\n",
                    name, tail->min_us * 1e-3, tail->p50_us * 1e-3, tail->p99_us * 1e-3,
                    tail->max_us * 1e-3, tail->count);
  }
}

}  // namespace

Timing take_timing(const RunFacts& facts, const ledger::Ledger& ledger, const Snapshot& snapshot) {
  Timing out;
  stats::IntSeries from_sent;
  std::vector<std::uint32_t> dns;
  std::vector<std::uint32_t> tcp;
  std::vector<std::uint32_t> tls;
  const auto take = [](std::vector<std::uint32_t>& values, std::uint32_t us) {
    if (us > 0) {
      values.push_back(us);
    }
  };
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    if (!is_performance(facts, fact.phase)) {
      continue;
    }
    take(dns, fact.dns_us);
    take(tcp, fact.connect_us);
    take(tls, fact.tls_us);
    out.sent += fact.sent_at.is_set() ? 1U : 0U;
    out.first_on_connection += fact.sent_at.is_set() && !fact.connection_reused ? 1U : 0U;
    if (!facts.config.streaming || !has_first_chunk(fact)) {
      continue;
    }
    if (fact.sent_at.is_set()) {
      from_sent.add((fact.first_token_at - fact.sent_at).ns);
    }
    if (fact.content_events > 1) {
      out.itl.count += fact.content_events - 1;
      out.itl.total_ns += (fact.last_token_at - fact.first_token_at).ns;
    }
  }
  out.ttft_from_sent = from_sent.stat(false);
  out.dns = setup_tail(dns);
  out.tcp = setup_tail(tcp);
  out.tls = setup_tail(tls);
  out.itl.exact = facts.config.stream_all_chunks;
  if (!facts.config.streaming) {
    return out;
  }
  if (out.itl.exact) {
    fill_exact(out.itl, snapshot.chunk_delta);
  } else {
    fill_from_histogram(out.itl, facts, ledger);
  }
  return out;
}

void put_timing(std::string& out, const Timing& timing) {
  out += "------------------- Timing -------------------\n";
  put_itl(out, timing.itl);
  const stats::SeriesStat& ttft = timing.ttft_from_sent;
  if (ttft.count > 0) {
    out += fmt::format(
        "  TTFT from sent (no wait, no connection set-up): p50 {}, p90 {}, p99 {}, max {}\n"
        "    mean {}; {} replies\n",
        ms(ttft.median()), ms(ttft.percentiles[4]), ms(ttft.percentiles[1]),
        ms(stats::to_double(ttft.max)), ms(ttft.avg), ttft.count);
  }
  out +=
      fmt::format("  Queries that were the first on their connection: {} of {}{}\n",
                  timing.first_on_connection, timing.sent, timing.tcp ? "; what set-up took:" : "");
  put_setup(out, "DNS", timing.dns);
  put_setup(out, "TCP", timing.tcp);
  put_setup(out, "TLS", timing.tls);
  out += "\n";
}

}  // namespace tutti::report
