#pragma once

// SessionMeter: what one interval of Health says of the session thread itself and of the host's
// TCP. Counters that only grow come in, differences go out. Pure; owned by the session thread.

#include "common/base/time.h"
#include "common/sys/tcp_counters.h"
#include "common/wire/messages.h"

namespace tutti::session {

struct SessionReading {
  base::Duration cpu{};  // of the session thread, ever
  sys::TcpCounters tcp{};
  base::Duration counting_cpu{};  // of the threads that count tokens, ever
};

class SessionMeter {
 public:
  // Waits end this late on a healthy host: they are in whole milliseconds.
  static constexpr base::Duration kWakeSlack = base::Duration::millis(2);

  // A turn of the session's loop from `began` to `ended`; from `due`, when its wait should have
  // ended at the latest, if it began later than that and kWakeSlack.
  void note_turn(base::Instant due, base::Instant began, base::Instant ended);

  void begin(const SessionReading& now);
  // Fills its part of `health`, whose interval is set, and starts the next one.
  void close(const SessionReading& now, wire::Health& health);

 private:
  SessionReading before_{};
  base::Duration turn_max_{};
};

}  // namespace tutti::session
