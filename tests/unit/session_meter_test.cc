// The session thread's part of an interval: its CPU share, its longest turn (a late wake-up counts
// from when it was due), and the differences of the host's TCP counters.

#include "agent/session/session_meter.h"

#include <gtest/gtest.h>

namespace tutti::session {
namespace {

using base::Duration;
using base::Instant;

constexpr Instant kStart{5'000'000'000};

wire::Health interval(Duration length) {
  wire::Health health;
  health.from = kStart;
  health.to = kStart + length;
  return health;
}

SessionReading reading(Duration cpu, std::uint64_t retransmits) {
  SessionReading out;
  out.cpu = cpu;
  out.tcp.retransmits = retransmits;
  out.tcp.segments_sent = retransmits * 100;
  out.tcp.sockets_in_use = 12;
  out.tcp.sockets_time_wait = 3;
  return out;
}

TEST(SessionMeter, SharesAndDifferencesAreOfTheInterval) {
  SessionMeter meter;
  meter.begin(reading(Duration::seconds(3), 40));
  wire::Health health = interval(Duration::seconds(2));
  meter.close(reading(Duration::millis(3500), 47), health);
  EXPECT_DOUBLE_EQ(health.cpu_session, 0.25);
  EXPECT_EQ(health.retransmits, 7U);
  EXPECT_EQ(health.segments_sent, 700U);
  EXPECT_EQ(health.sockets_in_use, 12U);
  EXPECT_EQ(health.sockets_time_wait, 3U);
  wire::Health next = interval(Duration::seconds(1));
  meter.close(reading(Duration::millis(3600), 47), next);
  EXPECT_DOUBLE_EQ(next.cpu_session, 0.1);
  EXPECT_EQ(next.retransmits, 0U);
}

TEST(SessionMeter, ACounterThatWentBackIsNoHugeNumber) {
  SessionMeter meter;
  meter.begin(reading({}, 1000));
  wire::Health health = interval(Duration::seconds(1));
  meter.close(reading({}, 10), health);
  EXPECT_EQ(health.retransmits, 0U);
}

TEST(SessionMeter, ALateWakeUpCountsFromWhenItWasDue) {
  SessionMeter meter;
  const auto longest = [&meter] {
    wire::Health health = interval(Duration::seconds(1));
    meter.close({}, health);
    return health.session_turn_max;
  };
  const Instant due = kStart + Duration::millis(100);
  meter.note_turn(due, kStart + Duration::millis(40), kStart + Duration::millis(43));
  EXPECT_EQ(longest(), Duration::millis(3)) << "woken early, by a message";
  meter.note_turn(due, due + SessionMeter::kWakeSlack, due + Duration::millis(3));
  EXPECT_EQ(longest(), Duration::millis(1)) << "as late as healthy waits are";
  meter.note_turn(due, due + Duration::millis(1500), due + Duration::millis(1501));
  meter.note_turn(due, due, due + Duration::millis(5));
  EXPECT_EQ(longest(), Duration::millis(1501));
  EXPECT_EQ(longest().ns, 0) << "an interval's own";
}

}  // namespace
}  // namespace tutti::session
