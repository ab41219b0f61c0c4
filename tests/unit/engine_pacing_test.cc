// When queries start: closed loop, timed, burst; slots, phases and their gauges.

#include "tests/unit/bare_transport.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedRequest;
using support::ScriptedServer;

TEST(EnginePacing, AClosedLoopHoldsExactlyItsSlotsOverSeveralWorkers) {
  ScriptedServer server(streams({"a"}, 3ms));
  EngineRig rig({server.url()});
  rig.config.slots = 24;  // more than the phase may use
  rig.config.workers = 3;
  rig.arm(base::Pacing::kClosedLoop, 8);
  rig.issue(300);
  ASSERT_TRUE(rig.pump_records(300));
  EXPECT_EQ(server.in_flight_max(), 8U);
  EXPECT_EQ(rig.seqs(), first_seqs(300));
}

TEST(EnginePacing, ArmingAgainWithFewerSlotsShrinksTheLoop) {
  std::atomic<bool> release{false};
  std::atomic<std::size_t> running{0};
  std::atomic<std::size_t> running_max{0};
  ScriptedServer server([&](const ScriptedRequest& request) {
    if (request.number < 6) {
      EngineRig::wait([&] { return release.load(); });
    } else {
      const std::size_t now = ++running;
      std::size_t seen = running_max;
      while (now > seen && !running_max.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::sleep_for(2ms);
      --running;
    }
    return support::stream_script({"a"});
  });
  EngineRig rig({server.url()});
  rig.config.slots = 6;
  rig.arm(base::Pacing::kClosedLoop, 6);
  rig.issue(60);
  ASSERT_TRUE(EngineRig::wait([&] { return server.requests() == 6; }));
  rig.engine().arm(0, base::Pacing::kClosedLoop, 2, rig.start_at);
  // The order goes through the worker's ring; a recall's answer shows that it has passed.
  rig.engine().recall(9, 1);
  ASSERT_TRUE(rig.pump([&] { return rig.recalled.size() == 1; }));
  release = true;
  ASSERT_TRUE(rig.pump_records(60));
  EXPECT_LE(running_max.load(), 2U);
  EXPECT_EQ(rig.seqs(), first_seqs(60));
}

TEST(EnginePacing, AFreedSlotIsRefilledWithoutTheSession) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(50);
  ASSERT_TRUE(EngineRig::wait([&] { return server.requests() == 50; }));
  ASSERT_TRUE(rig.pump_records(50));
  for (std::size_t i = 1; i < 50; ++i) {
    EXPECT_EQ(rig.records[i].seq, i);
    EXPECT_EQ(rig.records[i].due_at, rig.records[i - 1].done_at);
    EXPECT_GE(rig.records[i].issued_at, rig.records[i].due_at);
  }
}

TEST(EnginePacing, NothingStartsBeforeThePhase) {
  ScriptedServer server(streams({"a"}));
  for (const auto pacing :
       {base::Pacing::kClosedLoop, base::Pacing::kBurst, base::Pacing::kTimed}) {
    EngineRig rig({server.url()});
    rig.config.slots = 2;
    rig.arm(pacing, 2, 0, Duration::millis(60));
    rig.issue(4);
    ASSERT_TRUE(rig.pump_records(4));
    for (const auto& record : rig.records) {
      EXPECT_GE(record.due_at, rig.start_at);
      EXPECT_GE(record.issued_at, record.due_at);
    }
  }
}

TEST(EnginePacing, TimedCommandsFireAtTheirInstantNeverEarly) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 50;
  rig.config.workers = 2;
  rig.arm(base::Pacing::kTimed, 50, 0, Duration::millis(30));
  auto commands = EngineRig::commands(0, 100);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    commands[i].due_offset = Duration::micros(static_cast<std::int64_t>(2'000 * i + 137 * (i % 7)));
  }
  ASSERT_EQ(rig.engine().issue(0, commands), 100U);
  ASSERT_TRUE(rig.pump_records(100));
  std::vector<std::int64_t> lags;
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.due_at, rig.start_at + commands[record.seq].due_offset);
    EXPECT_GE(record.issued_at, record.due_at);
    EXPECT_GE(record.sent_at, record.due_at);
    lags.push_back((record.issued_at - record.due_at).ns);
  }
  std::sort(lags.begin(), lags.end());
  // Generous, for a busy machine; tests/bench measures how late they really are.
  EXPECT_LT(lags[50], 500'000'000);
}

TEST(EnginePacing, TimedCommandsOutOfOrderStillFireByDueTime) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 10;
  rig.arm(base::Pacing::kTimed, 10, 0, Duration::millis(20));
  auto commands = EngineRig::commands(0, 2);
  commands[0].due_offset = Duration::millis(200);
  commands[1].due_offset = Duration::millis(10);
  ASSERT_EQ(rig.engine().issue(0, commands), 2U);
  ASSERT_TRUE(rig.pump_records(2));
  EXPECT_EQ(rig.records[0].seq, 1U);
  EXPECT_LE(rig.records[0].issued_at, rig.records[1].issued_at);
}

TEST(EnginePacing, LateTimedCommandsFireAtOnceAndShowTheirLag) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.arm(base::Pacing::kTimed, 1, 0, Duration{} - Duration::millis(100));
  rig.issue(1);
  ASSERT_TRUE(rig.pump_records(1));
  EXPECT_EQ(rig.records[0].due_at, rig.start_at);
  EXPECT_GE(rig.records[0].issued_at - rig.records[0].due_at, Duration::millis(100));
}

TEST(EnginePacing, ATimedCommandWithoutASlotIsIssuedOnTimeAndWaits) {
  std::atomic<bool> release{false};
  ScriptedServer server([&](const ScriptedRequest&) {
    EngineRig::wait([&] { return release.load(); });
    return support::stream_script({"a"});
  });
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  rig.arm(base::Pacing::kTimed, 1);
  auto commands = EngineRig::commands(0, 3);
  for (auto& command : commands) {
    command.due_offset = Duration::millis(10);
  }
  ASSERT_EQ(rig.engine().issue(0, commands), 3U);
  ASSERT_TRUE(EngineRig::wait(
      [&] { return server.requests() == 1 && rig.engine().progress().started == 3; }));
  EXPECT_EQ(rig.engine().progress().queued, 2U);
  const Instant released_at = rig.clock.mono();
  release = true;
  ASSERT_TRUE(rig.pump_records(3));
  EXPECT_EQ(server.in_flight_max(), 1U);
  const wire::Record& last = rig.records[2];
  EXPECT_EQ(last.seq, 2U);
  EXPECT_LT(last.issued_at, released_at);
  EXPECT_GT(last.sent_at, released_at);
}

TEST(EnginePacing, ABurstIsDueAtTheStartAndNeverExceedsItsSlots) {
  ScriptedServer server(streams({"a"}, 2ms));
  EngineRig rig({server.url()});
  rig.config.slots = 21;
  rig.config.workers = 3;
  rig.arm(base::Pacing::kBurst, 7);
  rig.issue(200);
  ASSERT_TRUE(rig.pump_records(200));
  EXPECT_LE(server.in_flight_max(), 7U);
  EXPECT_GE(server.in_flight_max(), 5U);
  EXPECT_EQ(rig.seqs(), first_seqs(200));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.due_at, rig.start_at);
  }
}

TEST(EnginePacing, ManySlotsSpreadOverSeveralMultis) {
  std::atomic<std::size_t> arrived{0};
  ScriptedServer server([&](const ScriptedRequest&) {
    ++arrived;
    EngineRig::wait([&] { return arrived >= 300; }, 60s);  // all slots are in flight
    return support::stream_script({"a", "b"});
  });
  EngineRig rig({server.url()});
  rig.config.slots = 300;
  rig.arm(base::Pacing::kClosedLoop, 300);
  rig.issue(600);
  ASSERT_TRUE(rig.pump([&] { return rig.records.size() == 600; }, 100s));
  EXPECT_EQ(server.in_flight_max(), 300U);
  EXPECT_EQ(rig.seqs(), first_seqs(600));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
}

TEST(EnginePacing, CommandsMayComeBeforeTheirPhaseIsArmed) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 2;
  rig.config.workers = 2;
  rig.arm(base::Pacing::kClosedLoop, 2, 0);
  rig.issue(3, 0, 1);
  std::this_thread::sleep_for(50ms);
  rig.poll_once();
  EXPECT_TRUE(rig.records.empty());
  EXPECT_EQ(rig.engine().outstanding(1), 3U);
  rig.arm(base::Pacing::kClosedLoop, 2, 1);
  ASSERT_TRUE(rig.drain(1));
  EXPECT_EQ(rig.seqs(), first_seqs(3));
  EXPECT_EQ(rig.records[0].phase, 1);
}

TEST(EnginePacing, StragglersOfAnOldPhaseDoNotTakeTheNewOnesSlots) {
  ScriptedServer server([](const ScriptedRequest& request) {
    return support::stream_script({"a"}, request.number < 2 ? 400ms : 1ms);
  });
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  rig.arm(base::Pacing::kClosedLoop, 2, 0);
  rig.issue(2, 0, 0);
  ASSERT_TRUE(EngineRig::wait([&] { return server.requests() == 2; }));
  rig.arm(base::Pacing::kClosedLoop, 2, 1);
  rig.issue(20, 0, 1);
  ASSERT_TRUE(rig.drain(1));
  EXPECT_EQ(rig.records.size(), 20U);
  EXPECT_EQ(rig.engine().outstanding(0), 2U);
  ASSERT_TRUE(rig.drain(0));
  EXPECT_EQ(rig.records.size(), 22U);
}

TEST(EnginePacing, ProgressCountsWhatHappened) {
  ScriptedServer good(streams({"a", "b", "c"}, 5ms));
  EngineRig rig({good.url(), fmt::format("http://127.0.0.1:{}/x", support::closed_port())});
  rig.config.slots = 4;
  rig.config.workers = 2;
  rig.config.target.balance = base::Balance::kRoundRobin;
  rig.engine().progress();
  rig.arm(base::Pacing::kClosedLoop, 4, 3);
  rig.issue(40, 0, 3);
  ASSERT_TRUE(rig.drain(3));
  const wire::Progress progress = rig.engine().progress();
  EXPECT_EQ(progress.phase, 3U);
  EXPECT_EQ(progress.started, 40U);
  EXPECT_EQ(progress.done, 40U);
  EXPECT_EQ(progress.failed, 20U);
  EXPECT_EQ(progress.in_flight, 0U);
  EXPECT_EQ(progress.queued, 0U);
  EXPECT_EQ(progress.output_tokens, 60U);
  ASSERT_EQ(progress.frontends.size(), 2U);
  EXPECT_EQ(progress.frontends[0].done, 20U);
  EXPECT_EQ(progress.frontends[0].failed, 0U);
  EXPECT_EQ(progress.frontends[1].failed, 20U);
  EXPECT_GT(progress.last_response_at, rig.start_at);
  std::uint64_t ttft = 0;
  for (const auto& [cell, count] : progress.ttft.cells) {
    ttft += count;
  }
  EXPECT_EQ(ttft, 20U);
  EXPECT_TRUE(progress.tpot.cells.empty()) << "no usage came, and events are no tokens";
  const wire::Health health = rig.engine().health(rig.clock.mono());
  EXPECT_GT(health.issue_lag_p99.ns, 0);
  EXPECT_GT(health.turn_max.ns, 0);
  EXPECT_GT(health.cpu_busiest_worker, 0.0);
  EXPECT_LT(health.cpu_busiest_worker, 1.5);
  EXPECT_GT(health.open_fds, 8U);
  EXPECT_GT(health.rss_bytes, 1U << 20);
  EXPECT_TRUE(rig.engine().progress().ttft.cells.empty());
}

TEST(EnginePacing, QueriesThatFillTheSlotsAtTheStartAreNotCalledLate) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  rig.arm(base::Pacing::kClosedLoop, 4);
  std::this_thread::sleep_for(20ms);  // so late that no clock could miss it
  rig.issue(4);
  ASSERT_TRUE(rig.pump_records(4));
  const wire::Health fill = rig.engine().health(rig.clock.mono());
  EXPECT_EQ(fill.issue_lag_max.ns, 0);
  EXPECT_LT(fill.from, fill.to);
  std::this_thread::sleep_for(20ms);  // now slots are free and nothing comes: that is lateness
  rig.issue(4, 4);
  ASSERT_TRUE(rig.pump_records(8));
  EXPECT_GE(rig.engine().health(rig.clock.mono()).issue_lag_max, Duration::millis(19));
}

TEST(EnginePacing, TheRecordRingsPeakAndConnectionsAreSeenAfterTheRingIsEmpty) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.record_ring = 16;
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(8);
  ASSERT_TRUE(EngineRig::wait([&] { return rig.engine().progress().done == 8; }));
  ASSERT_TRUE(rig.pump_records(8));
  const wire::Health health = rig.engine().health(rig.clock.mono());
  EXPECT_EQ(health.ring_fill_percent, 50U);
  EXPECT_EQ(health.connections, 1U);
  EXPECT_GT(health.fd_limit, health.open_fds);
  EXPECT_EQ(rig.engine().health(rig.clock.mono()).ring_fill_percent, 0U);
}

// Of either way: what was started needs no turn of the loop beside the flush to be on the wire, so
// a reply that comes is the only reason to wait.
TEST(EnginePacing, AHandfulOnKeptConnectionsIsOnTheWireAfterTheFlush) {
  constexpr std::size_t kHandful = 3;
  ScriptedServer server(streams({"a"}, 20ms));
  EngineRig rig({server.url()});
  BareTransport transport(rig);
  transport.start(kHandful);
  ASSERT_TRUE(transport.pump(kHandful));  // three connections stand
  for (std::size_t round = 1; round < 4; ++round) {
    transport.start(kHandful);
    EXPECT_TRUE(EngineRig::wait([&] { return server.requests() == (round + 1) * kHandful; }));
    ASSERT_TRUE(transport.pump((round + 1) * kHandful));
  }
  EXPECT_EQ(server.connections(), kHandful);
}

}  // namespace
}  // namespace tutti::drive
