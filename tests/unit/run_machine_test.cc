// RunMachine's decisions, one story each. What loss, reordering and crashes do to them is shown in
// tests/sim.

#include "coordinator/conduct/run_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/random.h"

namespace tutti::conduct {
namespace {

using base::Duration;
using base::ExitCode;
using base::Instant;
using ::testing::HasSubstr;
using ::testing::Not;

RunPlan plan_of(std::uint32_t agents, base::Seq total = 6) {
  RunPlan plan;
  plan.run = base::Id{1, 2};
  plan.agents_expected = agents;
  plan.target.urls = {"http://one/", "http://two/"};
  RunPhase phase;
  phase.name = "performance";
  phase.schedule.pacing = base::Pacing::kClosedLoop;
  phase.schedule.concurrency = 2;
  phase.schedule.total = total;
  phase.schedule.dataset_rows = 10;
  plan.phases.push_back(phase);
  plan.timeouts.gather = Duration::seconds(10);
  plan.timeouts.prepare = Duration::seconds(20);
  plan.timeouts.clock = Duration::seconds(5);
  return plan;
}

// The other side, by hand: agents are named a, b, c…; their clocks are 7 s ahead, a round trip
// takes 5 ms.
struct Theatre {
  explicit Theatre(RunPlan plan) : machine(std::move(plan)) { step(Tick{}); }

  void step(const Event& event) {
    std::vector<Command> commands;
    machine.step(event, now, commands);
    for (Command& command : commands) {
      if (auto* send = std::get_if<Send>(&command)) {
        if (const auto* ping = std::get_if<wire::ClockPing>(&send->message)) {
          pings.emplace_back(send->agent, *ping);
        } else if (auto* lease = std::get_if<wire::Lease>(&send->message)) {
          for (const auto& one : lease->commands) {
            held[send->agent].insert(one.seq);
          }
        } else {
          said[send->agent].push_back(std::move(send->message));
        }
      } else if (auto* finish = std::get_if<Finish>(&command)) {
        outcome = finish->outcome;
      } else if (auto* started = std::get_if<PhaseStarted>(&command)) {
        starts.push_back(*started);
      } else if (auto* issued = std::get_if<PhaseIssuingEnded>(&command)) {
        issuing_ends.push_back(*issued);
      } else if (auto* ended = std::get_if<PhaseEnded>(&command)) {
        ends.push_back(*ended);
      } else if (auto* ship = std::get_if<ShipBodies>(&command)) {
        shipped.insert(ship->agent);
      } else if (auto* close = std::get_if<Close>(&command)) {
        closed.insert(close->agent);
      }
    }
  }
  void from(AgentKey agent, wire::Message message) { step(MessageFrom{agent, std::move(message)}); }
  static wire::Hello hello(const std::string& name) {
    wire::Hello message;
    message.agent_name = name;
    message.host = "host-" + name;
    return message;
  }
  void join(AgentKey agent, const std::string& name) {
    step(PeerJoined{agent, false, "tcp://" + name});
    from(agent, hello(name));
  }
  // Lets time go by: ticks, answered pings.
  void pass(Duration time, bool answer_pings = true) {
    const Instant until = now + time;
    while (now < until && !machine.finished()) {
      auto asked = std::exchange(pings, {});
      now = now + Duration::millis(5);
      for (const auto& [agent, ping] : asked) {
        const auto held_back = late.find(agent);
        if (held_back != late.end() && now - ping.coordinator_sent < held_back->second) {
          pings.emplace_back(agent, ping);
        } else if (answer_pings && deaf.count(agent) == 0) {
          const Instant there = ping.coordinator_sent + Duration::seconds(7) + way;
          from(agent, wire::ClockPong{ping.number, ping.coordinator_sent, there, there});
        }
      }
      step(Tick{});
    }
  }
  static wire::Prepared prepared() {
    wire::Prepared message;
    message.frontends = {{true, 100, ""}, {true, 100, ""}};
    return message;
  }
  // To the start of the first phase.
  void set_out(const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      join(i + 1, names[i]);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      from(i + 1, wire::BodiesWanted{false});
      from(i + 1, prepared());
    }
    pass(Duration::millis(200));
    arm();
  }
  void arm() {
    ASSERT_TRUE(machine.phase() != nullptr);
    const std::uint32_t phase = machine.phase()->phase();
    for (const Seat& seat : machine.phase()->seats()) {
      from(seat.agent, wire::Armed{phase});
    }
    pass(machine.phase()->start_at() - now + Duration::millis(5));
  }
  void record(AgentKey agent, base::Seq seq, wire::Outcome result = wire::Outcome::kOk) {
    held[agent].erase(seq);
    step(RecordsStored{agent,
                       ++batches[agent],
                       {{static_cast<std::uint16_t>(machine.phase()->phase()), seq, result}}});
  }
  // Everything held ends, recalls are answered with nothing, drains are answered.
  void play(bool drain = true) {
    for (int turn = 0; turn < 1000 && !machine.finished(); ++turn) {
      const std::uint32_t phase = machine.phase()->phase();
      for (auto& [agent, seqs] : held) {
        if (!seqs.empty()) {
          record(agent, *std::set<base::Seq>(seqs).begin());
        }
      }
      for (auto& [agent, messages] : said) {
        for (const wire::Message& message : std::exchange(messages, {})) {
          if (const auto* recall = std::get_if<wire::Recall>(&message)) {
            from(agent, wire::Recalled{recall->phase, recall->number, {}});
          } else if (std::holds_alternative<wire::Drain>(message)) {
            draining.insert(agent);
          }
        }
        if (drain && held[agent].empty() && draining.erase(agent) > 0) {
          from(agent, wire::Drained{phase, 0, batches[agent]});
        }
      }
      pass(Duration::millis(5));
      if (!machine.finished() && machine.phase()->phase() != phase) {
        return;
      }
    }
  }
  template <class Message>
  const Message* last(AgentKey agent) const {
    const auto it = said.find(agent);
    if (it == said.end()) {
      return nullptr;
    }
    for (auto message = it->second.rbegin(); message != it->second.rend(); ++message) {
      if (const auto* found = std::get_if<Message>(&*message)) {
        return found;
      }
    }
    return nullptr;
  }
  std::string reasons() const {
    std::string text;
    for (const std::string& reason : outcome->reasons) {
      text += reason + "\n";
    }
    return text;
  }

  RunMachine machine;
  Instant now{1'000'000'000'000};
  Duration way = Duration::micros(2500);
  std::set<AgentKey> deaf;
  std::map<AgentKey, Duration> late;  // their pongs take this long
  std::vector<std::pair<AgentKey, wire::ClockPing>> pings;
  std::map<AgentKey, std::vector<wire::Message>> said;
  std::map<AgentKey, std::set<base::Seq>> held;
  std::map<AgentKey, std::uint64_t> batches;
  std::set<AgentKey> draining;
  std::set<AgentKey> shipped;
  std::set<AgentKey> closed;
  std::vector<PhaseStarted> starts;
  std::vector<PhaseIssuingEnded> issuing_ends;
  std::vector<PhaseEnded> ends;
  std::optional<Outcome> outcome;
};

// ---- acknowledging ---------------------------------------------------------------------------

// One agent with ten slots, and commands for thousands of replies.
struct Acks : Theatre {
  explicit Acks(std::int64_t prefetch) : Theatre(long_plan(prefetch)) { set_out({"a"}); }
  static RunPlan long_plan(std::int64_t prefetch) {
    RunPlan plan = plan_of(1, 5000);
    plan.phases[0].schedule.concurrency = 10;
    plan.prefetch = prefetch;
    return plan;
  }
  void reply() { record(1, *held[1].begin()); }
  std::uint64_t told() const {
    const auto* ack = last<wire::BatchAck>(1);
    return ack != nullptr ? ack->number : 0;
  }
};

TEST(RunMachine, ABatchIsAcknowledgedWithTheNextLease) {
  Acks acks(0);  // each reply is answered by a command
  for (std::uint64_t batch = 1; batch <= 5; ++batch) {
    acks.reply();
    EXPECT_EQ(acks.told(), batch);
  }
}

TEST(RunMachine, ABatchIsAcknowledgedInTimeWithoutALease) {
  Acks acks(-1);
  acks.reply();
  acks.pass(Duration::millis(1));  // a lease fills the lot that is known of now
  const std::uint64_t before = acks.told();
  const std::size_t held = acks.held[1].size();
  acks.reply();
  acks.reply();
  ASSERT_LT(acks.held[1].size(), held) << "no lease";
  EXPECT_EQ(acks.told(), before);
  acks.pass(RunMachine::kAckHeldMax - Duration::millis(10));
  EXPECT_EQ(acks.told(), before);
  acks.pass(Duration::millis(10));
  EXPECT_EQ(acks.told(), 3U) << "one word for both";
  acks.reply();
  EXPECT_EQ(acks.told(), 3U) << "and the next has its own time";
  acks.pass(RunMachine::kAckHeldMax);
  EXPECT_EQ(acks.told(), 4U);
}

TEST(RunMachine, ManyBatchesAreAcknowledgedAtOnce) {
  Acks acks(-1);
  acks.step(RecordsStored{1, 1, {}});
  for (std::uint64_t batch = 2; batch < RunMachine::kAcksHeldMax; ++batch) {
    acks.step(RecordsStored{1, batch, {}});
    EXPECT_EQ(acks.told(), 0U);
  }
  acks.step(RecordsStored{1, RunMachine::kAcksHeldMax, {}});
  EXPECT_EQ(acks.told(), RunMachine::kAcksHeldMax);
}

// Where nothing is leased any more an ack has nothing to wait for.
TEST(RunMachine, WhatIsOwedIsAcknowledgedWhenIssuingEnds) {
  Acks acks(-1);
  acks.step(RecordsStored{1, 1, {}});
  EXPECT_EQ(acks.told(), 0U);
  acks.step(StopAsked{StopKind::kInterrupt, "enough"});
  const auto* recall = acks.last<wire::Recall>(1);
  ASSERT_NE(recall, nullptr);
  const std::vector<base::Seq> unstarted(std::next(acks.held[1].begin(), 10), acks.held[1].end());
  acks.from(1, wire::Recalled{recall->phase, recall->number, unstarted});
  ASSERT_EQ(acks.machine.state(), RunState::kDraining);
  EXPECT_EQ(acks.told(), 1U);
  acks.step(RecordsStored{1, 2, {}});
  EXPECT_EQ(acks.told(), 2U);
}

// ---- getting ready ---------------------------------------------------------------------------

TEST(RunMachine, RunsAPlainRunToTheEnd) {
  Theatre theatre(plan_of(2));
  theatre.set_out({"a", "b"});
  EXPECT_EQ(theatre.machine.state(), RunState::kRunning);
  theatre.play();
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.machine.state(), RunState::kDone);
  EXPECT_TRUE(theatre.outcome->complete && theatre.outcome->valid);
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kOk);
  ASSERT_EQ(theatre.ends.size(), 1U);
  EXPECT_EQ(theatre.ends[0].totals.ok, 6U);
  EXPECT_EQ(theatre.ends[0].totals.prefix, 6U);
  EXPECT_EQ(theatre.issuing_ends[0].cause, plan::StopCause::kCount);
  EXPECT_EQ(theatre.machine.illegal(), 0U);
  EXPECT_EQ(theatre.closed.size(), 2U);
}

TEST(RunMachine, StartsEveryAgentAtOneInstantOfItsOwnClock) {
  Theatre theatre(plan_of(2));
  theatre.join(1, "a");
  theatre.join(2, "b");
  theatre.from(1, Theatre::prepared());
  theatre.from(2, Theatre::prepared());
  theatre.pass(Duration::millis(100));
  const auto* arm = theatre.last<wire::ArmPhase>(1);
  ASSERT_NE(arm, nullptr);
  const Instant wanted = theatre.starts.at(0).start_at + Duration::seconds(7);
  EXPECT_NEAR(static_cast<double>(arm->start_at.ns), static_cast<double>(wanted.ns), 3e6);
  EXPECT_GT(theatre.starts[0].start_at, theatre.now);
  EXPECT_EQ(arm->slots + theatre.last<wire::ArmPhase>(2)->slots, 2U);
}

TEST(RunMachine, RefusesAnotherProtocolATakenNameAndALateComer) {
  Theatre theatre(plan_of(2));
  theatre.step(PeerJoined{9, false, ""});
  wire::Hello old = Theatre::hello("x");
  old.protocol_version = 99;
  theatre.from(9, old);
  EXPECT_THAT(theatre.last<wire::Refused>(9)->reason, HasSubstr("protocol 99"));
  theatre.join(1, "a");
  theatre.join(8, "a");
  EXPECT_THAT(theatre.last<wire::Refused>(8)->reason, HasSubstr("named \"a\""));
  theatre.join(2, "b");
  EXPECT_EQ(theatre.machine.state(), RunState::kPreparing);
  theatre.join(7, "c");
  EXPECT_THAT(theatre.last<wire::Refused>(7)->reason, HasSubstr("begun"));
  EXPECT_EQ(theatre.closed, (std::set<AgentKey>{7, 8, 9}));
}

TEST(RunMachine, ADialledPeerIsSpokenToFirst) {
  Theatre theatre(plan_of(1));
  theatre.step(PeerJoined{1, true, "tcp://a"});
  ASSERT_NE(theatre.last<wire::Dial>(1), nullptr);
  EXPECT_EQ(theatre.last<wire::Dial>(1)->run, (base::Id{1, 2}));
}

TEST(RunMachine, GatheringThatTakesTooLongNamesWhoIsHereAndWhoIsSilent) {
  Theatre theatre(plan_of(3));
  theatre.join(1, "a");
  theatre.step(PeerJoined{2, true, "tcp://10.0.0.9:7000"});
  theatre.pass(Duration::seconds(11));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.machine.state(), RunState::kAborted);
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kSetup);
  EXPECT_FALSE(theatre.outcome->any_phase);
  EXPECT_THAT(theatre.reasons(), HasSubstr("1 of 3 agents joined within 10 s; here: a; called, but "
                                           "silent: tcp://10.0.0.9:7000"));
  EXPECT_NE(theatre.last<wire::Goodbye>(1), nullptr);
}

TEST(RunMachine, AnAgentMayLeaveAndComeBackWhileGathering) {
  Theatre theatre(plan_of(2));
  theatre.join(1, "a");
  theatre.step(PeerLost{1, "silence"});
  theatre.join(2, "a");
  theatre.join(3, "b");
  EXPECT_EQ(theatre.machine.state(), RunState::kPreparing);
}

TEST(RunMachine, ALoadThatDoesNotFitIsRefusedBeforeAnythingIsSent) {
  RunPlan plan = plan_of(1);
  plan.phases[0].schedule.concurrency = 5000;
  Theatre theatre(plan);
  theatre.step(PeerJoined{1, false, ""});
  wire::Hello small = Theatre::hello("a");
  small.fd_limit = 1024;
  theatre.from(1, small);
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kSetup);
  EXPECT_THAT(theatre.reasons(), HasSubstr("agent a would open 5000 connections"));
  EXPECT_EQ(theatre.last<wire::Prepare>(1), nullptr);
}

TEST(RunMachine, AnUnreachableFrontendCallsTheRunOffByName) {
  Theatre theatre(plan_of(2));
  theatre.join(1, "a");
  theatre.join(2, "b");
  theatre.from(1, wire::BodiesWanted{true});
  EXPECT_EQ(theatre.shipped, std::set<AgentKey>{1});
  wire::Prepared message = Theatre::prepared();
  message.frontends[1] = {false, 0, "connection refused"};
  theatre.from(2, message);
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kSetup);
  EXPECT_THAT(theatre.reasons(),
              HasSubstr("agent b is not ready: cannot reach http://two/: connection refused"));
}

TEST(RunMachine, PreparingThatTakesTooLongNamesWhoIsNotReady) {
  Theatre theatre(plan_of(2));
  theatre.join(1, "a");
  theatre.join(2, "b");
  theatre.from(1, Theatre::prepared());
  theatre.pass(Duration::seconds(21));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_THAT(theatre.reasons(), HasSubstr("not ready within 20 s: b"));
}

TEST(RunMachine, DoesNotArmWhenAClockIsNotKnownWellEnough) {
  RunPlan plan = plan_of(2);
  plan.clock_error_max = Duration::micros(100);
  Theatre theatre(plan);
  theatre.join(1, "a");
  theatre.join(2, "b");
  theatre.from(1, Theatre::prepared());
  theatre.from(2, Theatre::prepared());
  theatre.pass(Duration::seconds(6));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kSetup);
  EXPECT_THAT(theatre.reasons(), HasSubstr("not known to ±0.100 ms"));
}

TEST(RunMachine, NamesTheAgentsWhoseClocksAreOverTheLimitAndOnlyThose) {
  RunPlan plan = plan_of(2);
  plan.clock_error_max = Duration::millis(5);
  Theatre theatre(plan);
  theatre.late[2] = Duration::millis(20);
  theatre.join(1, "near");
  theatre.join(2, "far");
  theatre.from(1, Theatre::prepared());
  theatre.from(2, Theatre::prepared());
  theatre.pass(Duration::seconds(6));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kSetup);
  EXPECT_FALSE(theatre.outcome->any_phase);
  EXPECT_EQ(theatre.last<wire::ArmPhase>(1), nullptr);
  EXPECT_THAT(theatre.reasons(), HasSubstr("not known to ±5.000 ms (far: ±10."));
  EXPECT_THAT(theatre.reasons(), HasSubstr("smallest round trip 20.000 ms of"));
  EXPECT_THAT(theatre.reasons(), HasSubstr("distributed.max_clock_error_ms"));
  EXPECT_EQ(theatre.reasons().find("near"), std::string::npos);
}

TEST(RunMachine, APhaseIsNotStartedOnAClockThatWasNotAskedForTooLong) {
  RunPlan plan = plan_of(2);
  plan.clock_error_max = Duration::millis(5);
  plan.timeouts.answer = Duration::seconds(60);  // the drain is answered late here
  plan.phases.insert(plan.phases.begin(), plan.phases[0]);
  plan.phases[0].name = "warmup";
  plan.phases[0].schedule.kind = base::PhaseKind::kWarmup;
  Theatre theatre(plan);
  theatre.set_out({"a", "b"});
  theatre.play(false);
  theatre.deaf.insert(2);
  theatre.pass(Duration::seconds(8));  // 500 ppm of it: 4 ms, on top of half a round trip
  for (const AgentKey agent : {AgentKey{1}, AgentKey{2}}) {
    theatre.from(agent, wire::Drained{0, 0, theatre.batches[agent]});
  }
  theatre.pass(Duration::seconds(10));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.starts.size(), 1U);
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kExecution);
  EXPECT_FALSE(theatre.outcome->complete);
  EXPECT_THAT(theatre.reasons(), HasSubstr("phase performance was not started"));
  EXPECT_THAT(theatre.reasons(), HasSubstr("(b: ±"));
}

TEST(RunMachine, AnInterruptBeforeTheRunCallsItOff) {
  Theatre theatre(plan_of(2));
  theatre.join(1, "a");
  theatre.step(StopAsked{StopKind::kInterrupt, "SIGINT"});
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kInterrupted);
  EXPECT_FALSE(theatre.outcome->any_phase);
}

// ---- phases ----------------------------------------------------------------------------------

TEST(RunMachine, WarmUpIsDrainedBeforeTheNextPhaseIsArmed) {
  RunPlan plan = plan_of(1);
  plan.phases.insert(plan.phases.begin(), plan.phases[0]);
  plan.phases[0].schedule.kind = base::PhaseKind::kWarmup;
  Theatre theatre(plan);
  theatre.set_out({"a"});
  theatre.play(false);  // everything ends, but Drained is not said
  EXPECT_EQ(theatre.starts.size(), 1U);
  theatre.from(1, wire::Drained{0, 6, theatre.batches[1]});
  EXPECT_EQ(theatre.starts.size(), 2U);
  theatre.arm();
  theatre.play();
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_TRUE(theatre.outcome->complete);
  EXPECT_EQ(theatre.ends.size(), 2U);
}

TEST(RunMachine, TheIssueCapEndsIssuingButNotTheDrainNorTheRun) {
  RunPlan plan = plan_of(1, 1'000'000);
  plan.phases[0].issue_cap = Duration::seconds(1);
  plan.phases.push_back(plan_of(1).phases[0]);
  plan.phases[1].schedule.kind = base::PhaseKind::kAccuracy;
  Theatre theatre(plan);
  theatre.set_out({"a"});
  theatre.pass(Duration::seconds(2));
  ASSERT_NE(theatre.last<wire::Recall>(1), nullptr);
  EXPECT_EQ(theatre.last<wire::Abort>(1), nullptr);
  theatre.play();
  ASSERT_EQ(theatre.issuing_ends.size(), 1U);
  EXPECT_EQ(theatre.issuing_ends[0].cause, plan::StopCause::kIssueCap);
  EXPECT_EQ(theatre.starts.size(), 2U);
  theatre.arm();
  theatre.play();
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_TRUE(theatre.outcome->complete);
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kOk);
}

TEST(RunMachine, AfterACapAccuracyGoesOnWhereTheGapsStopped) {
  RunPlan plan = plan_of(1);
  plan::PhaseSpec& timed = plan.phases[0].schedule;
  timed.pacing = base::Pacing::kTimed;
  timed.target_qps = 2;
  timed.gap_seed = 42;
  timed.total = 1000;
  plan.phases[0].issue_cap = Duration::seconds(2);
  plan.phases.push_back(plan.phases[0]);
  plan.phases[1].schedule.kind = base::PhaseKind::kAccuracy;
  plan.phases[1].schedule.gaps_before = plan::gaps_drawn(plan.phases[0].schedule, 1000);
  plan.phases[1].issue_cap = {};
  Theatre theatre(plan);
  theatre.set_out({"a"});
  for (int i = 0; i < 500 && theatre.starts.size() < 2; ++i) {
    theatre.play();
  }
  ASSERT_EQ(theatre.ends.size(), 1U);
  const base::Seq issued = theatre.ends[0].totals.prefix;
  ASSERT_LT(issued, 1000U);
  EXPECT_EQ(theatre.machine.phase()->spec().gaps_before, issued + 1);
}

TEST(RunMachine, ADrainThatTakesTooLongAbortsAndEndsTheSessionWithFour) {
  RunPlan plan = plan_of(1, 2);
  plan.phases[0].drain_timeout = Duration::seconds(3);
  plan.phases.push_back(plan.phases[0]);
  Theatre theatre(plan);
  theatre.set_out({"a"});
  theatre.pass(Duration::seconds(2));
  EXPECT_EQ(theatre.machine.state(), RunState::kDraining);
  EXPECT_EQ(theatre.last<wire::Abort>(1), nullptr);
  theatre.pass(Duration::seconds(2));
  ASSERT_NE(theatre.last<wire::Abort>(1), nullptr);
  theatre.from(1, wire::Recalled{0, 0, {}});
  theatre.record(1, 0, wire::Outcome::kCancelled);
  theatre.record(1, 1, wire::Outcome::kCancelled);
  theatre.from(1, wire::Drained{0, 2, 2});
  theatre.pass(Duration::seconds(2));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kExecution);
  EXPECT_FALSE(theatre.outcome->complete);
  EXPECT_TRUE(theatre.outcome->valid);
  EXPECT_EQ(theatre.starts.size(), 1U);
  EXPECT_EQ(theatre.ends[0].totals.cancelled, 2U);
  EXPECT_THAT(theatre.reasons(), HasSubstr("2 queries were still in flight after draining"));
}

TEST(RunMachine, AnInterruptDrainsAndTheSecondAborts) {
  Theatre theatre(plan_of(1, 1000));
  theatre.set_out({"a"});
  theatre.step(StopAsked{StopKind::kInterrupt, "SIGINT"});
  ASSERT_NE(theatre.last<wire::Recall>(1), nullptr);
  EXPECT_EQ(theatre.last<wire::Abort>(1), nullptr);
  theatre.step(StopAsked{StopKind::kInterrupt, "SIGINT again"});
  ASSERT_NE(theatre.last<wire::Abort>(1), nullptr);
  EXPECT_NE(theatre.last<wire::Drain>(1), nullptr);
  // The agent does not answer: after the abort's limit the run ends all the same.
  theatre.pass(Duration::seconds(15));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kInterrupted);
  EXPECT_FALSE(theatre.outcome->valid);
  EXPECT_EQ(theatre.ends.size(), 1U);
  EXPECT_FALSE(theatre.ends[0].totals.missing.empty());
}

TEST(RunMachine, AnInterruptedDrainHasAGrace) {
  RunPlan plan = plan_of(1, 1000);
  plan.timeouts.grace = Duration::seconds(2);
  Theatre theatre(plan);
  theatre.set_out({"a"});
  theatre.step(StopAsked{StopKind::kInterrupt, "SIGINT"});
  theatre.pass(Duration::millis(1900));
  EXPECT_EQ(theatre.last<wire::Abort>(1), nullptr);
  theatre.pass(Duration::millis(200));
  EXPECT_NE(theatre.last<wire::Abort>(1), nullptr);
}

TEST(RunMachine, SilentEndpointsEndTheRunWithFour) {
  RunPlan plan = plan_of(1, 1000);
  plan.timeouts.response_idle = Duration::seconds(5);
  plan.timeouts.grace = Duration::seconds(1);
  Theatre theatre(plan);
  theatre.set_out({"a"});
  theatre.pass(Duration::seconds(4));
  // One byte of one reply is a sign of life.
  wire::Progress progress;
  progress.in_flight = 2;
  progress.last_response_at = theatre.now + Duration::seconds(7);
  theatre.from(1, progress);
  theatre.pass(Duration::seconds(5));
  EXPECT_EQ(theatre.last<wire::Recall>(1), nullptr);
  theatre.pass(Duration::seconds(2));
  EXPECT_NE(theatre.last<wire::Recall>(1), nullptr);
  theatre.pass(Duration::seconds(15));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kExecution);
  EXPECT_THAT(theatre.reasons(), HasSubstr("EndpointResponseIdleTimeoutError"));
  EXPECT_EQ(theatre.reasons().find("EndpointResponseIdleTimeoutError"),
            theatre.reasons().rfind("EndpointResponseIdleTimeoutError"))
      << "said twice: " << theatre.reasons();
}

TEST(RunMachine, TheRunTimeoutAbortsAtOnce) {
  RunPlan plan = plan_of(1, 1000);
  plan.timeouts.run = Duration::seconds(4);
  Theatre theatre(plan);
  theatre.set_out({"a"});
  theatre.pass(Duration::seconds(4));
  ASSERT_NE(theatre.last<wire::Abort>(1), nullptr);
  theatre.pass(Duration::seconds(15));
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kExecution);
  EXPECT_THAT(theatre.reasons(), HasSubstr("run_timeout_s"));
}

// In the last look at the clocks too, which an agent that does not answer makes long.
TEST(RunMachine, WheneverTheRunTimeoutComesTheRunEnds) {
  int in_merge = 0;
  for (int tenths = 3; tenths < 40; ++tenths) {
    RunPlan plan = plan_of(1);
    plan.timeouts.run = Duration::millis(100) * tenths;
    Theatre theatre(plan);
    const Instant began_at = theatre.now;
    theatre.set_out({"a"});
    theatre.deaf.insert(1);
    theatre.play();
    theatre.pass(Duration::seconds(20));
    ASSERT_TRUE(theatre.outcome.has_value()) << tenths;
    const bool over = theatre.now - began_at > plan.timeouts.run;
    in_merge += over && theatre.outcome->complete ? 1 : 0;
  }
  EXPECT_GT(in_merge, 0);
}

TEST(RunMachine, ALostAgentMakesTheRunInvalidByNameAndTimeAndKeepsTheRest) {
  Theatre theatre(plan_of(2, 1000));
  theatre.set_out({"a", "b"});
  theatre.pass(Duration::seconds(2));
  const auto held_by_b = theatre.held[2];
  ASSERT_FALSE(held_by_b.empty());
  theatre.held[2].clear();
  theatre.step(PeerLost{2, "silence for 10 s"});
  theatre.play();
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_FALSE(theatre.outcome->valid);
  EXPECT_FALSE(theatre.outcome->complete);
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kExecution);
  EXPECT_THAT(theatre.reasons(), HasSubstr("agent b was lost 2.0"));
  EXPECT_THAT(theatre.reasons(), HasSubstr("silence for 10 s"));
  const PhaseTotals& totals = theatre.ends.at(0).totals;
  ASSERT_EQ(totals.missing.size(), held_by_b.size());
  EXPECT_EQ(totals.missing[0].agent, "b");
  EXPECT_EQ(totals.ok + totals.missing.size(), totals.prefix);
}

// The coordinator's disk is full: no agent failed, what was issued stays exact, and each agent is
// told in the end why it must keep its records.
TEST(RunMachine, RecordsThatCannotBeStoredEndTheRunByTheirOwnNameAndNobodyIsLost) {
  Theatre theatre(plan_of(2, 1000));
  theatre.set_out({"a", "b"});
  theatre.record(1, *theatre.held[1].begin());
  const auto refuse = [&theatre](AgentKey agent) {
    const base::Seq seq = *theatre.held[agent].begin();
    theatre.held[agent].erase(seq);
    theatre.step(RecordsRefused{
        agent, ++theatre.batches[agent], {{0, seq, wire::Outcome::kOk}}, "run folder X is full"});
  };
  refuse(2);
  refuse(1);  // of a kind: said once
  const auto answer_recalls = [&theatre] {
    for (auto& [agent, messages] : theatre.said) {
      for (const wire::Message& message : std::exchange(messages, {})) {
        if (const auto* recall = std::get_if<wire::Recall>(&message)) {
          theatre.from(agent, wire::Recalled{0, recall->number, {}});
        }
      }
    }
  };
  for (const AgentKey agent : {AgentKey{1}, AgentKey{2}}) {
    EXPECT_NE(theatre.last<wire::Recall>(agent), nullptr);
    EXPECT_EQ(theatre.last<wire::Abort>(agent), nullptr) << "what is in flight may end";
  }
  answer_recalls();
  while (!theatre.held[1].empty() || !theatre.held[2].empty()) {
    refuse(theatre.held[1].empty() ? 2 : 1);
  }
  answer_recalls();  // the end of the schedule is evened out
  theatre.pass(Duration::millis(20));
  for (const AgentKey agent : {AgentKey{1}, AgentKey{2}}) {
    ASSERT_NE(theatre.last<wire::Drain>(agent), nullptr);
    theatre.from(agent, wire::Drained{0, 0, theatre.batches[agent]});
  }
  theatre.pass(Duration::seconds(1));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kExecution);
  EXPECT_FALSE(theatre.outcome->valid);
  EXPECT_EQ(theatre.outcome->reasons[0], "run folder X is full");
  EXPECT_EQ(theatre.outcome->reasons.size(), 2U) << theatre.reasons();
  EXPECT_THAT(theatre.reasons(), Not(HasSubstr("was lost")));
  const PhaseTotals& totals = theatre.ends.at(0).totals;
  EXPECT_EQ(totals.ok, 1U);
  EXPECT_EQ(totals.ok + totals.missing.size(), totals.prefix);
  EXPECT_EQ(totals.missing.at(0).why, "run folder X is full");
  EXPECT_EQ(theatre.last<wire::Goodbye>(1)->reason, "run folder X is full");
  EXPECT_EQ(theatre.last<wire::Goodbye>(2)->reason, "run folder X is full");
}

TEST(RunMachine, WhoIsSlowAfterRecordsCannotBeStoredIsDismissedAndNotLost) {
  Theatre theatre(plan_of(1, 1000));
  theatre.set_out({"a"});
  const base::Seq seq = *theatre.held[1].begin();
  theatre.step(RecordsRefused{1, 1, {{0, seq, wire::Outcome::kOk}}, "full"});
  theatre.pass(RunMachine::kUnstoredDrainMax - Duration::millis(100));
  EXPECT_TRUE(theatre.ends.empty());
  theatre.pass(Duration::seconds(2));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_THAT(theatre.reasons(), Not(HasSubstr("lost")));
  EXPECT_EQ(theatre.last<wire::Abort>(1), nullptr);
  EXPECT_EQ(theatre.last<wire::Goodbye>(1)->reason, "full");
  const PhaseTotals& totals = theatre.ends.at(0).totals;
  EXPECT_EQ(totals.missing.size(), totals.prefix);
}

TEST(RunMachine, AStoppedRunWhoseRecordsCannotBeStoredEndsInTheTimeOfBoth) {
  Theatre theatre(plan_of(1, 1000));
  theatre.set_out({"a"});
  theatre.step(StopAsked{StopKind::kInterrupt, "SIGINT"});
  const base::Seq seq = *theatre.held[1].begin();
  theatre.step(RecordsRefused{1, 1, {{0, seq, wire::Outcome::kOk}}, "full"});
  EXPECT_EQ(theatre.last<wire::Abort>(1), nullptr) << "it is not asked a second time";
  theatre.pass(RunMachine::kUnstoredDrainMax + Duration::seconds(2));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kInterrupted);
  EXPECT_THAT(theatre.reasons(), HasSubstr("full"));
}

RunPlan continuing(std::uint32_t agents, base::Seq total) {
  RunPlan plan = plan_of(agents, total);
  plan.on_agent_loss = AgentLoss::kContinue;
  plan.phases[0].schedule.concurrency = 4;
  return plan;
}

TEST(RunMachine, WithContinueTheOthersFinishTheScheduleWithTheirOwnSlots) {
  RunPlan plan = continuing(2, 60);
  plan.phases.push_back(plan.phases[0]);
  plan.phases[1].name = "accuracy";
  plan.phases[1].schedule.kind = base::PhaseKind::kAccuracy;
  Theatre theatre(plan);
  theatre.set_out({"a", "b"});
  const auto held_by_b = std::exchange(theatre.held[2], {});
  ASSERT_FALSE(held_by_b.empty());
  theatre.step(PeerLost{2, "silence"});
  EXPECT_EQ(theatre.machine.state(), RunState::kRunning);
  theatre.play();  // to the next phase
  ASSERT_EQ(theatre.starts.size(), 2U);
  ASSERT_EQ(theatre.starts[1].slots.size(), 1U) << "nobody arms the lost";
  EXPECT_EQ(theatre.starts[1].slots[0], (std::pair<AgentKey, std::uint32_t>{1, 2}));
  theatre.arm();
  theatre.play();
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_TRUE(theatre.outcome->complete);
  EXPECT_FALSE(theatre.outcome->valid);
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kExecution);
  EXPECT_THAT(theatre.reasons(), HasSubstr("agent b was lost"));
  EXPECT_THAT(theatre.reasons(), HasSubstr("goes on with 1 of 2 agents and 2 of 4 slots"));
  const PhaseTotals& totals = theatre.ends.at(0).totals;
  EXPECT_EQ(totals.prefix, 60U);
  ASSERT_EQ(totals.missing.size(), held_by_b.size());
  for (const Missing& missing : totals.missing) {
    EXPECT_EQ(held_by_b.count(missing.seq), 1U) << "and it is not asked again";
  }
  EXPECT_EQ(theatre.ends.at(1).totals.ok, 60U);
}

TEST(RunMachine, WithContinueTheRunEndsWithItsLastAgent) {
  Theatre theatre(continuing(2, 1000));
  theatre.set_out({"a", "b"});
  theatre.step(PeerLost{1, "silence"});
  EXPECT_FALSE(theatre.outcome.has_value());
  theatre.step(PeerLost{2, "silence"});
  theatre.pass(Duration::seconds(2));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_FALSE(theatre.outcome->complete);
  EXPECT_FALSE(theatre.outcome->valid);
  EXPECT_THAT(theatre.reasons(), HasSubstr("agent a was lost"));
  EXPECT_THAT(theatre.reasons(), HasSubstr("agent b was lost"));
}

TEST(RunMachine, WithContinueAPhaseWithoutSlotsForAnybodyLeftIsNotStarted) {
  RunPlan plan = continuing(2, 20);
  plan.phases.push_back(plan.phases[0]);
  plan.phases[1].schedule.concurrency = 1;  // all of it is a's
  Theatre theatre(plan);
  theatre.set_out({"a", "b"});
  theatre.held[1].clear();
  theatre.step(PeerLost{1, "silence"});
  theatre.play();
  theatre.pass(Duration::seconds(2));
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_FALSE(theatre.outcome->complete);
  EXPECT_THAT(theatre.reasons(), HasSubstr("none of the agents that are left has slots in it"));
}

// Leases were on their way when it was told to go: it knows how much it has started, and nobody
// has to call the rest missing.
TEST(RunMachine, AnAgentThatLeavesInOrderOwesOnlyWhatItStarted) {
  for (const std::uint64_t started : {1U, 2U}) {
    Theatre theatre(plan_of(2, 1000));
    theatre.set_out({"a", "b"});
    theatre.from(2, wire::Recalled{0, 0, {}});
    const auto held_by_b = std::exchange(theatre.held[2], {});
    ASSERT_GE(held_by_b.size(), 2U);
    theatre.record(2, *held_by_b.begin());
    theatre.from(2, wire::Drained{0, started, theatre.batches[2]});
    theatre.from(2, wire::Goodbye{"SIGTERM"});
    theatre.play();
    ASSERT_TRUE(theatre.outcome.has_value());
    EXPECT_FALSE(theatre.outcome->valid);
    EXPECT_THAT(theatre.reasons(), HasSubstr("it left: SIGTERM"));
    const PhaseTotals& totals = theatre.ends.at(0).totals;
    EXPECT_EQ(totals.missing.size(), started == 1 ? 0 : held_by_b.size() - 1);
    EXPECT_EQ(totals.ok + totals.missing.size(), totals.prefix);
  }
}

TEST(RunMachine, BearsLongerWithAgentsThatPrepare) {
  Theatre theatre(plan_of(1));
  const Duration usual = theatre.machine.plan().lost_after;
  EXPECT_EQ(theatre.machine.lost_after(), usual);
  theatre.join(1, "a");
  ASSERT_EQ(theatre.machine.state(), RunState::kPreparing);
  EXPECT_EQ(theatre.machine.lost_after(), wire::kPreparingPatience);
  theatre.from(1, wire::BodiesWanted{false});
  theatre.from(1, Theatre::prepared());
  theatre.pass(Duration::millis(200));
  ASSERT_GE(theatre.machine.state(), RunState::kArmed);
  EXPECT_EQ(theatre.machine.lost_after(), usual);
}

TEST(RunMachine, AnAgentThatDoesNotAnswerARecallIsLost) {
  Theatre theatre(plan_of(1, 1000));
  theatre.machine.plan();
  theatre.set_out({"a"});
  RunPlan plan = theatre.machine.plan();
  theatre.step(StopAsked{StopKind::kInterrupt, "SIGINT"});
  theatre.pass(plan.lost_after + plan.timeouts.answer + Duration::seconds(1));
  ASSERT_TRUE(theatre.closed.count(1) == 1);
  EXPECT_THAT(theatre.machine.outcome().reasons.at(1), HasSubstr("no answer to a recall"));
}

// After a standstill of this coordinator its answers wait in the socket: they come before the Tick.
TEST(RunMachine, AnAnswerThatWaitedForUsIsNotLate) {
  Theatre theatre(plan_of(2, 1000));
  theatre.set_out({"a", "b"});
  theatre.step(StopAsked{StopKind::kInterrupt, "SIGINT"});
  const RunPlan plan = theatre.machine.plan();
  const auto* asked_a = theatre.last<wire::Recall>(1);
  const auto* asked_b = theatre.last<wire::Recall>(2);
  ASSERT_TRUE(asked_a != nullptr && asked_b != nullptr);
  theatre.now = theatre.now + plan.lost_after + plan.timeouts.answer + Duration::seconds(1);
  const wire::Recalled a{0, asked_a->number, {}};
  const wire::Recalled b{0, asked_b->number, {}};
  theatre.from(1, a);
  theatre.from(2, b);
  theatre.step(Tick{});
  EXPECT_TRUE(theatre.closed.empty());
  EXPECT_EQ(theatre.machine.outcome().reasons.size(), 1U) << "the interrupt";
}

TEST(RunMachine, LostRecordsMakeTheRunInvalid) {
  Theatre theatre(plan_of(1));
  theatre.set_out({"a"});
  wire::Progress progress;
  progress.health.records_lost = 1;
  theatre.held[1].erase(0);
  theatre.from(1, progress);
  theatre.play();
  ASSERT_TRUE(theatre.outcome.has_value());
  EXPECT_TRUE(theatre.outcome->complete);
  EXPECT_FALSE(theatre.outcome->valid);
  EXPECT_EQ(theatre.outcome->exit, ExitCode::kExecution);
  ASSERT_EQ(theatre.ends.at(0).totals.missing.size(), 1U);
  EXPECT_EQ(theatre.ends[0].totals.missing[0].seq, 0U);
}

// ---- nonsense --------------------------------------------------------------------------------

wire::Message any_message(base::Mt19937& chance) {
  const auto phase = static_cast<std::uint32_t>(chance.below(3));
  const auto number = static_cast<std::uint32_t>(chance.below(3));
  switch (chance.below(12)) {
    case 0:
      return Theatre::hello(std::string(1, static_cast<char>('a' + chance.below(4))));
    case 1:
      return wire::ClockPong{chance.below(30), Instant{5}, Instant{6}, Instant{7}};
    case 2:
      return wire::BodiesWanted{chance.below(2) == 0};
    case 3:
      return Theatre::prepared();
    case 4:
      return wire::Armed{phase};
    case 5:
      return wire::Recalled{phase, number, {chance.below(20), chance.below(20)}};
    case 6:
      return wire::Drained{phase, chance.below(9), chance.below(9)};
    case 7: {
      wire::Progress progress;
      progress.phase = phase;
      progress.health.records_lost = chance.below(50) == 0 ? 1 : 0;
      progress.last_response_at = Instant{static_cast<std::int64_t>(chance.below(9))};
      return progress;
    }
    case 8:
      return chance.below(40) == 0 ? wire::Message(wire::Goodbye{"x"})
                                   : wire::Message(wire::Dial{});
    case 9:
      return wire::RecordBatch{};
    case 10:
      return wire::Lease{phase, {}};
    default:
      return wire::Abort{};
  }
}

TEST(RunMachine, NoEventInAnyStateIsACrashAndEveryRunEnds) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    base::Mt19937 chance(seed);
    RunPlan plan = plan_of(static_cast<std::uint32_t>(1 + chance.below(3)), 40);
    plan.phases.push_back(plan.phases[0]);
    plan.timeouts.run = Duration::seconds(60);
    Theatre theatre(plan);
    for (AgentKey agent = 1; agent <= plan.agents_expected; ++agent) {
      theatre.step(PeerJoined{agent, false, ""});
    }
    for (int i = 0; i < 20'000 && !theatre.machine.finished(); ++i) {
      const AgentKey agent = chance.below(5);
      switch (chance.below(200)) {
        case 0:
          theatre.step(PeerJoined{agent, chance.below(2) == 0, ""});
          break;
        case 1:
          if (chance.below(20) == 0) {
            theatre.step(PeerLost{agent, "x"});
          }
          break;
        case 2:
          if (chance.below(20) == 0) {
            theatre.step(StopAsked{StopKind::kInterrupt, "x"});
          }
          break;
        case 3:
          if (chance.below(20) == 0) {
            theatre.step(RecordsRefused{agent, chance.below(9), {{0, chance.below(30), {}}}, "x"});
          }
          break;
        default:
          if (chance.below(3) == 0) {
            theatre.step(RecordsStored{
                agent,
                chance.below(9),
                {{static_cast<std::uint16_t>(chance.below(3)), chance.below(30), {}}}});
          } else {
            theatre.from(agent, any_message(chance));
          }
      }
      theatre.pass(Duration::millis(static_cast<std::int64_t>(5 * chance.below(3))));
    }
    theatre.pass(Duration::seconds(120));
    EXPECT_TRUE(theatre.machine.finished())
        << "seed " << seed << ": stuck in state " << name_of(theatre.machine.state());
  }
}

}  // namespace
}  // namespace tutti::conduct
