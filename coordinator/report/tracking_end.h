#pragma once

// When measuring of a phase of conversations ends: with the first conversation that ends when none
// is left to begin, as from then on fewer are played than were asked for. Pure.

#include <cstdint>

#include "common/base/time.h"
#include "common/plan/trajectories.h"
#include "coordinator/ledger/ledger.h"

namespace tutti::report {

// On the coordinator's clock; what is issued at it or later is not measured. Not set: no
// conversation ended so, because the phase was stopped before.
base::Instant tracking_end(const ledger::Ledger& ledger, std::uint32_t phase,
                           const plan::Trajectories& trajectories);

}  // namespace tutti::report
