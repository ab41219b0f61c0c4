#pragma once

// Output lengths of an accuracy data set's replies in tokens, as those of the performance phase are
// counted: by the agents that sent them, else here from the texts beside the ledger, on threads of
// its own while it runs. After the run.

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/time.h"
#include "common/model/token_counter.h"
#include "common/stats/series.h"
#include "coordinator/ledger/ledger.h"

namespace tutti {

struct LengthTerms {
  const model::TokenCounter* counter = nullptr;  // null: no lengths
  std::size_t threads = 4;
  std::function<bool()> interrupted{};  // asked a few times a second; true: stop
};

struct ReplyLengths {
  stats::IntSeries tokens;  // of successful replies that said something
  base::Duration took{};
  std::string problem;  // why `tokens` are not all of them; empty: they are
};

// Of the queries 0…issued − 1 of `phase`.
ReplyLengths reply_lengths(const ledger::Ledger& ledger, std::uint32_t phase, base::Seq issued,
                           const LengthTerms& terms, const base::Clock& clock);

}  // namespace tutti
