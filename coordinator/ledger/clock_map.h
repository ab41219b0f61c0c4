#pragma once

// ClockMap: how one agent's monotonic clock lies against the coordinator's, over a whole run. Only
// window edges and the order of events of different agents depend on it; a duration inside one
// record never does: all stamps of a record are shifted by the same amount. Plain value, no owner.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/base/time.h"

namespace tutti::ledger {

// What was known at one instant.
struct ClockKnot {
  base::Instant at{};       // agent's clock
  base::Duration offset{};  // coordinator − agent
  base::Duration error{};   // the offset there was right within ± this
};

struct ClockMap {
  base::Duration offset{};  // coordinator − agent, in the middle of the run
  base::Duration error{};   // shift_at() is right within ± this, wherever in the run
  // Mean change of the offset, and how far it may be off; 1e-6 is a microsecond per second.
  double drift = 0;
  double drift_error = 0;
  std::uint64_t exchanges = 0;  // of stamps, that this stands on
  // By time, from the first exchange to the end of the run; straight between them, level beyond.
  // None: `offset` everywhere.
  std::vector<ClockKnot> knots{};

  // What to add to an agent's stamp, around its instant `at`.
  base::Duration shift_at(base::Instant at) const {
    const auto right = std::upper_bound(
        knots.begin(), knots.end(), at,
        [](base::Instant instant, const ClockKnot& knot) { return instant < knot.at; });
    if (knots.empty()) {
      return offset;
    }
    if (right == knots.begin() || right == knots.end()) {
      return right == knots.end() ? knots.back().offset : right->offset;
    }
    const ClockKnot& left = *(right - 1);
    const double part =
        static_cast<double>((at - left.at).ns) / static_cast<double>((right->at - left.at).ns);
    const double climb = static_cast<double>((right->offset - left.offset).ns);
    return left.offset + base::Duration{std::llround(part * climb)};
  }

  // The coordinator's instant for an agent's. "Not there" stays "not there".
  base::Instant to_coordinator(base::Instant agent) const {
    return agent.is_set() ? agent + shift_at(agent) : agent;
  }
};

}  // namespace tutti::ledger
