#pragma once

// Seat: one agent's part in a phase, as far as messages and records tell, and the sums over all
// seats that decide how a phase goes on. Plain values; owned by a PhaseRun.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/time.h"
#include "common/wire/messages.h"
#include "coordinator/conduct/run_events.h"

namespace tutti::conduct {

// What a live view shows, too.
struct Seat {
  AgentKey agent = 0;
  std::string name;
  std::uint32_t slots = 0;

  bool lost = false;
  bool leaving = false;            // gave its commands back unasked: it gets no more
  std::uint64_t leased = 0;        // commands given, returned ones not counted
  std::uint64_t outstanding = 0;   // of those, without a record yet
  bool plays = false;              // a phase of trajectories: each takes one slot
  std::uint64_t trajectories = 0;  // of those, not over yet
  std::uint64_t started = 0;       // commands issued, by the agent's newest word
  std::uint64_t records_lost = 0;  // of those, never to have one, by the agent's own count
  base::Duration delay = base::Duration::millis(30);  // completion to replacement
  std::uint32_t recall_out = 0;                       // number of the unanswered recall; 0: none
  base::Instant asked_at{};  // when an answer became due: to the recall, or to Drain
  bool drain_sent = false;
  std::optional<wire::Drained> drained;
  std::uint64_t batch_stored = 0;

  // Slots taken and commands queued, as far as the records tell: the agent is never fuller.
  std::uint64_t load() const {
    const std::uint64_t held = plays ? trajectories : outstanding;
    return held - std::min(held, records_lost);
  }
  std::uint64_t queued() const { return load() > slots ? load() - slots : 0; }
  std::uint64_t free_slots() const { return slots > load() ? slots - load() : 0; }
  // Queries go on, so nothing is owed by an agent that was told to drain.
  bool busy() const { return outstanding > records_lost; }
  bool batches_here() const { return drained && batch_stored >= drained->last_batch; }
  // Nothing more will come of it.
  bool closed() const { return lost || (batches_here() && outstanding == 0); }
};

// What one seat adds to the sums over all of them.
struct SeatShare {
  std::uint64_t free = 0;    // slots that an agent which takes commands has free
  std::uint64_t queued = 0;  // commands that wait for a slot
  std::uint64_t begun = 0;   // 1: of its trajectories, turns are not sent yet
  std::uint64_t closed = 0;  // 1: it is
  bool busy = false;         // told to drain, and still at it
};
SeatShare share_of(const Seat& seat);

struct SeatSums {
  std::uint64_t free = 0;
  std::uint64_t queued = 0;
  std::uint64_t begun = 0;
  std::uint64_t closed = 0;

  void replace(const SeatShare& before, const SeatShare& now);
};

}  // namespace tutti::conduct
