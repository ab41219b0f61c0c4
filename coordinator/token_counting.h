#pragma once

// Counts the tokens of a finished run's prompts and replies with the model's tokenizer, as the
// reference client does after its runs: every distinct prompt once, every successful reply of the
// performance phase that its agent has not counted from the texts beside the ledger. Uses threads
// of its own while it runs.

#include <functional>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/model/reply_tokens.h"
#include "common/model/token_counter.h"
#include "common/spec/config.h"
#include "common/text/json_read.h"
#include "coordinator/conduct/prepare.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/row_tokens.h"
#include "coordinator/report/run_facts.h"

namespace tutti {

struct RunTokenizer {
  model::TokenCounter counter;
  std::string packed;  // its files, as agents get them
  std::string hash;    // of that
};

// By its path or its name at the hub: from the hub's cache on this host, else fetched if it may be.
base::Result<RunTokenizer> open_tokenizer(const std::string& name, bool may_fetch);

// The tokenizer that the config asks for, opened; nothing: it asks for none, or for "auto" and the
// model has none on this host (`why_not` says so then). An error where one was named that cannot be
// had (runtime-metrics 1.1 step 5: exit code 3), or agents were to count with it.
base::Result<std::optional<RunTokenizer>> tokenizer_of(const spec::Config& config,
                                                       std::string& why_not);

struct CountingTerms {
  std::size_t threads = 4;
  base::Duration timeout{};           // 0: none
  std::function<bool()> interrupted;  // asked a few times a second; true: stop, the rest is pending
  std::optional<text::JsonValue> template_kwargs;  // the run's, for its chat template
};

// Threads, time and template variables as the config says.
CountingTerms counting_terms(const spec::Config& config);

struct RecordedTokens {
  model::ReplyTokens tokens;
  bool by_agent = false;  // counted before, by the agent that sent the query
};

// Of a successful reply with a text: its agent's count, else one of the text beside the ledger.
// `counter`: null: only the former. `texts` is room to read into.
base::Result<RecordedTokens> recorded_tokens(const model::TokenCounter* counter,
                                             const ledger::Ledger& ledger, const ledger::Fact& fact,
                                             ledger::Texts& texts);

// `counter`: null: only what agents counted is known, and `input` is null too. `input`: for the
// prompts; null: none are known. What was not counted in time is `pending`.
report::TokenCounts count_tokens(const model::TokenCounter* counter, const report::RunFacts& facts,
                                 const ledger::Ledger& ledger, const conduct::RunInput* input,
                                 const CountingTerms& terms, const base::Clock& clock);

}  // namespace tutti
