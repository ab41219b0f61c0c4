#include "coordinator/report/conversations_played.h"

#include <algorithm>

#include "coordinator/report/ledger_rows.h"

namespace tutti::report {

base::Instant tracking_end(const ledger::Ledger& ledger, std::uint32_t phase,
                           const plan::Trajectories& trajectories) {
  base::Instant all_begun{};
  for (std::uint64_t k = 0; k < trajectories.count(); ++k) {
    const ledger::Fact* const first = ledger.find(phase, trajectories.first_seq(k));
    if (first == nullptr) {
      return {};
    }
    all_begun = std::max(all_begun, issued_at(ledger, *first));
  }
  base::Instant end = base::kFarFuture;
  for (std::uint64_t k = 0; k < trajectories.count(); ++k) {
    const ledger::Fact* const last = ledger.find(phase, trajectories.first_seq(k + 1) - 1);
    if (last != nullptr) {
      const base::Instant at = ledger.to_coordinator(*last, last->done_at);
      end = at > all_begun ? std::min(end, at) : end;
    }
  }
  // The turn that ended then is measured, and one that is issued in the same nanosecond.
  return end == base::kFarFuture ? base::Instant{} : end + base::Duration{1};
}

ConversationCount count_conversations(const ledger::Ledger& ledger, std::uint32_t phase,
                                      std::uint64_t issued,
                                      const plan::Trajectories& trajectories) {
  ConversationCount count;
  count.planned = trajectories.count();
  for (std::uint64_t k = 0; k < trajectories.count(); ++k) {
    std::uint64_t answered = 0;
    bool begun = false;
    bool failed = false;
    for (base::Seq seq = trajectories.first_seq(k); seq < trajectories.first_seq(k + 1); ++seq) {
      const ledger::Fact* const fact = ledger.find(phase, seq);
      if (fact == nullptr) {
        begun = begun || (seq < issued && !ledger.is_withheld(phase, seq));
        continue;
      }
      begun = true;
      answered += fact->ok() ? 1U : 0U;
      failed = failed || fact->outcome == wire::Outcome::kFailed;
      count.turns_skipped += fact->failure == wire::Failure::kTurnSkipped ? 1U : 0U;
    }
    count.begun += begun ? 1U : 0U;
    count.whole += answered == trajectories.turns(k) ? 1U : 0U;
    count.failed += failed ? 1U : 0U;
  }
  count.turns_withheld = ledger.withheld_count(phase);
  return count;
}

}  // namespace tutti::report
