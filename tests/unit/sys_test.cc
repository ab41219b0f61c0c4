#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>

#include "common/base/time.h"
#include "common/sys/fd.h"
#include "common/sys/limits.h"
#include "common/sys/poller.h"
#include "common/sys/process.h"
#include "common/sys/suspend.h"
#include "common/sys/tcp_counters.h"
#include "common/sys/timer.h"

namespace tutti::sys {
namespace {

bool readable(int fd, int timeout_ms) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, timeout_ms) == 1;
}

// A gap between the two reads must not look like sleep, and sleep is told once.
TEST(SuspendWatch, TellsSleepOnceAndNeverAPauseBetweenItsReads) {
  using base::Duration;
  SuspendWatch watch;
  const auto seconds = [](std::int64_t s) { return Duration::seconds(s); };
  EXPECT_EQ(watch.look({seconds(5), seconds(5)}), Duration{}) << "from before we began";
  EXPECT_EQ(watch.look({seconds(5), seconds(8)}), Duration{}) << "stopped while it read";
  EXPECT_EQ(watch.look({seconds(5), seconds(5)}), Duration{});
  EXPECT_EQ(watch.look({seconds(17), seconds(17)}), seconds(12));
  EXPECT_EQ(watch.look({seconds(17), seconds(17)}), Duration{});
  const SuspendReading now = read_suspended();
  EXPECT_LE(now.at_least, now.at_most);
}

TEST(Fd, ClosesOnceAndMoveLeavesNothingBehind) {
  int raw = -1;
  {
    Fd first(open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = first.get();
    Fd second = std::move(first);
    EXPECT_FALSE(first.is_open());
    EXPECT_EQ(second.get(), raw);
  }
  EXPECT_EQ(fcntl(raw, F_GETFD), -1);
}

TEST(Fd, AssignmentClosesWhatWasHeld) {
  Fd kept(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int old = kept.get();
  Fd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
  kept = std::move(other);
  EXPECT_EQ(fcntl(old, F_GETFD), -1);
  EXPECT_NE(fcntl(kept.get(), F_GETFD), -1);
}

TEST(Doorbell, ManyRingsAreOneAndQuietSilencesThem) {
  Doorbell bell;
  EXPECT_FALSE(readable(bell.fd(), 0));
  std::thread([&bell] {
    bell.ring();
    bell.ring();
  }).join();
  EXPECT_TRUE(readable(bell.fd(), 0));
  bell.quiet();
  EXPECT_FALSE(readable(bell.fd(), 0));
  bell.quiet();  // without a ring: does not block
}

TEST(AbsoluteTimer, IsNeverEarly) {
  const base::SystemClock clock;
  AbsoluteTimer timer;
  for (int i = 1; i <= 20; ++i) {
    const base::Instant due = clock.mono() + base::Duration::micros(i * 300);
    timer.set(due);
    ASSERT_TRUE(readable(timer.fd(), 2000));
    EXPECT_GE(clock.mono(), due);
    timer.quiet();
    EXPECT_FALSE(readable(timer.fd(), 0));
  }
}

TEST(AbsoluteTimer, FiresAtOnceForThePastAndNotAtAllWhenDisarmed) {
  const base::SystemClock clock;
  AbsoluteTimer timer;
  timer.set(clock.mono() - base::Duration::seconds(1));
  EXPECT_TRUE(readable(timer.fd(), 1000));
  timer.quiet();
  timer.set(clock.mono() + base::Duration::millis(5));
  timer.set(base::kFarFuture);
  EXPECT_FALSE(readable(timer.fd(), 30));
}

TEST(AbsoluteTimer, AtLatestKeepsTheEarlierInstant) {
  const base::SystemClock clock;
  AbsoluteTimer timer;
  const base::Instant now = clock.mono();
  timer.set_at_latest(now + base::Duration::millis(10));
  timer.set_at_latest(now + base::Duration::seconds(60));
  EXPECT_TRUE(readable(timer.fd(), 5000));
  timer.quiet();
  timer.set_at_latest(clock.mono() + base::Duration::seconds(60));
  timer.set_at_latest(clock.mono() + base::Duration::millis(5));
  EXPECT_TRUE(readable(timer.fd(), 5000));
}

TEST(Poller, ReportsTheDescriptorAndWhatItIsReadyFor) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  Fd here(pair[0]);
  Fd there(pair[1]);
  Poller poller(4);
  ASSERT_TRUE(poller.add(here.get(), kReadable));
  EXPECT_TRUE(poller.wait(0).empty());
  ASSERT_EQ(write(there.get(), "x", 1), 1);
  auto ready = poller.wait(1000);
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].fd, here.get());
  EXPECT_EQ(ready[0].events, kReadable);
  ASSERT_TRUE(poller.change(here.get(), kWritable));
  ready = poller.wait(0);
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].events, kWritable);
  poller.remove(here.get());
  EXPECT_TRUE(poller.wait(0).empty());
}

TEST(Poller, RefusesABadDescriptor) {
  Poller poller(1);
  EXPECT_FALSE(poller.add(-1, kReadable));
}

TEST(Limits, SoftIsRaisedToHard) {
  const OpenFilesLimit limit = raise_open_files_limit();
  EXPECT_GT(limit.soft, 0U);
  EXPECT_EQ(limit.soft, limit.hard);
  EXPECT_GT(ephemeral_ports(), 1000U);
}

TEST(Process, OpenDescriptorsFollowOpenAndClose) {
  const std::uint32_t before = open_descriptors();
  ASSERT_GT(before, 2U);
  {
    const Fd one(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Fd two(open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(open_descriptors(), before + 2);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// Placeholder keys ("test", "***") are usual with test servers, and paths may hold them.
TEST(Process, ASecretIsHiddenWhereItIsAValueAndNowhereElse) {
  const auto value = [](const char* name) { return std::string(std::getenv(name)); };
  setenv("TUTTI_TEST_WHOLE", "sk-secret", 1);
  setenv("TUTTI_TEST_WORD", "Bearer sk-secret", 1);
  setenv("TUTTI_TEST_PART", "/opt/sk-secret/cache", 1);
  setenv("TUTTI_TEST_TAIL", "/opt/sk-secret", 1);
  setenv("TUTTI_TEST_SHORT", "test", 1);
  setenv("TUTTI_TEST_STARS", "********", 1);
  for (const char* secret : {"sk-secret", "test", "", "********"}) {
    hide_in_environment(secret);
  }
  EXPECT_EQ(value("TUTTI_TEST_WHOLE"), "*********");
  EXPECT_EQ(value("TUTTI_TEST_WORD"), "Bearer *********");
  EXPECT_EQ(value("TUTTI_TEST_PART"), "/opt/sk-secret/cache");
  EXPECT_EQ(value("TUTTI_TEST_TAIL"), "/opt/sk-secret");
  EXPECT_EQ(value("TUTTI_TEST_SHORT"), "test");
}

TEST(Process, ThreadCpuGrowsWithWorkOnly) {
  const base::SystemClock clock;
  const base::Duration begin = thread_cpu();
  while ((thread_cpu() - begin) < base::Duration::millis(5)) {
  }
  std::atomic<bool> go_on{true};
  std::thread idle([&go_on] {
    while (go_on) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(thread_cpu(idle.native_handle()), base::Duration::millis(40));
  go_on = false;
  idle.join();
  EXPECT_GT(resident_bytes(), 1U << 20);
  EXPECT_GE(usable_cores(), 1U);
}

constexpr const char* kSnmp =
    "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
    "Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs\nTcp: 1 -1 123456789012 42\n"
    "Udp: InDatagrams OutSegs\nUdp: 5 6\n";

TEST(TcpCounters, AreReadByNameFromTheKernelsTwoLines) {
  EXPECT_EQ(snmp_value(kSnmp, "Tcp:", "OutSegs"), 123'456'789'012U);
  EXPECT_EQ(snmp_value(kSnmp, "Tcp:", "RetransSegs"), 42U);
  EXPECT_EQ(snmp_value(kSnmp, "Udp:", "OutSegs"), 6U);
}

TEST(TcpCounters, WhatIsNotThereIsZero) {
  EXPECT_EQ(snmp_value(kSnmp, "Tcp:", "Missing"), 0U);
  EXPECT_EQ(snmp_value(kSnmp, "Tcp6:", "OutSegs"), 0U);
  EXPECT_EQ(snmp_value("", "Tcp:", "OutSegs"), 0U);
  EXPECT_EQ(snmp_value("Tcp: OutSegs", "Tcp:", "OutSegs"), 0U);
  EXPECT_EQ(snmp_value("Tcp: A OutSegs\nTcp: 1", "Tcp:", "OutSegs"), 0U);
  EXPECT_EQ(sockstat_value("TCP: inuse", "TCP:", "inuse"), 0U);
}

TEST(TcpCounters, SocketsComeFromSockstat) {
  const char* text =
      "sockets: used 300\nTCP: inuse 27 orphan 0 tw 4 alloc 30 mem 3\nUDP: inuse 1\n";
  EXPECT_EQ(sockstat_value(text, "TCP:", "inuse"), 27U);
  EXPECT_EQ(sockstat_value(text, "TCP:", "tw"), 4U);
  EXPECT_EQ(sockstat_value(text, "UDP:", "inuse"), 1U);
}

TEST(TcpCounters, OfThisHostGrow) {
  const TcpCounters first = tcp_counters();
  const TcpCounters second = tcp_counters();
  EXPECT_GE(second.segments_sent, first.segments_sent);
  EXPECT_GE(second.retransmits, first.retransmits);
}

}  // namespace
}  // namespace tutti::sys
