// PhaseRun by hand: who gets which commands, and what becomes of them.

#include "coordinator/conduct/phase_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace tutti::conduct {
namespace {

using base::Duration;
using base::Instant;
using base::Seq;

constexpr Instant kStart{1'000'000'000'000};

plan::PhaseSpec spec_of(base::Pacing pacing, Seq total) {
  plan::PhaseSpec spec;
  spec.pacing = pacing;
  spec.total = total;
  spec.dataset_rows = 50;
  spec.concurrency = pacing == base::Pacing::kClosedLoop ? 10 : 0;
  spec.target_qps = pacing == base::Pacing::kTimed ? 100 : 0;
  return spec;
}

// Agents that do as they are told, one step at a time.
struct Stage {
  Stage(const plan::PhaseSpec& spec, const std::vector<std::uint32_t>& slots, std::int64_t prefetch)
      : run(3, spec, seats(slots), prefetch) {
    run.start(kStart);
  }
  static std::vector<Seat> seats(const std::vector<std::uint32_t>& slots) {
    std::vector<Seat> out;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      Seat seat;
      seat.agent = 100 + i;
      seat.name = "a" + std::to_string(i);
      seat.slots = slots[i];
      out.push_back(seat);
    }
    return out;
  }
  void advance(Duration since_start = {}) {
    now = kStart + since_start;
    run.advance(now, out);
    sort_out();
  }
  void sort_out() {
    for (const Command& command : out) {
      const auto& send = std::get<Send>(command);
      if (const auto* lease = std::get_if<wire::Lease>(&send.message)) {
        largest_lease = std::max(largest_lease, lease->commands.size());
        for (const base::IssueCommand& one : lease->commands) {
          held[send.agent].insert(one.seq);
        }
      } else if (const auto* recall = std::get_if<wire::Recall>(&send.message)) {
        recalls[send.agent] = recall->number;
      } else if (std::holds_alternative<wire::Drain>(send.message)) {
        drains.insert(send.agent);
      }
    }
    out.clear();
  }
  void finish(AgentKey agent, Seq seq) {
    ASSERT_EQ(held[agent].erase(seq), 1U);
    run.record_stored(agent, {3, seq, wire::Outcome::kOk}, now);
  }
  void give_back(AgentKey agent, const std::vector<Seq>& seqs) {
    for (const Seq seq : seqs) {
      held[agent].erase(seq);
    }
    run.recalled(agent, {3, recalls.at(agent), seqs});
    recalls.erase(agent);
  }
  void drain(AgentKey agent) { run.drained(agent, {3, 0, 0}); }

  PhaseRun run;
  Instant now = kStart;
  std::vector<Command> out;
  std::map<AgentKey, std::set<Seq>> held;
  std::map<AgentKey, std::uint32_t> recalls;
  std::set<AgentKey> drains;
  std::size_t largest_lease = 0;
};

TEST(PhaseRun, WithoutPrefetchAnAgentHoldsItsSlotsAndNoMore) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 100), {4, 3, 3}, 0);
  stage.advance();
  EXPECT_EQ(stage.held[100].size(), 4U);
  EXPECT_EQ(stage.held[101].size(), 3U);
  EXPECT_EQ(stage.held[102].size(), 3U);
  stage.advance();
  EXPECT_EQ(stage.held[100].size(), 4U);
  stage.finish(101, *stage.held[101].begin());
  stage.advance();
  EXPECT_EQ(stage.held[101].size(), 3U);
  EXPECT_EQ(*stage.held[101].rbegin(), 10U);  // the next of the schedule
}

// Replies come in batches of ten: most of them call for no lease, and no slot stands empty for it.
TEST(PhaseRun, ALeaseComesWhenLessThanTheDepthIsLeftAndThenForManyReplies) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 100'000), {100}, -1);
  std::size_t leases = 0;
  std::size_t least = 1000;
  std::size_t most = 0;
  for (int batch = 0; batch < 200; ++batch) {
    const std::size_t before = stage.held[100].size();
    stage.advance(Duration::millis(20) * batch);
    leases += stage.held[100].size() > before ? 1U : 0U;
    if (batch >= 20) {
      least = std::min(least, stage.held[100].size());
      most = std::max(most, stage.held[100].size());
    }
    for (int i = 0; i < 10; ++i) {
      stage.finish(100, *stage.held[100].begin());
    }
  }
  const std::uint64_t depth = stage.run.prefetch_depth(0, stage.now);
  EXPECT_EQ(depth, 30U) << "twice 500 replies a second in 30 ms";
  EXPECT_GE(least, 100 + depth);
  EXPECT_EQ(most, 100 + 2 * depth);
  EXPECT_NEAR(static_cast<double>(leases), 200 / 4, 5);
}

TEST(PhaseRun, SetByHandTheDepthIsKeptFullToTheLastCommand) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 1000), {20}, 5);
  for (int batch = 0; batch < 20; ++batch) {
    stage.advance(Duration::millis(20) * batch);
    EXPECT_EQ(stage.held[100].size(), 25U);
    stage.finish(100, *stage.held[100].begin());
  }
}

TEST(PhaseRun, TheOldestCommandsAreSpreadOverAllAgents) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 100), {4, 2, 0}, 4);
  stage.advance();
  EXPECT_EQ(stage.held[100].size(), 8U);
  EXPECT_EQ(stage.held[101].size(), 6U);
  EXPECT_TRUE(stage.held[102].empty());
  // The first six fill the slots in proportion.
  EXPECT_EQ(std::count_if(stage.held[100].begin(), stage.held[100].end(),
                          [](Seq seq) { return seq < 6; }),
            4);
}

// Conversations of 3, 3, 3 … turns, in the order of their seed.
plan::PhaseSpec talks(std::uint64_t count) {
  auto conversations = std::make_shared<plan::Conversations>();
  for (base::SampleIndex i = 0; i < 5; ++i) {
    conversations->push_back({"c" + std::to_string(i), {{3 * i}, {3 * i + 1}, {3 * i + 2}}});
  }
  plan::TrajectorySpec wanted;
  wanted.count = count;
  plan::PhaseSpec spec = spec_of(base::Pacing::kClosedLoop, 3 * count);
  spec.trajectories = plan::Trajectories::make(conversations, wanted).value();
  return spec;
}

TEST(PhaseRun, ATrajectoryIsLeasedWholeToOneFreeSlotAndNoneAhead) {
  Stage stage(talks(10), {2, 1}, 5);
  stage.advance();
  EXPECT_EQ(stage.held[100], (std::set<Seq>{0, 1, 2, 6, 7, 8}));
  EXPECT_EQ(stage.held[101], (std::set<Seq>{3, 4, 5}));
  stage.finish(101, 3);
  stage.finish(101, 4);
  stage.advance();
  EXPECT_EQ(stage.held[101], (std::set<Seq>{5})) << "its slot is still taken";
  EXPECT_FALSE(stage.run.first_user_done());
  stage.finish(101, 5);
  stage.advance();
  EXPECT_EQ(stage.held[101], (std::set<Seq>{9, 10, 11}));
}

TEST(PhaseRun, AStopWithholdsTheTurnsThatAreLeft) {
  Stage stage(talks(10), {1, 1, 1}, -1);
  stage.advance();  // 0 … 2, 3 … 5, 6 … 8
  stage.finish(101, 3);
  stage.run.stop_issuing(stage.now, stage.out);
  stage.sort_out();
  stage.give_back(100, {1, 2});  // 0 is in flight
  stage.give_back(101, {5});     // 4 is
  stage.give_back(102, {6, 7, 8});
  stage.advance();
  EXPECT_EQ(stage.run.prefix_end(), 5U) << "the trajectory that never began, and the last turn, go";
  EXPECT_EQ(stage.run.withheld(), 2U);
  EXPECT_EQ(stage.run.issued(), 3U);
  EXPECT_TRUE(stage.held[102].empty()) << "none begins after a stop";
  stage.finish(100, 0);
  stage.finish(101, 4);
  stage.advance();
  for (const AgentKey agent : {AgentKey{100}, AgentKey{101}, AgentKey{102}}) {
    stage.drain(agent);
  }
  stage.advance();
  EXPECT_TRUE(stage.run.over());
  const PhaseTotals totals = stage.run.totals();
  EXPECT_EQ(totals.ok, 3U);
  EXPECT_EQ(totals.withheld, (std::vector<Seq>{1, 2}));
  EXPECT_TRUE(totals.missing.empty());
}

TEST(PhaseRun, WhatIsLeftOfAConversationWhoseAgentLeavesIsMissingAndWholeOnesGoToOthers) {
  Stage stage(talks(3), {2, 1}, -1);
  stage.advance();  // 0 … 2 and 6 … 8; 3 … 5
  stage.run.recalled(100, {3, 0, {1, 2, 6, 7, 8}});
  stage.held[100] = {0};
  stage.advance();
  stage.finish(101, 3);
  stage.finish(101, 4);
  stage.finish(101, 5);
  stage.advance();
  EXPECT_EQ(stage.held[101], (std::set<Seq>{6, 7, 8}));
  const PhaseTotals totals = stage.run.totals();
  ASSERT_EQ(totals.missing.size(), 2U);
  EXPECT_EQ(totals.missing[0].seq, 1U);
  EXPECT_EQ(totals.missing[0].agent, "a0");
}

TEST(PhaseRun, TheDrainBeginsWhenTheLastTurnsAreSent) {
  Stage stage(talks(2), {2}, -1);
  stage.advance();
  stage.advance(Duration::seconds(1));
  EXPECT_TRUE(stage.drains.empty()) << "turns are to be sent still";
  stage.finish(100, 0);
  stage.finish(100, 1);
  stage.finish(100, 2);
  EXPECT_TRUE(stage.run.first_user_done());
  stage.run.started(100, 5);
  stage.advance(Duration::seconds(2));
  EXPECT_TRUE(stage.drains.empty());
  stage.run.started(100, 6);
  stage.advance(Duration::seconds(3));
  EXPECT_EQ(stage.drains.size(), 1U);
}

TEST(PhaseRun, AStopFillsTheHolesAndDropsTheRest) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 100), {2, 2}, 2);
  stage.advance();  // 0 … 7 are leased, alternating
  ASSERT_EQ(stage.held[100], (std::set<Seq>{0, 2, 4, 6}));
  stage.run.stop_issuing(stage.now, stage.out);
  stage.sort_out();
  ASSERT_EQ(stage.recalls.size(), 2U);
  stage.give_back(100, {2, 4, 6});  // it started 0
  stage.advance();
  EXPECT_TRUE(stage.run.issuing());
  EXPECT_TRUE(stage.held[100] == std::set<Seq>{0});  // nothing before all have answered
  stage.give_back(101, {5, 7});                      // it started 1 and 3
  stage.advance();
  EXPECT_EQ(stage.run.prefix_end(), 4U);  // 3 was started, so 2 must be, 4 and above never
  EXPECT_EQ(stage.held[100], (std::set<Seq>{0, 2}));
  EXPECT_EQ(stage.held[101], (std::set<Seq>{1, 3}));
  for (const AgentKey agent : {AgentKey{100}, AgentKey{101}}) {
    while (!stage.held[agent].empty()) {
      stage.finish(agent, *stage.held[agent].begin());
      stage.advance();
    }
  }
  stage.advance();
  EXPECT_EQ(stage.drains.size(), 2U);
  EXPECT_EQ(stage.run.recorded(), 4U);
  stage.drain(100);
  stage.drain(101);
  stage.advance();
  EXPECT_TRUE(stage.run.over());
  EXPECT_TRUE(stage.run.totals().missing.empty());
}

TEST(PhaseRun, AtTheTailQueuedCommandsMoveToFreeSlots) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 8), {2, 2}, 2);
  stage.advance();
  for (const Seq seq : std::set<Seq>{0, 2, 4, 6}) {
    stage.finish(100, seq);
  }
  stage.advance();
  ASSERT_EQ(stage.recalls.size(), 1U);  // of the agent with a queue
  ASSERT_EQ(stage.recalls.count(101), 1U);
  stage.advance(Duration::millis(500));
  stage.give_back(101, {5, 7});
  stage.advance(Duration::millis(501));
  EXPECT_EQ(stage.held[100], (std::set<Seq>{5, 7}));
  EXPECT_EQ(stage.run.tail_recalls(), 1U);
  EXPECT_EQ(stage.drains.size(), 2U);
}

TEST(PhaseRun, ALostAgentsCommandsAreNamedAndNeverLeasedAgain) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 100), {2, 2}, 0);
  stage.advance();
  stage.finish(101, 3);
  stage.run.lose(101, "silence");
  stage.run.stop_issuing(stage.now, stage.out);
  stage.sort_out();
  stage.give_back(100, {});
  stage.advance();
  stage.finish(100, 0);
  stage.finish(100, 2);
  stage.advance();
  stage.drain(100);
  stage.advance();
  ASSERT_TRUE(stage.run.over());
  const PhaseTotals totals = stage.run.totals();
  EXPECT_EQ(totals.prefix, 4U);
  ASSERT_EQ(totals.missing.size(), 1U);
  EXPECT_EQ(totals.missing[0].seq, 1U);
  EXPECT_EQ(totals.missing[0].agent, "a1");
  EXPECT_EQ(totals.missing[0].why, "agent lost: silence");
  // Its record arrives after all: then it is not missing.
  stage.run.record_stored(101, {3, 1, wire::Outcome::kFailed}, stage.now);
  EXPECT_TRUE(stage.run.totals().missing.empty());
  EXPECT_EQ(stage.run.totals().failed, 1U);
}

TEST(PhaseRun, AnAbortNamesWhatWasNeverIssued) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 100), {2, 2}, 2);
  stage.advance();
  stage.run.abort(stage.now, stage.out);
  stage.sort_out();
  EXPECT_EQ(stage.drains.size(), 2U);
  stage.run.recalled(100, {3, 0, {2, 4, 6}});
  stage.run.recalled(101, {3, 0, {5, 7}});
  for (const Seq seq : std::set<Seq>{0, 1, 3}) {
    stage.run.record_stored(seq == 0 ? 100 : 101, {3, seq, wire::Outcome::kCancelled}, stage.now);
  }
  stage.drain(100);
  stage.advance();
  EXPECT_FALSE(stage.run.over());
  stage.drain(101);
  stage.advance();
  ASSERT_TRUE(stage.run.over());
  EXPECT_EQ(stage.run.prefix_end(), 4U);
  EXPECT_EQ(stage.run.issued(), 3U);
  ASSERT_EQ(stage.run.totals().missing.size(), 1U);
  EXPECT_EQ(stage.run.totals().missing[0].seq, 2U);
  EXPECT_TRUE(stage.run.totals().missing[0].agent.empty());
  EXPECT_EQ(stage.run.totals().cancelled, 3U);
}

TEST(PhaseRun, TimedCommandsGoOutTwoSecondsAheadAndAreDrainedWhenDue) {
  Stage stage(spec_of(base::Pacing::kTimed, 1000), {500, 500}, -1);
  stage.advance(Duration::millis(-100));
  const std::size_t ahead = stage.held[100].size() + stage.held[101].size();
  EXPECT_NEAR(static_cast<double>(ahead), 190, 45);  // 100 a second, 1.9 s of the phase
  EXPECT_NEAR(static_cast<double>(stage.held[100].size()), static_cast<double>(ahead) / 2, 1);
  stage.advance(Duration::seconds(60));
  EXPECT_EQ(stage.held[100].size() + stage.held[101].size(), 1000U);
  EXPECT_EQ(stage.drains.size(), 2U);
}

TEST(PhaseRun, TimedCommandsGoOutAStepAtATimeAndNeverLate) {
  const plan::PhaseSpec spec = spec_of(base::Pacing::kTimed, 2000);
  std::vector<Duration> due;
  for (plan::Schedule schedule(spec); !schedule.done();) {
    due.push_back(schedule.next()->due_offset);
  }
  Stage stage(spec, {500}, -1);
  stage.advance();
  std::size_t leases = 0;
  for (Duration at{}; at < Duration::seconds(10); at = at + Duration::millis(5)) {
    const std::size_t before = stage.held[100].size();
    stage.advance(at);
    leases += stage.held[100].size() > before ? 1U : 0U;
    EXPECT_GE(due.at(stage.held[100].size()), at + PhaseRun::kHorizon - PhaseRun::kHorizonStep);
  }
  EXPECT_LE(leases, 101U);
  EXPECT_GE(leases, 95U);
}

TEST(PhaseRun, ABurstIsLeasedInBoundedMessages) {
  Stage stage(spec_of(base::Pacing::kBurst, 30'000), {20'000}, 0);
  stage.advance();
  EXPECT_EQ(stage.held[100].size(), 20'000U);
  EXPECT_EQ(stage.largest_lease, PhaseRun::kLeaseMax);
}

TEST(PhaseRun, LostRecordsFreeTheirSlotsAndAreNamedAtTheEnd) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 4), {2}, 0);
  stage.advance();
  stage.run.records_lost(100, 2);
  stage.advance();
  EXPECT_EQ(stage.held[100].size(), 4U);
  stage.finish(100, 2);
  stage.finish(100, 3);
  stage.advance();
  ASSERT_EQ(stage.drains.size(), 1U);
  stage.run.drained(100, {3, 4, 7});
  stage.advance();
  EXPECT_FALSE(stage.run.over());  // batch 7 is not here yet
  stage.run.batch_stored(100, 7);
  stage.advance();
  ASSERT_TRUE(stage.run.over());
  ASSERT_EQ(stage.run.totals().missing.size(), 2U);
  EXPECT_EQ(stage.run.totals().missing[1].seq, 1U);
  EXPECT_EQ(stage.run.totals().missing[1].agent, "a0");
}

TEST(PhaseRun, NonsenseIsCountedAndChangesNothing) {
  Stage stage(spec_of(base::Pacing::kClosedLoop, 100), {2, 2}, 0);
  stage.advance();
  stage.run.record_stored(100, {3, 77, wire::Outcome::kOk}, stage.now);  // never leased
  stage.run.record_stored(101, {3, 0, wire::Outcome::kOk}, stage.now);   // not that agent's
  stage.run.record_stored(999, {3, 0, wire::Outcome::kOk}, stage.now);
  stage.run.recalled(100, {3, 5, {0}});  // no such recall
  stage.run.drained(100, {3, 0, 0});     // not asked
  EXPECT_EQ(stage.run.strays(), 5U);
  EXPECT_EQ(stage.run.outstanding(), 4U);
  EXPECT_EQ(stage.run.recorded(), 0U);
}

}  // namespace
}  // namespace tutti::conduct
