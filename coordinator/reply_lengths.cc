#include "coordinator/reply_lengths.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include "coordinator/token_counting.h"

namespace tutti {
namespace {

constexpr base::Seq kSlice = 64;  // of queries that a thread takes at once
constexpr auto kLook = std::chrono::milliseconds(100);

struct Work {
  const ledger::Ledger& ledger;
  const model::TokenCounter& counter;
  std::uint32_t phase = 0;
  base::Seq issued = 0;
  std::atomic<base::Seq> next{0};
  std::atomic<bool> stop{false};
};

// Tokens of one reply; −1: it has none that count.
base::Result<std::int64_t> length_of(const Work& work, base::Seq seq, ledger::Texts& texts) {
  const ledger::Fact* const fact = work.ledger.find(work.phase, seq);
  if (fact == nullptr || !fact->ok() || fact->text_bytes == 0) {
    return -1;
  }
  const auto counted = recorded_tokens(&work.counter, work.ledger, *fact, texts);
  return counted ? base::Result<std::int64_t>(counted->tokens.output)
                 : tl::unexpected(counted.error());
}

ReplyLengths count_slices(Work& work) {
  ReplyLengths out;
  ledger::Texts texts;
  while (!work.stop) {
    const base::Seq from = work.next.fetch_add(kSlice);
    if (from >= work.issued) {
      break;
    }
    for (base::Seq seq = from; seq < std::min(from + kSlice, work.issued) && !work.stop; ++seq) {
      const auto tokens = length_of(work, seq, texts);
      if (!tokens) {
        out.problem = tokens.error().message;
        work.stop = true;
      } else if (*tokens >= 0) {
        out.tokens.add(*tokens);
      }
    }
  }
  return out;
}

}  // namespace

ReplyLengths reply_lengths(const ledger::Ledger& ledger, std::uint32_t phase, base::Seq issued,
                           const LengthTerms& terms, const base::Clock& clock) {
  ReplyLengths out;
  if (terms.counter == nullptr) {
    return out;
  }
  const base::Instant began_at = clock.mono();
  Work work{ledger, *terms.counter, phase, issued};
  std::vector<std::future<ReplyLengths>> parts;
  for (std::size_t i = 0; i < std::max<std::size_t>(terms.threads, 1); ++i) {
    parts.push_back(std::async(std::launch::async, [&work] { return count_slices(work); }));
  }
  for (std::future<ReplyLengths>& part : parts) {
    while (part.wait_for(kLook) != std::future_status::ready) {
      if (!work.stop && terms.interrupted && terms.interrupted()) {
        work.stop = true;
        out.problem = "interrupted";
      }
    }
    ReplyLengths counted = part.get();
    out.tokens.merge(counted.tokens);
    out.problem = out.problem.empty() ? std::move(counted.problem) : out.problem;
  }
  out.took = clock.mono() - began_at;
  return out;
}

}  // namespace tutti
