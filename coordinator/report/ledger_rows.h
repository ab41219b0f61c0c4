#pragma once

// From the ledger to the fold: each fact becomes a row on the coordinator's clock. Token counts
// come from the server's usage or are absent: output = completion_tokens; TPOT's divisor =
// completion_tokens − 1, since usage does not say how many tokens the first chunk bore. Pure but
// for reading chunk stamps back from the ledger's text file.

#include "common/base/result.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/fold.h"
#include "coordinator/report/row_tokens.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

// When the query was taken up, on the coordinator's clock (a record ended before that: when it was
// due).
base::Instant issued_at(const ledger::Ledger& ledger, const ledger::Fact& fact);

// True when the reply's first chunk is an event of its own: it came as a stream, and bore output.
bool has_first_chunk(const ledger::Fact& fact);

// Tokens of the query that is the ledger's i-th: a tokenizer's `counts` when there are any, else,
// where the run asked for it, the server's usage.
RowTokens tokens_of(const RunFacts& facts, const ledger::Ledger& ledger, const TokenCounts* counts,
                    std::uint64_t i);

// `counts`: a tokenizer's, where the facts say so; null: none.
base::Result<Snapshot> fold_ledger(const RunFacts& facts, const ledger::Ledger& ledger,
                                   const TokenCounts* counts = nullptr);

}  // namespace tutti::report
