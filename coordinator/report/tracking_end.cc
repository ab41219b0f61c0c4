#include "coordinator/report/tracking_end.h"

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

}  // namespace tutti::report
