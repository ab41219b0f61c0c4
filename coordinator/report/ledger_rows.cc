#include "coordinator/report/ledger_rows.h"

#include <map>

namespace tutti::report {
namespace {

Row row_of(const RunFacts& facts, const ledger::Ledger& ledger, const ledger::Fact& fact) {
  const bool known = fact.phase < facts.phases.size();
  const base::PhaseKind kind = known ? facts.phases[fact.phase].kind : base::PhaseKind::kAccuracy;
  Row row;
  row.issued_at = issued_at(ledger, fact);
  row.tracked = known && facts.phases[fact.phase].tracks(row.issued_at);
  if (has_first_chunk(fact)) {
    row.first_token_at = ledger.to_coordinator(fact, fact.first_token_at);
  }
  if (kind != base::PhaseKind::kWarmup) {
    row.completed_at = ledger.to_coordinator(fact, fact.done_at);
  }
  row.errors = fact.ok() ? 0 : 1;
  if (fact.ok()) {
    row.finish_reason = fact.finish_reason;
  }
  return row;
}

}  // namespace

RowTokens tokens_of(const RunFacts& facts, const ledger::Ledger& ledger, const TokenCounts* counts,
                    std::uint64_t i) {
  if (counts != nullptr) {
    return counts->rows[i];
  }
  RowTokens out;
  const ledger::Fact& fact = ledger.fact(i);
  if (facts.config.token_source == TokenSource::kUsage) {
    out.prompt = fact.prompt_tokens;
    if (fact.ok() && fact.completion_tokens >= 0) {
      out.output = fact.completion_tokens;
      out.after_first = fact.completion_tokens - 1;
    }
  }
  return out;
}

base::Instant issued_at(const ledger::Ledger& ledger, const ledger::Fact& fact) {
  return ledger.to_coordinator(fact, fact.begun_at());
}

bool has_first_chunk(const ledger::Fact& fact) {
  return fact.streamed && fact.first_token_at.is_set();
}

base::Result<Snapshot> fold_ledger(const RunFacts& facts, const ledger::Ledger& ledger,
                                   const TokenCounts* counts) {
  Fold fold(facts.started_at, facts.config.streaming);
  std::map<std::uint16_t, std::uint32_t> blocks;  // by performance phase
  for (std::size_t phase = 0; phase < facts.phases.size(); ++phase) {
    const PhaseFacts& it = facts.phases[phase];
    const bool tracked = it.kind == base::PhaseKind::kPerformance;
    if (tracked) {
      blocks[static_cast<std::uint16_t>(phase)] = fold.begin_tracking(it.start_at);
      fold.see(it.stop_at);
    }
    if (facts.rebuilt.empty()) {
      fold.add_lost(tracked, ledger.missing_count(static_cast<std::uint32_t>(phase), it.issued));
    }
  }
  ledger::Texts texts;
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    Row row = row_of(facts, ledger, fact);
    const RowTokens tokens = tokens_of(facts, ledger, counts, i);
    row.prompt_tokens = tokens.prompt;
    row.output_tokens = tokens.output;
    row.tokens_after_first = tokens.after_first;
    if (row.tracked) {
      row.block = blocks[fact.phase];
    }
    if (facts.config.stream_all_chunks && fact.text_bytes > 0) {
      if (auto read = ledger.texts(fact, texts); !read) {
        return tl::unexpected<base::Error>(read.error());
      }
      for (base::Instant& at : texts.chunk_at) {
        at = ledger.to_coordinator(fact, at);
      }
      row.chunk_at = texts.chunk_at;
    }
    fold.add(row);
  }
  fold.see(facts.ended_at);
  Snapshot snapshot = fold.finish(facts.state, facts.config.early_stopping, facts.ended_at);
  snapshot.pending = counts != nullptr ? counts->pending : 0;
  return snapshot;
}

}  // namespace tutti::report
