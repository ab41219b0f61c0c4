// AgentMachine's promises, one story each. With a network between it and a coordinator: tests/sim.

#include "agent/session/agent_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/unit/agent_bench.h"

namespace tutti::session {
namespace {

using base::Duration;
using base::ExitCode;
using base::Instant;
using ::testing::HasSubstr;

TEST(AgentMachine, SaysHelloAtOnceOrWaitsToBeDialled) {
  Bench dialler;
  EXPECT_EQ(dialler.said<wire::Hello>().size(), 1U);
  Bench listener(true);
  EXPECT_TRUE(listener.said<wire::Hello>().empty());
  listener.hear(wire::Dial{});
  EXPECT_EQ(listener.said<wire::Hello>().size(), 1U);
}

TEST(AgentMachine, ARefusalEndsItWithThree) {
  Bench bench;
  bench.hear(wire::Refused{"name taken"});
  const auto exits = bench.done<Exit>();
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].code, ExitCode::kSetup);
  EXPECT_THAT(exits[0].reason, HasSubstr("name taken"));
  EXPECT_TRUE(bench.machine.gone());
}

TEST(AgentMachine, TakesTheTermsAndAnswersPings) {
  Bench bench;
  bench.get_ready();
  auto terms = bench.done<SetLiveness>();
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms[0].lost_after, Duration::seconds(3));
  EXPECT_EQ(terms[1].lost_after, Duration::seconds(30)) << "while it prepares";
  EXPECT_EQ(bench.machine.number(), 5U);
  bench.hear(wire::ClockPing{9, Instant{1}});
  const auto pongs = bench.said<wire::ClockPong>();
  ASSERT_EQ(pongs.size(), 1U);
  EXPECT_EQ(pongs[0].number, 9U);
  EXPECT_EQ(pongs[0].agent_received, bench.now);
}

TEST(AgentMachine, FetchesBodiesItDoesNotHave) {
  Bench bench;
  bench.hear(wire::Welcome{});
  wire::Prepare prepare;
  prepare.bodies_hash = "abc";
  prepare.slots = 12;
  bench.hear(prepare);
  ASSERT_EQ(bench.done<OpenBodies>().at(0).hash, "abc");
  bench.step(BodiesOpened{false, {}});
  EXPECT_TRUE(bench.said<wire::BodiesWanted>().at(0).wanted);
  bench.hear(wire::BodyChunk{0, "x", false});
  bench.hear(wire::BodyChunk{9, "y", true});
  EXPECT_EQ(bench.done<StoreBodies>().size(), 2U);
  EXPECT_TRUE(bench.done<EngineStart>().empty());
  bench.step(BodiesStored{});
  const auto starts = bench.done<EngineStart>();
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].slots, 12U);
  EXPECT_EQ(starts[0].queue_max, 12U + AgentMachine::kQueueMax);
  bench.step(EngineWarmed{{}, {{true, 1, ""}, {false, 0, "refused"}}, 3});
  const auto prepared = bench.said<wire::Prepared>();
  ASSERT_EQ(prepared.size(), 1U);
  EXPECT_TRUE(prepared[0].error.empty());
  EXPECT_EQ(prepared[0].frontends.size(), 2U);
}

TEST(AgentMachine, SaysWhyItIsNotReady) {
  Bench bench;
  bench.hear(wire::Welcome{});
  bench.hear(wire::Prepare{});
  bench.step(BodiesOpened{false, {}});
  bench.hear(wire::BodyChunk{0, "x", false});
  bench.step(BodiesStored{"disk full"});
  EXPECT_EQ(bench.said<wire::Prepared>().at(0).error, "disk full");
  bench.hear(wire::Goodbye{"called off"});
  EXPECT_EQ(bench.done<Exit>().at(0).code, ExitCode::kExecution);
}

TEST(AgentMachine, BatchesAt256RecordsOrAfter20Milliseconds) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 1000);
  ASSERT_EQ(bench.done<EngineIssue>().at(0).commands.size(), 1000U);
  bench.finish(0, 255);
  EXPECT_TRUE(bench.said<wire::RecordBatch>().empty());
  bench.finish(255, 600);
  auto batches = bench.said<wire::RecordBatch>();
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].number, 1U);
  EXPECT_EQ(batches[1].records.size(), RecordBatcher::kBatchMax);
  bench.pass(Duration::millis(15));
  EXPECT_TRUE(bench.said<wire::RecordBatch>().empty());
  bench.pass(Duration::millis(5));
  batches = bench.said<wire::RecordBatch>();
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].records.size(), 88U);
  EXPECT_EQ(bench.done<SpoolAppend>().size(), 3U);
}

TEST(AgentMachine, AStarvingClosedLoopDoesNotWaitForABatch) {
  Bench bench;
  bench.get_ready();
  bench.arm(base::Pacing::kClosedLoop, 2);
  bench.lease(0, 4);
  bench.finish(0, 1);
  EXPECT_TRUE(bench.said<wire::RecordBatch>().empty());  // a queued command took the slot
  bench.finish(1, 3);
  EXPECT_EQ(bench.said<wire::RecordBatch>().size(), 1U);
}

TEST(AgentMachine, UnacknowledgedBatchesAreBoundedAndStillSpooled) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  const base::Seq all = RecordBatcher::kBatchMax * (RecordBatcher::kUnackedMax + 10);
  bench.lease(0, all);
  bench.finish(0, all);
  EXPECT_EQ(bench.said<wire::RecordBatch>().size(), RecordBatcher::kUnackedMax);
  EXPECT_EQ(bench.done<SpoolAppend>().size(), RecordBatcher::kUnackedMax + 10);
  bench.hear(wire::Drain{7});
  EXPECT_TRUE(bench.said<wire::Drained>().empty());
  bench.hear(wire::BatchAck{4});
  EXPECT_EQ(bench.said<wire::RecordBatch>().size(), 4U);
  EXPECT_EQ(bench.done<SpoolForget>().at(0).number, 4U);
  bench.hear(wire::BatchAck{100});
  const auto drained = bench.said<wire::Drained>();
  ASSERT_EQ(drained.size(), 1U);
  EXPECT_EQ(drained[0].last_batch, RecordBatcher::kUnackedMax + 10);
  EXPECT_EQ(drained[0].started, all);
}

TEST(AgentMachine, DrainedComesAfterTheLastRecordAndItsBatch) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 3);
  bench.hear(wire::Recall{7, 1});
  bench.step(EngineRecalled{7, 1, {2}});
  EXPECT_EQ(bench.said<wire::Recalled>().at(0).unstarted, std::vector<base::Seq>{2});
  bench.hear(wire::Drain{7});
  bench.finish(0, 1);
  EXPECT_TRUE(bench.said<wire::Drained>().empty());
  bench.commands.clear();
  bench.finish(1, 2);
  // In this order: the batch, then the word.
  std::vector<std::string> order;
  for (const Command& command : bench.commands) {
    if (const auto* send = std::get_if<Send>(&command)) {
      order.push_back(std::holds_alternative<wire::Drained>(send->message) ? "drained" : "batch");
    }
  }
  EXPECT_EQ(order, (std::vector<std::string>{"batch", "drained"}));
  const auto drained = bench.said<wire::Drained>();
  EXPECT_EQ(drained.at(0).started, 2U);
  EXPECT_EQ(bench.machine.state(), AgentState::kReady);
}

TEST(AgentMachine, LostRecordsDoNotHoldUpTheDrain) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 2);
  bench.finish(0, 1);
  bench.hear(wire::Drain{7});
  bench.pass(Duration::millis(300));
  ASSERT_FALSE(bench.done<ReadGauges>().empty());
  wire::Progress progress;
  progress.health.records_lost = 1;
  bench.step(Gauges{progress});
  EXPECT_EQ(bench.said<wire::Progress>().at(0).phase, 7U);
  EXPECT_EQ(bench.said<wire::Drained>().size(), 1U);
}

// When intervals of health are closed, in ms from the phase's start, over `time`.
std::vector<std::int64_t> closings(Bench& bench, Instant start_at, Duration time) {
  std::vector<std::int64_t> found;
  const Instant until = bench.now + time;
  while (bench.now < until) {
    bench.pass(Duration::millis(5));
    for (const ReadGauges& read : bench.done<ReadGauges>()) {
      if (read.close_interval) {
        found.push_back((bench.now - start_at).ns / 1'000'000);
      }
    }
  }
  return found;
}

TEST(AgentMachine, HealthIsToldBySecondsOfThePhaseWhateverTheHeartbeat) {
  for (const Duration heartbeat : {Duration::millis(100), Duration::seconds(30)}) {
    Bench bench;
    bench.hear(wire::Welcome{base::Id{3, 4}, 5, heartbeat, Duration::seconds(60)});
    bench.hear(wire::Prepare{});
    bench.step(BodiesOpened{true, {}});
    bench.step(EngineWarmed{{}, {{true, 10, ""}}, 4});
    const Instant start_at = bench.now + Duration::millis(300);
    bench.hear(wire::ArmPhase{7, base::PhaseKind::kPerformance, base::Pacing::kBurst, 9, start_at});
    EXPECT_EQ(closings(bench, start_at, Duration::millis(3400)),
              (std::vector<std::int64_t>{-10, 1000, 2000, 3000}));
  }
}

TEST(AgentMachine, ASessionThatSleptClosesOneLongIntervalAndGoesOnAtWholeSeconds) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  const Instant start_at = bench.now;
  EXPECT_EQ(closings(bench, start_at, Duration::millis(1100)), (std::vector<std::int64_t>{1000}));
  bench.now = start_at + Duration::millis(3700);  // stopped meanwhile
  EXPECT_EQ(closings(bench, start_at, Duration::millis(1000)),
            (std::vector<std::int64_t>{3705, 4000}));
}

TEST(AgentMachine, TheLastIntervalIsToldBeforeDrainedAndNoneAfterIt) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 1);
  bench.hear(wire::Drain{7});
  bench.commands.clear();
  bench.finish(0, 1);
  std::vector<std::string> order;
  for (const Command& command : bench.commands) {
    if (const auto* read = std::get_if<ReadGauges>(&command)) {
      order.emplace_back(read->close_interval ? "interval" : "gauges");
    } else if (const auto* send = std::get_if<Send>(&command)) {
      if (std::holds_alternative<wire::Drained>(send->message)) {
        order.emplace_back("drained");
      }
    }
  }
  EXPECT_EQ(order, (std::vector<std::string>{"interval", "drained"}));
  bench.commands.clear();
  bench.pass(Duration::seconds(3));
  EXPECT_TRUE(bench.done<ReadGauges>().empty());
}

TEST(AgentMachine, AnAbortGivesTheQueueBackAndEndsWithDrained) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 5);
  bench.hear(wire::Abort{"second SIGINT"});
  bench.hear(wire::Drain{7});
  EXPECT_EQ(bench.done<EngineAbort>().size(), 1U);
  bench.finish(0, 2);
  EXPECT_TRUE(bench.said<wire::Drained>().empty());
  bench.step(EngineAborted{7, {2, 3, 4}});
  const auto back = bench.said<wire::Recalled>();
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].number, 0U);
  EXPECT_EQ(back[0].unstarted.size(), 3U);
  EXPECT_EQ(bench.said<wire::Drained>().size(), 1U);
}

TEST(AgentMachine, WithoutCoordinatorItStartsNothingLetsEndAndKeepsTheSpool) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 5);
  bench.step(LinkLost{"silence"});
  ASSERT_EQ(bench.done<EngineRecall>().size(), 1U);
  bench.step(EngineRecalled{7, 0, {3, 4}});
  bench.pass(Duration::seconds(2));
  bench.finish(0, 2);
  EXPECT_FALSE(bench.machine.gone());
  bench.finish(2, 3);
  EXPECT_EQ(bench.done<Exit>().at(0).code, ExitCode::kExecution);
  std::size_t spooled = 0;
  for (const SpoolAppend& append : bench.done<SpoolAppend>()) {
    spooled += append.batch.records.size();
  }
  EXPECT_EQ(spooled, 3U);
  EXPECT_TRUE(bench.said<wire::RecordBatch>().empty());
  EXPECT_TRUE(bench.said<wire::Recalled>().empty());
  EXPECT_TRUE(bench.done<SpoolForget>().empty());
}

// The coordinator waits 3 s; what is leased after the sleep, or waits in the queue, may be
// another's.
TEST(AgentMachine, AfterAStandstillItStartsNothingAndLeaves) {
  Bench bench;
  bench.get_ready();
  bench.arm(base::Pacing::kClosedLoop, 2);
  bench.lease(0, 4);
  bench.pass(Duration::seconds(2));
  EXPECT_EQ(bench.done<EngineIssue>().size(), 1U);
  bench.now = bench.now + Duration::seconds(3);
  bench.step(StoodStill{Duration::seconds(3)});
  bench.lease(4, 6);
  EXPECT_TRUE(bench.done<EngineIssue>().empty());
  ASSERT_EQ(bench.done<EngineRecall>().size(), 1U);
  bench.step(EngineRecalled{7, 0, {2, 3}});
  const auto back = bench.said<wire::Recalled>();
  ASSERT_EQ(back.size(), 1U) << "in case somebody listens";
  EXPECT_EQ(back[0].number, 0U);
  EXPECT_EQ(back[0].unstarted, (std::vector<base::Seq>{2, 3}));
  bench.finish(0, 2);
  EXPECT_EQ(bench.done<SpoolAppend>().size(), 1U);
  EXPECT_EQ(bench.said<wire::Drained>().at(0).started, 2U);
  EXPECT_EQ(bench.said<wire::Goodbye>().size(), 1U);
  bench.step(LinkLost{"silence"});
  const auto exits = bench.done<Exit>();
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].code, ExitCode::kExecution);
  EXPECT_THAT(exits[0].reason, HasSubstr("stood still for 3.0 s"));
}

TEST(AgentMachine, ASuspendedHostLeavesTheRunByItsOwnWordAndGivesBackWhatItHas) {
  Bench bench;
  bench.get_ready();
  bench.arm(base::Pacing::kClosedLoop, 2);
  bench.lease(0, 4);
  bench.step(Suspended{Duration::seconds(90)});
  ASSERT_EQ(bench.done<EngineRecall>().size(), 1U);
  bench.step(EngineRecalled{7, 0, {2, 3}});
  bench.finish(0, 2);
  EXPECT_THAT(bench.said<wire::Goodbye>().at(0).reason, HasSubstr("suspended for 90.0 s"));
}

TEST(AgentMachine, AHostThatSleptBetweenPhasesLeavesToo) {
  Bench bench;
  bench.step(Suspended{Duration::seconds(90)});
  EXPECT_EQ(bench.machine.state(), AgentState::kGreeting) << "no clock was measured yet";
  bench.get_ready();
  bench.step(Suspended{Duration::seconds(2)});
  EXPECT_THAT(bench.said<wire::Goodbye>().at(0).reason, HasSubstr("suspended for 2.0 s"));
}

TEST(AgentMachine, BetweenPhasesAStandstillIsNotJudged) {
  Bench bench;
  bench.get_ready();
  bench.step(StoodStill{Duration::seconds(20)});
  EXPECT_EQ(bench.machine.state(), AgentState::kReady);
}

TEST(AgentMachine, AnOrphansQueriesAreCancelledInTheEnd) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 1);
  bench.step(LinkLost{"silence"});
  bench.step(EngineRecalled{7, 0, {}});
  bench.pass(Duration::seconds(11));
  EXPECT_EQ(bench.done<EngineAbort>().size(), 1U);
  EXPECT_FALSE(bench.machine.gone());
  bench.pass(Duration::seconds(6));  // the engine does not even answer
  EXPECT_TRUE(bench.machine.gone());
}

// It is leaving already, but has queries in flight: a signal cuts them, and they have records.
TEST(AgentMachine, ASignalToAnOrphanCutsAndRecordsWhatIsInFlight) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 2);
  bench.step(LinkLost{"silence"});
  bench.step(EngineRecalled{7, 0, {1}});
  bench.step(StopAsked{"SIGTERM"});
  EXPECT_EQ(bench.done<EngineAbort>().size(), 1U);
  ASSERT_FALSE(bench.machine.gone());
  bench.finish(0, 1);
  bench.step(EngineAborted{7, {}});
  EXPECT_EQ(bench.done<SpoolAppend>().size(), 1U);
  EXPECT_EQ(bench.done<Exit>().at(0).code, ExitCode::kInterrupted);
}

TEST(AgentMachine, ASignalCancelsShipsAndSaysGoodbye) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 2);
  bench.step(StopAsked{"SIGTERM"});
  EXPECT_EQ(bench.done<EngineAbort>().size(), 1U);
  bench.finish(0, 1);
  bench.step(EngineAborted{7, {1}});
  EXPECT_EQ(bench.said<wire::RecordBatch>().size(), 1U);
  EXPECT_EQ(bench.said<wire::Goodbye>().size(), 1U);
  EXPECT_FALSE(bench.machine.gone());
  bench.hear(wire::BatchAck{1});
  EXPECT_EQ(bench.done<Exit>().at(0).code, ExitCode::kInterrupted);
}

TEST(AgentMachine, TheSecondSignalDoesNotWait) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 2);
  bench.step(StopAsked{"SIGTERM"});
  bench.step(StopAsked{"SIGTERM"});
  EXPECT_TRUE(bench.machine.gone());
}

TEST(AgentMachine, AGoodbyeAfterTheRunEndsItWithZero) {
  Bench bench;
  bench.get_ready();
  bench.hear(wire::Goodbye{});
  EXPECT_EQ(bench.done<Exit>().at(0).code, ExitCode::kOk);
}

TEST(AgentMachine, IllegalMessagesAreCountedAndChangeNothing) {
  Bench bench;
  bench.get_ready();
  bench.commands.clear();
  bench.lease(0, 3);  // nothing is armed
  bench.hear(wire::Recall{7, 1});
  bench.hear(wire::Drain{7});
  bench.hear(wire::Abort{});
  bench.hear(wire::BatchAck{1});  // never sent
  bench.hear(wire::Welcome{});
  bench.hear(wire::Hello{});  // not a coordinator's word
  EXPECT_EQ(bench.machine.illegal(), 7U);
  EXPECT_TRUE(bench.commands.empty());
  EXPECT_EQ(bench.machine.state(), AgentState::kReady);
}

Event any_event(base::Mt19937& chance) {
  const auto phase = static_cast<std::uint32_t>(chance.below(2));
  const auto number = static_cast<std::uint32_t>(chance.below(3));
  switch (chance.below(24)) {
    case 0:
      return Connected{chance.below(2) == 0};
    case 1:
      return MessageFrom{wire::Dial{}};
    case 2:
      return MessageFrom{wire::Welcome{}};
    case 3:
      return MessageFrom{wire::ClockPing{}};
    case 4:
      return MessageFrom{wire::Prepare{}};
    case 5:
      return MessageFrom{wire::BodyChunk{0, "", chance.below(2) == 0}};
    case 6:
      return MessageFrom{wire::ArmPhase{phase, base::PhaseKind::kWarmup, base::Pacing::kClosedLoop,
                                        4, Instant{1}}};
    case 7:
      return MessageFrom{wire::Lease{phase, {{chance.below(9), 0, {}, false, 0}}}};
    case 8:
      return MessageFrom{wire::Recall{phase, number}};
    case 9:
      return MessageFrom{wire::Drain{phase}};
    case 10:
      return MessageFrom{wire::BatchAck{chance.below(5)}};
    case 11:
      return BodiesOpened{chance.below(2) == 0, {}};
    case 12:
      return BodiesStored{chance.below(4) == 0 ? "x" : ""};
    case 13:
      return EngineWarmed{chance.below(4) == 0 ? "x" : "", {}, 0};
    case 14: {
      wire::Record record;
      record.phase = static_cast<std::uint16_t>(phase);
      return RecordsDone{{record}};
    }
    case 15:
      return EngineRecalled{phase, number, {chance.below(9)}};
    case 16:
      return EngineAborted{phase, {chance.below(9)}};
    case 17:
      return Gauges{};
    case 18:
      return chance.below(30) == 0 ? Event(MessageFrom{wire::Abort{}}) : Event(Tick{});
    case 19:
      return chance.below(60) == 0 ? Event(MessageFrom{wire::Goodbye{}}) : Event(Tick{});
    case 20:
      return chance.below(60) == 0 ? Event(LinkLost{}) : Event(Tick{});
    case 21:
      return chance.below(60) == 0 ? Event(StopAsked{}) : Event(Tick{});
    case 22:
      return MessageFrom{wire::Hello{}};
    default:
      return Tick{};
  }
}

TEST(AgentMachine, NoEventInAnyStateIsACrashAndALeavingAgentGoes) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    base::Mt19937 chance(seed);
    Bench bench;
    for (int i = 0; i < 400; ++i) {
      bench.step(any_event(chance));
      bench.now = bench.now + Duration::millis(static_cast<std::int64_t>(chance.below(20)));
      bench.commands.clear();
    }
    bench.step(StopAsked{"end"});
    bench.pass(Duration::seconds(30));
    EXPECT_TRUE(bench.machine.gone())
        << "seed " << seed << ": stuck in state " << name_of(bench.machine.state());
  }
}

}  // namespace
}  // namespace tutti::session
