#pragma once

// Planted: one bug a world can be made to have, on the side of the hands or of what they say to the
// machines, so that a test sees the judge find it. A judge that finds nothing here would find
// nothing in a million seeds either. Plain value.

#include <cstdint>

namespace tutti::sim {

enum class Planted : std::uint8_t {
  kNothing,
  // An agent's engine …
  kStartsTwice,     // sends a query again
  kOneSlotMore,     // has one more in flight than it was armed for
  kOtherRow,        // sends another row than the schedule's
  kRecordVanishes,  // loses a record, and does not say so
  kRecordTwice,     // hands one over twice
  kRecallIgnored,   // gives back what is recalled, and starts it all the same
  kGoesOnAlone,     // the same, only when its session has lost the coordinator
  kAbortIgnored,    // goes on after an abort
  kNoDelay,         // sends the next turn of a conversation at once
  // … its session …
  kNoSpool,        // writes nothing to its disk
  kCountVanishes,  // loses a count of tokens
  kClockLies,      // says that its clock shows 50 ms more than it does
  // … the coordinator …
  kLedgerForgets,  // stores a record less than it says
  kLossUnseen,     // bears with silence for ever
  kLossUntold,     // tells nobody of a lost agent
  kAllIsWell,      // calls every run complete and valid
  kRefusalUntold,  // gives no reason for a run's end
  kSlotsMove,      // arms the first agent for one slot more
};

}  // namespace tutti::sim
