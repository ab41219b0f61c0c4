#pragma once

// What happens to a RunMachine and what it wants done: plain values, the whole of its interface to
// the world. The host turns sockets, signals and timers into events and performs the commands in
// the order given.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/plan/stop.h"
#include "common/wire/messages.h"
#include "coordinator/roster/roster.h"

namespace tutti::conduct {

using roster::AgentKey;

// ---- events ----------------------------------------------------------------------------------

// A connection to a possible agent exists. `dialled`: we called it, so we speak first.
struct PeerJoined {
  AgentKey agent = 0;
  bool dialled = false;
  std::string label;  // its address, for people
};
// Anything but a RecordBatch: those go to the ledger first and arrive as RecordsStored.
struct MessageFrom {
  AgentKey agent = 0;
  wire::Message message;
};
struct PeerLost {
  AgentKey agent = 0;
  std::string why;
};
// The ledger has durably taken batch `batch`; `records` are those that were new to it.
struct StoredRecord {
  std::uint16_t phase = 0;
  base::Seq seq = 0;
  wire::Outcome outcome = wire::Outcome::kOk;
};
struct RecordsStored {
  AgentKey agent = 0;
  std::uint64_t batch = 0;
  std::vector<StoredRecord> records;
};
// The coordinator could not store this batch: its agent is not told that it is safe, and keeps it.
// From then on nothing is stored.
struct RecordsRefused {
  AgentKey agent = 0;
  std::uint64_t batch = 0;
  std::vector<StoredRecord> records;
  std::string why;
};
enum class StopKind : std::uint8_t { kInterrupt = 0, kWatchdog = 1 };
// The first one stops issuing and drains; the second cancels what is in flight.
struct StopAsked {
  StopKind kind = StopKind::kInterrupt;
  std::string reason;
};
// Time has passed; see RunMachine::next_tick().
struct Tick {
  bool all_heard = true;  // nothing of an agent waits unread: its silence means something
};

using Event =
    std::variant<PeerJoined, MessageFrom, PeerLost, RecordsStored, RecordsRefused, StopAsked, Tick>;

// ---- commands --------------------------------------------------------------------------------

struct Send {
  AgentKey agent = 0;
  wire::Message message;
};
// Stream the body set, and after it the model, to this agent as BodyChunks; what it wants of them.
struct ShipBodies {
  AgentKey agent = 0;
  bool bodies = true;
  bool model = false;
};
// Nothing more will be said to this peer: deliver what is queued, then close.
struct Close {
  AgentKey agent = 0;
};
// `start_at` lies ahead, on the coordinator's clock. `slots` is C_i by agent, in the agents' name
// order.
struct PhaseStarted {
  std::uint32_t phase = 0;
  base::Instant start_at{};
  std::vector<std::pair<AgentKey, std::uint32_t>> slots;
};
// No further query of this phase will be leased: `issued` is final (the last ones may be on their
// way to an agent's free slots).
struct PhaseIssuingEnded {
  std::uint32_t phase = 0;
  base::Instant at{};
  base::Seq issued = 0;
  plan::StopCause cause = plan::StopCause::kCount;
  std::string reason;
};
// A query that has no record, named.
struct Missing {
  std::uint32_t phase = 0;
  base::Seq seq = 0;
  std::string agent;  // who had it; empty when nobody ever did
  std::string why;
};
struct PhaseTotals {
  base::Seq prefix = 0;  // queries [0, prefix) are exactly those issued, missing or withheld
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::vector<Missing> missing;  // by seq
  // Of the prefix, never issued and missed by nobody, ascending: turns of trajectories that a stop
  // cut short.
  std::vector<base::Seq> withheld;
};
struct PhaseEnded {
  std::uint32_t phase = 0;
  base::Instant at{};
  PhaseTotals totals;
};
enum class NoticeLevel : std::uint8_t { kInfo = 0, kWarning = 1, kError = 2 };
struct Notice {
  NoticeLevel level = NoticeLevel::kInfo;
  std::string text;
};
struct Outcome {
  base::ExitCode exit = base::ExitCode::kOk;
  bool complete = true;              // every phase ran to its end; false: files say "interrupted"
  bool valid = true;                 // false: an agent or a record was lost
  bool went_on = false;              // after losing an agent in a phase (AgentLoss::kContinue)
  bool any_phase = false;            // at least one phase started, so there is something to report
  std::vector<std::string> reasons;  // what went wrong, first cause first
};
// The last command of a run.
struct Finish {
  Outcome outcome;
};

using Command = std::variant<Send, ShipBodies, Close, PhaseStarted, PhaseIssuingEnded, PhaseEnded,
                             Notice, Finish>;

}  // namespace tutti::conduct
