#include "coordinator/report/report.h"

#include <algorithm>

#include "coordinator/report/client_report.h"
#include "coordinator/report/ledger_rows.h"

namespace tutti::report {

bool Report::has_performance_phase() const {
  return std::any_of(facts.phases.begin(), facts.phases.end(), [](const PhaseFacts& phase) {
    return phase.kind == base::PhaseKind::kPerformance;
  });
}

const char* Report::token_source() const {
  if (tokens) {
    return "tokenizer";
  }
  return snapshot.osl.count > 0 ? "usage" : "none";
}

base::Result<Report> make_report(const RunFacts& facts, const ledger::Ledger& ledger,
                                 const verdict::Rules& rules, const TokenCounts* counts) {
  auto snapshot = fold_ledger(facts, ledger, counts);
  if (!snapshot) {
    return tl::unexpected<base::Error>(snapshot.error());
  }
  auto breakdown = break_down(facts, ledger, counts);
  if (!breakdown) {
    return tl::unexpected<base::Error>(breakdown.error());
  }
  Report out;
  out.facts = facts;
  out.snapshot = std::move(*snapshot);
  out.summary = summarize(out.snapshot, facts.config.load_pattern);
  out.breakdown = std::move(*breakdown);
  out.timing = take_timing(facts, ledger, out.snapshot);
  out.count = count_run(facts, ledger, out.breakdown);
  out.verdict = verdict::judge(out.count, rules);
  for (std::uint32_t agent = 0; agent < facts.agents.size(); ++agent) {
    out.clocks.push_back(ledger.clock(agent));
  }
  out.client_limits = rules.client;
  out.client = verdict::judge_client(client_facts(facts, out.breakdown, out.clocks), rules.client);
  out.repeated_batches = ledger.repeated_batches();
  if (counts != nullptr) {
    out.tokens = *counts;
    out.tokens->rows = {};
  }
  return out;
}

}  // namespace tutti::report
