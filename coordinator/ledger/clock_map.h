#pragma once

// ClockMap: how one agent's monotonic clock lies against the coordinator's. Only window edges and
// the order of events of different agents depend on it; a duration inside one record never does.
// Plain value, no owner.

#include "common/base/time.h"

namespace tutti::ledger {

struct ClockMap {
  base::Duration offset{};  // coordinator − agent
  base::Duration error{};   // the offset is right within ± this

  // The coordinator's instant for an agent's. "Not there" stays "not there".
  base::Instant to_coordinator(base::Instant agent) const {
    return agent.is_set() ? agent + offset : agent;
  }
};

}  // namespace tutti::ledger
