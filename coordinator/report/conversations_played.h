#pragma once

// What became of a phase's conversations, and until when they are measured: the first one that ends
// when none is left to begin ends measuring, as from then on fewer are played than were asked for.
// Pure.

#include <cstdint>

#include "common/base/time.h"
#include "common/plan/trajectories.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

// On the coordinator's clock; what is issued at it or later is not measured. Not set: no
// conversation ended so, because the phase was stopped before.
base::Instant tracking_end(const ledger::Ledger& ledger, std::uint32_t phase,
                           const plan::Trajectories& trajectories);

// `issued`: as PhaseFacts::issued.
ConversationCount count_conversations(const ledger::Ledger& ledger, std::uint32_t phase,
                                      std::uint64_t issued, const plan::Trajectories& trajectories);

}  // namespace tutti::report
