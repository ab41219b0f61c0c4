#pragma once

// From what the pings told of an agent's clock to the one map its records are read with: knots at
// equal distances over the run, and a bound that holds between them too. Pure. Owner: the host,
// when a run has ended.

#include "common/base/time.h"
#include "coordinator/ledger/clock_map.h"
#include "coordinator/roster/clock_estimate.h"

namespace tutti::conduct {

inline constexpr std::int64_t kClockStretchesMax = 128;

// Of the coordinator's time from the first exchange to `to`. Needs an exchange (TUTTI_CHECK).
ledger::ClockMap fit_clock(const roster::ClockEstimate& clock, base::Instant to);

}  // namespace tutti::conduct
