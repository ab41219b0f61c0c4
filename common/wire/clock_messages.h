#pragma once

// How an agent's clock is measured: the coordinator's ping, and the pong with the agent's instants.
// Part of messages.h, which says what all of them promise. Plain values.

#include <cstdint>

#include "common/base/time.h"

namespace tutti::wire {

// down; answered at once. Offsets come from the exchanges with the smallest round trip.
struct ClockPing {
  std::uint64_t number = 0;
  base::Instant coordinator_sent{};

  friend bool operator==(const ClockPing&, const ClockPing&) = default;
};
// up
struct ClockPong {
  std::uint64_t number = 0;
  base::Instant coordinator_sent{};
  base::Instant agent_received{};
  base::Instant agent_sent{};

  friend bool operator==(const ClockPong&, const ClockPong&) = default;
};

}  // namespace tutti::wire
