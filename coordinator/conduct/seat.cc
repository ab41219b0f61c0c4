#include "coordinator/conduct/seat.h"

namespace tutti::conduct {

SeatShare share_of(const Seat& seat) {
  SeatShare share;
  if (!seat.lost) {
    share.free = seat.leaving ? 0 : seat.free_slots();
    share.queued = seat.queued();
    share.begun = seat.plays && seat.load() > 0 && seat.started < seat.leased ? 1 : 0;
  }
  share.closed = seat.closed() ? 1 : 0;
  share.busy = seat.drain_sent && seat.busy();
  return share;
}

// Differences modulo 2^64, and right in the sum.
void SeatSums::replace(const SeatShare& before, const SeatShare& now) {
  free += now.free - before.free;
  queued += now.queued - before.queued;
  begun += now.begun - before.begun;
  closed += now.closed - before.closed;
}

}  // namespace tutti::conduct
