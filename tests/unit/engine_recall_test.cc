// Nothing is lost and nothing doubled: recall, abort, stop, full queues and rings.

#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedRequest;
using support::ScriptedServer;
using testing::ElementsAre;
using testing::IsEmpty;

class EngineRecall : public testing::TestWithParam<std::uint32_t> {};

// Records and unstarted ones together are each command once.
void expect_exact(const EngineRig& rig, std::vector<base::Seq> unstarted, std::size_t issued) {
  auto all = rig.seqs();
  all.insert(all.end(), unstarted.begin(), unstarted.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, first_seqs(issued));
}

TEST_P(EngineRecall, GivesBackExactlyWhatWasNotStarted) {
  ScriptedServer server(streams({"a"}, 20ms));
  EngineRig rig({server.url()});
  rig.config.slots = 6;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 6);
  rig.issue(200);
  ASSERT_TRUE(rig.pump_records(10));
  rig.engine().recall(0, 1);
  ASSERT_TRUE(rig.pump([&] { return rig.recalled.size() == 1; }));
  EXPECT_EQ(rig.recalled[0].number, 1U);
  EXPECT_TRUE(std::is_sorted(rig.recalled[0].unstarted.begin(), rig.recalled[0].unstarted.end()));
  ASSERT_TRUE(rig.drain());
  expect_exact(rig, rig.recalled[0].unstarted, 200);
  EXPECT_EQ(server.requests(), rig.records.size());
  EXPECT_LT(rig.records.size(), 100U);
  // Nothing starts until more is issued, and then it goes on.
  std::this_thread::sleep_for(40ms);
  EXPECT_EQ(server.requests(), rig.records.size());
  std::vector<base::IssueCommand> again;
  for (const base::Seq seq : rig.recalled[0].unstarted) {
    again.push_back(EngineRig::commands(seq, 1)[0]);
  }
  ASSERT_EQ(rig.engine().issue(0, again), again.size());
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.seqs(), first_seqs(200));
}

TEST_P(EngineRecall, IsExactUnderManyRecallsWhileCommandsFlow) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{support::send_bytes(support::json_reply(support::chat_json("x")))};
  });
  EngineRig rig({server.url()}, false);
  rig.config.slots = 5;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 5);
  std::vector<base::IssueCommand> to_issue = EngineRig::commands(0, 600);
  std::uint32_t number = 0;
  std::size_t handled = 0;
  while (!to_issue.empty() || handled < number || rig.engine().outstanding(0) > 0) {
    const std::size_t some = std::min<std::size_t>(to_issue.size(), 40);
    ASSERT_EQ(rig.engine().issue(0, std::span(to_issue).first(some)), some);
    to_issue.erase(to_issue.begin(), to_issue.begin() + static_cast<std::ptrdiff_t>(some));
    if (some > 0 && number < 60) {
      rig.engine().recall(0, ++number);
    }
    rig.pump([&] { return rig.recalled.size() > handled; }, 5ms);
    for (; handled < rig.recalled.size(); ++handled) {
      EXPECT_EQ(rig.recalled[handled].number, handled + 1);
      for (const base::Seq seq : rig.recalled[handled].unstarted) {
        to_issue.push_back(EngineRig::commands(seq, 1)[0]);
      }
    }
  }
  EXPECT_EQ(rig.seqs(), first_seqs(600));
  EXPECT_EQ(server.requests(), 600U);
}

TEST_P(EngineRecall, OfATimedPhaseReturnsWhatIsNotDue) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 10;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kTimed, 10);
  auto commands = EngineRig::commands(0, 20);
  for (std::size_t i = 10; i < 20; ++i) {
    commands[i].due_offset = Duration::seconds(600);
  }
  ASSERT_EQ(rig.engine().issue(0, commands), 20U);
  ASSERT_TRUE(rig.pump_records(10));
  rig.engine().recall(0, 9);
  ASSERT_TRUE(rig.drain());
  EXPECT_THAT(rig.recalled.at(0).unstarted, ElementsAre(10, 11, 12, 13, 14, 15, 16, 17, 18, 19));
}

TEST_P(EngineRecall, OfAPhaseThatWasNeverArmedReturnsAll) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 3;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 3, 0);
  rig.issue(5, 0, 7);
  rig.engine().recall(7, 1);
  ASSERT_TRUE(rig.drain(7));
  EXPECT_EQ(rig.recalled.at(0).phase, 7U);
  EXPECT_EQ(rig.recalled.at(0).unstarted, first_seqs(5));
}

TEST_P(EngineRecall, OfAnOldPhaseLeavesTheNewOneAlone) {
  ScriptedServer server(streams({"a"}, 30ms));
  EngineRig rig({server.url()});
  rig.config.slots = 3;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 3, 0);
  rig.issue(30, 0, 0);
  ASSERT_TRUE(rig.pump_records(1));
  rig.arm(base::Pacing::kClosedLoop, 3, 1);
  rig.issue(12, 0, 1);
  rig.engine().recall(0, 1);
  ASSERT_TRUE(rig.drain(0));
  ASSERT_TRUE(rig.drain(1));
  std::vector<base::Seq> old_ones = rig.recalled.at(0).unstarted;
  std::vector<base::Seq> new_ones;
  for (const auto& record : rig.records) {
    (record.phase == 0 ? old_ones : new_ones).push_back(record.seq);
  }
  std::sort(old_ones.begin(), old_ones.end());
  std::sort(new_ones.begin(), new_ones.end());
  EXPECT_EQ(old_ones, first_seqs(30));
  EXPECT_EQ(new_ones, first_seqs(12));
}

TEST_P(EngineRecall, AbortCancelsWhatIsInFlightAndReturnsWhatIsQueued) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{support::send_bytes(support::stream_head() +
                                               support::http_chunk(support::content_event("part"))),
                           support::pause_for(30s)};
  });
  EngineRig rig({server.url()});
  rig.config.slots = 6;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 6);
  rig.issue(20);
  rig.issue(4, 0, 1);  // of a phase that is not armed
  ASSERT_TRUE(EngineRig::wait([&] { return server.requests() == 6; }));
  ASSERT_TRUE(EngineRig::wait([&] { return rig.engine().progress().output_tokens == 6; }));
  rig.engine().abort("the coordinator said so");
  ASSERT_TRUE(rig.pump([&] { return rig.aborted.size() == 1; }));
  ASSERT_TRUE(rig.drain(0));
  ASSERT_TRUE(rig.drain(1));
  EXPECT_EQ(rig.records.size(), 6U);
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kCancelled);
    EXPECT_EQ(record.failure, wire::Failure::kCancelled);
    EXPECT_THAT(record.error_message, testing::HasSubstr("the coordinator said so"));
    EXPECT_EQ(record.content_events, 1U);
  }
  ASSERT_EQ(rig.aborted[0].parts.size(), 2U);
  expect_exact(rig, rig.aborted[0].parts[0].unstarted, 20);
  EXPECT_EQ(rig.aborted[0].parts[1].phase, 1U);
  EXPECT_EQ(rig.aborted[0].parts[1].unstarted, first_seqs(4));
}

TEST_P(EngineRecall, TheEngineWorksOnAfterAnAbort) {
  ScriptedServer server([](const ScriptedRequest& request) {
    return support::stream_script({"a"}, request.number < 3 ? 10s : 1us);
  });
  EngineRig rig({server.url()});
  rig.config.slots = 3;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 3);
  rig.issue(3);
  ASSERT_TRUE(EngineRig::wait([&] { return server.requests() == 3; }));
  rig.engine().abort("first");
  rig.engine().abort("second");
  ASSERT_TRUE(rig.pump([&] { return rig.aborted.size() == 2; }));
  rig.arm(base::Pacing::kClosedLoop, 3, 1);
  rig.issue(9, 0, 1);
  ASSERT_TRUE(rig.drain(1));
  EXPECT_EQ(rig.records.size(), 12U);
  EXPECT_EQ(rig.records.back().outcome, wire::Outcome::kOk);
}

TEST_P(EngineRecall, StopEndsEverythingAndAccountsForIt) {
  ScriptedServer server(
      [](const ScriptedRequest&) { return support::Script{support::pause_for(30s)}; });
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 4);
  rig.issue(10);
  ASSERT_TRUE(EngineRig::wait([&] { return server.requests() == 4; }));
  rig.engine().stop();
  rig.poll_once();
  EXPECT_EQ(rig.engine().outstanding(0), 0U);
  ASSERT_EQ(rig.aborted.size(), 1U);
  expect_exact(rig, rig.aborted[0].parts.at(0).unstarted, 10);
  EXPECT_EQ(rig.engine().issue(0, EngineRig::commands(10, 1)), 0U);
}

INSTANTIATE_TEST_SUITE_P(Workers, EngineRecall, testing::Values(1, 3));

TEST(EngineBounds, AFullQueueTakesWhatFitsAndMoreLater) {
  ScriptedServer server(streams({"a"}, 1ms));
  EngineRig rig({server.url()});
  rig.config.slots = 2;
  rig.config.workers = 2;
  rig.config.queue_max = 10;
  rig.arm(base::Pacing::kClosedLoop, 2, 0, Duration::millis(500));
  const auto commands = EngineRig::commands(0, 100);
  EXPECT_EQ(rig.engine().room(0), 10U);
  std::size_t taken = rig.engine().issue(0, commands);
  EXPECT_EQ(taken, 10U);
  EXPECT_EQ(rig.engine().room(0), 0U);
  while (taken < 100) {
    ASSERT_TRUE(rig.pump([&] { return rig.engine().room(0) > 0; }));
    taken += rig.engine().issue(0, std::span(commands).subspan(taken));
  }
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.seqs(), first_seqs(100));
}

TEST(EngineBounds, AFullRecordRingIsACountedLossAndDrainingStillEnds) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.record_ring = 4;
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(20);
  ASSERT_TRUE(EngineRig::wait([&] { return rig.engine().progress().done == 20; }));
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.records.size(), 4U);
  EXPECT_EQ(rig.engine().records_lost(), 16U);
  EXPECT_EQ(rig.engine().progress().health.records_lost, 16U);
}

}  // namespace
}  // namespace tutti::drive
