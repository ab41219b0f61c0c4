// AgentMachine and the counting of replies: no record waits for a count, Drained does, and not for
// ever.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/agent_bench.h"

namespace tutti::session {
namespace {

using base::Duration;

// A bench whose run counts: phase 7 is a performance phase.
struct CountingBench : Bench {
  CountingBench() {
    hear(wire::Welcome{base::Id{3, 4}, 5, Duration::millis(250), Duration::seconds(3)});
    wire::Prepare prepare;
    prepare.counting = {"model", 10, Duration::seconds(2)};
    hear(prepare);
    step(BodiesOpened{true, {}, true});
    step(EngineWarmed{{}, {{true, 10, ""}}, 4});
    arm();
  }
  void reply(base::Seq seq, wire::Outcome outcome = wire::Outcome::kOk,
             const std::string& text = "x") {
    RecordsDone event;
    wire::Record& record = event.records.emplace_back();
    record.seq = seq;
    record.phase = 7;
    record.outcome = outcome;
    record.done_at = now;
    record.output.content_first = text;
    step(std::move(event));
  }
  void count(base::Seq seq) { step(RepliesCounted{{{7, seq, 3, 2, false}}, 0}); }
  // Sequence numbers of counts in the batches said since.
  std::vector<base::Seq> counts_said() {
    std::vector<base::Seq> seqs;
    for (const auto& batch : said<wire::RecordBatch>()) {
      for (const auto& count : batch.tokens) {
        seqs.push_back(count.seq);
      }
    }
    return seqs;
  }
};

TEST(AgentCounting, TheModelIsFetchedOnceAndTheEngineStartsWhenAllIsHere) {
  Bench bench;
  bench.hear(wire::Welcome{});
  wire::Prepare prepare;
  prepare.counting = {"model", 10, Duration::seconds(2)};
  bench.hear(prepare);
  EXPECT_EQ(bench.done<OpenBodies>().at(0).counting.model_hash, "model");
  bench.step(BodiesOpened{false, {}, false});
  const auto wanted = bench.said<wire::BodiesWanted>();
  EXPECT_TRUE(wanted.at(0).wanted && wanted.at(0).model_wanted);
  bench.hear(wire::BodyChunk{0, "b", true, false});
  bench.step(BodiesStored{});
  EXPECT_TRUE(bench.done<EngineStart>().empty()) << "the model is not here";
  bench.hear(wire::BodyChunk{0, "m", false, true});
  bench.hear(wire::BodyChunk{1, "n", true, true});
  EXPECT_EQ(bench.done<StoreBodies>().size(), 3U);
  EXPECT_TRUE(bench.done<EngineStart>().empty()) << "not known to be stored";
  bench.step(BodiesStored{});
  EXPECT_EQ(bench.done<EngineStart>().size(), 1U);
  EXPECT_EQ(bench.machine.illegal(), 0U);
}

TEST(AgentCounting, AModelNobodyAskedForIsNotTaken) {
  Bench bench;
  bench.hear(wire::Welcome{});
  bench.hear(wire::Prepare{});
  bench.step(BodiesOpened{false, {}, false});
  EXPECT_FALSE(bench.said<wire::BodiesWanted>().at(0).model_wanted);
  bench.hear(wire::BodyChunk{0, "m", true, true});
  EXPECT_EQ(bench.machine.illegal(), 1U);
  EXPECT_TRUE(bench.done<StoreBodies>().empty());
}

TEST(AgentCounting, OnlyAnswersOfThePerformancePhaseAreCounted) {
  CountingBench bench;
  bench.lease(0, 10);
  bench.reply(0);
  bench.reply(1, wire::Outcome::kFailed);
  bench.reply(2, wire::Outcome::kOk, "");
  const auto asked = bench.done<CountReplies>();
  ASSERT_EQ(asked.size(), 1U);
  ASSERT_EQ(asked[0].replies.size(), 1U);
  EXPECT_EQ(asked[0].replies[0].seq, 0U);
  EXPECT_EQ(asked[0].replies[0].text.content_first, "x");
  EXPECT_EQ(bench.machine.counting(), 1U);
}

TEST(AgentCounting, NothingIsCountedWhereNobodyAskedForIt) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 1);
  RecordsDone event;
  event.records.resize(1);
  event.records[0].phase = 7;
  event.records[0].output.content_first = "x";
  bench.step(std::move(event));
  EXPECT_TRUE(bench.done<CountReplies>().empty());
  bench.step(RepliesCounted{{{7, 0, 3, 2, false}}, 0});
  EXPECT_EQ(bench.machine.illegal(), 1U);
}

TEST(AgentCounting, ARecordGoesWithoutItsCountAndTheCountLater) {
  CountingBench bench;
  bench.lease(0, 1000);
  bench.reply(0);
  bench.pass(RecordBatcher::kWaitMax);
  const auto first = bench.said<wire::RecordBatch>();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].records.size(), 1U);
  EXPECT_TRUE(first[0].tokens.empty());

  bench.count(0);
  EXPECT_TRUE(bench.said<wire::RecordBatch>().empty()) << "it waits for company";
  bench.reply(1);
  bench.pass(RecordBatcher::kWaitMax);
  const auto second = bench.said<wire::RecordBatch>();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].records.size(), 1U);
  ASSERT_EQ(second[0].tokens.size(), 1U);
  EXPECT_EQ(second[0].tokens[0], (wire::TokenCount{7, 0, 3, 2, false}));
  EXPECT_EQ(bench.done<SpoolAppend>().at(1).batch, second[0]) << "the spool has it too";

  bench.count(1);
  bench.pass(RecordBatcher::kCountWaitMax);
  EXPECT_THAT(bench.counts_said(), testing::ElementsAre(1)) << "alone, when no company comes";
}

TEST(AgentCounting, DrainedWaitsForTheLastCountAndSaysTheBatchItIsIn) {
  CountingBench bench;
  bench.lease(0, 2);
  bench.hear(wire::Drain{7});
  bench.reply(0);
  bench.reply(1);
  const auto records = bench.said<wire::RecordBatch>();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].records.size(), 2U) << "records wait for no count";
  bench.count(1);
  EXPECT_TRUE(bench.said<wire::Drained>().empty());
  EXPECT_EQ(bench.done<HurryCounting>().size(), 1U) << "no measurement is in its way any more";
  EXPECT_LE(bench.machine.next_tick(), bench.now + AgentMachine::kCountsEvery);
  bench.pass(Duration::millis(500));
  bench.count(0);
  const auto batches = bench.said<wire::RecordBatch>();
  ASSERT_FALSE(batches.empty());
  const auto drained = bench.said<wire::Drained>();
  ASSERT_EQ(drained.size(), 1U);
  EXPECT_EQ(drained[0].last_batch, batches.back().number);
  EXPECT_EQ(drained[0].started, 2U);
  EXPECT_TRUE(bench.done<StopCounting>().empty());
  Gauges gauges;
  gauges.progress.health.to = bench.now;
  bench.step(gauges);
  EXPECT_EQ(bench.said<wire::Progress>().back().health.counting_drain, Duration::millis(500));
}

TEST(AgentCounting, ACounterThatStandsStillHoldsDrainedForItsTimeOnly) {
  CountingBench bench;
  bench.lease(0, 2);
  bench.hear(wire::Drain{7});
  bench.reply(0);
  bench.reply(1);
  bench.count(0);
  bench.pass(Duration::millis(1990));
  EXPECT_TRUE(bench.said<wire::Drained>().empty());
  bench.pass(Duration::millis(10));
  EXPECT_EQ(bench.done<StopCounting>().size(), 1U);
  EXPECT_EQ(bench.said<wire::Drained>().size(), 1U);
  EXPECT_THAT(bench.counts_said(), testing::ElementsAre(0)) << "what was counted is not lost";
  bench.count(1);
  EXPECT_EQ(bench.machine.illegal(), 1U) << "nobody waits any more";
}

TEST(AgentCounting, WhatFoundNoRoomIsNotWaitedFor) {
  CountingBench bench;
  bench.lease(0, 2);
  bench.hear(wire::Drain{7});
  bench.reply(0);
  bench.reply(1);
  bench.step(RepliesCounted{{}, 2});
  EXPECT_EQ(bench.said<wire::Drained>().size(), 1U);
}

TEST(AgentCounting, AnAbortWaitsForNoCount) {
  CountingBench bench;
  bench.lease(0, 2);
  bench.reply(0);
  bench.hear(wire::Abort{"enough"});
  bench.step(EngineAborted{7, {1}});
  bench.hear(wire::Drain{7});
  EXPECT_EQ(bench.done<StopCounting>().size(), 1U);
  EXPECT_EQ(bench.said<wire::Drained>().size(), 1U);
}

TEST(AgentCounting, WithoutACoordinatorCountsGoOnIntoTheSpoolForItsTime) {
  CountingBench bench;
  bench.lease(0, 3);
  bench.reply(0);
  bench.reply(1);
  bench.step(LinkLost{"silence"});
  bench.step(EngineRecalled{7, 0, {2}});
  EXPECT_TRUE(bench.done<Exit>().empty()) << "two counts are still out";
  bench.count(0);
  bench.pass(Duration::millis(100));
  bench.done<SpoolAppend>();
  bench.count(1);
  const auto spooled = bench.done<SpoolAppend>();
  ASSERT_EQ(spooled.size(), 1U);
  EXPECT_EQ(spooled[0].batch.tokens.size(), 2U) << "both, as the first waited for company";
  EXPECT_EQ(bench.done<Exit>().size(), 1U);
}

TEST(AgentCounting, ALostCoordinatorsTimeEndsTheWaitToo) {
  CountingBench bench;
  bench.lease(0, 1);
  bench.reply(0);
  bench.step(LinkLost{"silence"});
  bench.step(EngineRecalled{7, 0, {}});
  bench.pass(config_of().orphan_drain_max + Duration::millis(10));
  EXPECT_EQ(bench.done<StopCounting>().size(), 1U);
  EXPECT_EQ(bench.done<Exit>().size(), 1U);
}

TEST(AgentCounting, AGoodbyeEndsTheCountingAtOnce) {
  CountingBench bench;
  bench.lease(0, 1);
  bench.reply(0);
  bench.hear(wire::Goodbye{"called off"});
  EXPECT_EQ(bench.done<StopCounting>().size(), 1U);
}

TEST(RecordBatcher, CountsOfOneBatchAreBoundedAndNoneIsLost) {
  RecordBatcher batcher;
  std::vector<wire::TokenCount> counts(RecordBatcher::kCountsMax * 2 + 5);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i].seq = i;
  }
  batcher.add_counts(std::move(counts), base::Instant{1});
  std::vector<Command> out;
  batcher.flush(base::Instant{1}, RecordBatcher::Cut::kDue, out);
  EXPECT_EQ(out.size(), 4U) << "two full batches, to the spool and sent";
  EXPECT_FALSE(batcher.all_sent());
  batcher.flush(base::Instant{1}, RecordBatcher::Cut::kAll, out);
  EXPECT_TRUE(batcher.all_sent());
  base::Seq next = 0;
  for (const Command& command : out) {
    if (const auto* append = std::get_if<SpoolAppend>(&command)) {
      EXPECT_LE(append->batch.tokens.size(), RecordBatcher::kCountsMax);
      for (const auto& count : append->batch.tokens) {
        EXPECT_EQ(count.seq, next++);
      }
    }
  }
  EXPECT_EQ(next, RecordBatcher::kCountsMax * 2 + 5);
}

}  // namespace
}  // namespace tutti::session
