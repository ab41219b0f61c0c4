#include "agent/session/session_meter.h"

#include <algorithm>

namespace tutti::session {
namespace {

// A counter that a new namespace or a wrap set back counts from nothing.
std::uint64_t grown(std::uint64_t before, std::uint64_t now) { return now - std::min(before, now); }

}  // namespace

void SessionMeter::note_turn(base::Instant due, base::Instant began, base::Instant ended) {
  turn_max_ = std::max(turn_max_, ended - (began > due + kWakeSlack ? due : began));
}

void SessionMeter::begin(const SessionReading& now) {
  before_ = now;
  turn_max_ = {};
}

void SessionMeter::close(const SessionReading& now, wire::Health& health) {
  const base::Duration interval = health.to - health.from;
  if (interval.ns > 0) {
    health.cpu_session = (now.cpu - before_.cpu).to_seconds() / interval.to_seconds();
    health.cpu_counting =
        (now.counting_cpu - before_.counting_cpu).to_seconds() / interval.to_seconds();
  }
  health.session_turn_max = turn_max_;
  health.retransmits = grown(before_.tcp.retransmits, now.tcp.retransmits);
  health.segments_sent = grown(before_.tcp.segments_sent, now.tcp.segments_sent);
  health.sockets_in_use = now.tcp.sockets_in_use;
  health.sockets_time_wait = now.tcp.sockets_time_wait;
  begin(now);
}

}  // namespace tutti::session
