// Conversations in the files: when measuring ends, what events name, what is withheld.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/report/conversations_played.h"
#include "coordinator/report/event_fold.h"
#include "coordinator/report/events.h"
#include "coordinator/report/report.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using base::Instant;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace report_run;  // NOLINT: the tests' vocabulary

// Two conversations of three turns, played one and a half times: queries 0 … 8.
std::shared_ptr<const plan::Trajectories> talks() {
  auto conversations = std::make_shared<plan::Conversations>();
  for (base::SampleIndex i = 0; i < 2; ++i) {
    conversations->push_back(
        {"c" + std::to_string(i), {{3 * i, {}, 1}, {3 * i + 1, {}, 3}, {3 * i + 2, {}, 5}}});
  }
  plan::TrajectorySpec wanted;
  wanted.count = 3;
  return plan::Trajectories::make(conversations, wanted).value();
}

class TalkPrompts final : public PromptSource {
 public:
  explicit TalkPrompts(const plan::Trajectories& all) : all_(all) {}
  void prompt(std::uint32_t, base::Seq, base::SampleIndex, Prompt& out) const override {
    out.kind = Prompt::Kind::kText;
    out.value = "hello";
  }
  void turn(std::uint32_t phase, base::Seq seq, TurnName& out) const override {
    out = {};
    if (phase == 1) {
      const auto place = all_.place_of(seq);
      out = {all_.logical_id(place.trajectory),
             all_.conversation(place.trajectory).turns[place.turn].number};
    }
  }

 private:
  const plan::Trajectories& all_;
};

wire::Record skipped(std::uint32_t agent, base::Seq seq, std::int64_t at_ms, base::Seq cause) {
  wire::Record out = failed_record(agent, 1, seq, at_ms, at_ms, wire::Failure::kTurnSkipped,
                                   "prior turn timed out (query=" + std::to_string(cause) + ")");
  out.due_at = out.issued_at;
  out.sent_at = {};
  out.first_byte_at = {};
  return out;
}

// Two at a time. The first ends at 400 and the third begins; the second fails at 500: none is left.
// The third goes on alone.
void accept_talks(ledger::Ledger& ledger, RunFacts& run) {
  accept_warmup(ledger);
  accept(ledger, 0, 2,
         {ok_record(0, 1, 0, 100, 110, 200, 3), ok_record(0, 1, 1, 200, 210, 300, 3),
          ok_record(0, 1, 2, 300, 310, 400, 3), ok_record(0, 1, 6, 401, 410, 480, 3),
          ok_record(0, 1, 7, 480, 490, 600, 3), ok_record(0, 1, 8, 600, 610, 700, 3)});
  accept(ledger, 1, 2,
         {ok_record(1, 1, 3, 101, 110, 250, 3),
          failed_record(1, 1, 4, 250, 500, wire::Failure::kTurnTimeout, "turn timeout after 0.25s"),
          skipped(1, 5, 500, 4)});
  run.phases[1].issued = 9;
  run.phases[1].plays = true;
}

TEST(TrackingEnd, IsTheFirstEndWhenNoneIsLeftToBegin) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_talks(ledger, run);
  EXPECT_EQ(tracking_end(ledger, 1, *talks()), Instant{kStart + 500 * kMs + 1});
}

TEST(TrackingEnd, IsNotReachedWhenSomeNeverBegan) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  accept(ledger, 0, 1,
         {ok_record(0, 1, 0, 100, 110, 200, 3), ok_record(0, 1, 3, 100, 110, 900, 3)});
  EXPECT_FALSE(tracking_end(ledger, 1, *talks()).is_set());
}

TEST(ReportTurns, WhatIsIssuedAfterTheEndCountsInTheTotalsOnly) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_talks(ledger, run);
  run.phases[1].tracked_until = tracking_end(ledger, 1, *talks());
  std::string all;
  ASSERT_TRUE(write_events(run, ledger, TalkPrompts(*talks()),
                           [&](std::string_view lines) { all += lines; }));
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  const Counters& own = report->snapshot.counters;
  EXPECT_EQ(own.total_issued, 11) << "two of the warm-up";
  EXPECT_EQ(own.tracked_issued, 8) << "all but the turn that was issued at 600 ms";
  EXPECT_EQ(own.tracked_completed, 8);
  EXPECT_EQ(own.tracked_failed, 2) << "the time-out and the turn that was not sent";
  EXPECT_EQ(own.tracked_duration_ns, 500 * kMs) << "100 to 600";
  // The file says the same to whoever reads it.
  std::ofstream(folder / "events.jsonl") << all;
  TokenCounter counter;
  counter.text = count_words;
  const auto folded = fold_events(folder / "events.jsonl", counter, {});
  ASSERT_TRUE(folded) << folded.error().message;
  EXPECT_EQ(folded->counters.tracked_issued, 8);
  EXPECT_EQ(folded->counters.tracked_failed, 2);
  EXPECT_EQ(folded->counters.tracked_duration_ns, own.tracked_duration_ns);
  EXPECT_EQ(folded->latency.total, report->snapshot.latency.total);
  EXPECT_EQ(folded->latency.count, 8U) << "the skipped turn's is 0";
}

TEST(ReportTurns, EveryLineOfAQueryNamesItsConversationAndTurn) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_talks(ledger, run);
  std::string all;
  ASSERT_TRUE(write_events(run, ledger, TalkPrompts(*talks()),
                           [&](std::string_view lines) { all += lines; }));
  const std::string second = talks()->logical_id(1);
  std::vector<std::string> story;
  std::istringstream in(all);
  for (std::string line; std::getline(in, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event["event_type"].get<std::string>().rfind("session", 0) == 0) {
      EXPECT_EQ(event["conversation_id"], "");
      EXPECT_TRUE(event["turn"].is_null());
    } else if (event["conversation_id"] == second) {
      story.push_back(event["turn"].dump() + event["event_type"].get<std::string>());
      if (event["turn"] == 5 && event["event_type"] == "error.generic") {
        EXPECT_EQ(event["data"][1], "TurnAbortedByPriorFailure");
        EXPECT_EQ(event["data"][2],
                  "prior turn timed out (query=" + base::query_id(run.run, 1, 4) + ")");
      } else if (event["turn"] == 5 && event["event_type"] == "sample.issued") {
        EXPECT_EQ(event["data"].dump(), R"(["PromptData",null,null,null,null,null,null,null])");
      } else if (event["turn"] == 3 && event["event_type"] == "error.generic") {
        EXPECT_EQ(event["data"].dump(),
                  R"(["ErrorData","TurnTimeout","turn timeout after 0.25s"])");
      }
    }
  }
  EXPECT_THAT(story, ElementsAre("1sample.issued", "1sample.recv_first", "1sample.complete",
                                 "3sample.issued", "3error.generic", "3sample.complete",
                                 "5sample.issued", "5error.generic", "5sample.complete"));
}

TEST(ReportTurns, TheReportSaysWhatBecameOfTheConversationsAndWhatIsMeasured) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_talks(ledger, run);
  run.phases[1].tracked_until = tracking_end(ledger, 1, *talks());
  run.phases[1].conversations = count_conversations(ledger, 1, 9, *talks());
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  EXPECT_THAT(report_text(*report),
              HasSubstr("- Conversations -------------------\n"
                        "  3 planned, 3 begun: 2 to their end, 1 failed on a turn, 0 cut short\n"
                        "  1 turns were not sent after a failed one; "));
  EXPECT_THAT(report_text(*report), HasSubstr("  Measured: the 8 turns issued in the first 0.40 s, "
                                              "until a conversation ended with none left"));
  const auto json = nlohmann::json::parse(result_summary_json(*report));
  EXPECT_EQ(
      json["distributed"]["phases"][1]["conversations"],
      nlohmann::json::parse(
          R"({"planned":3,"begun":3,"whole":2,"failed":1,"turns_skipped":1,"turns_withheld":0})"));
  EXPECT_FALSE(json["distributed"]["phases"][0].contains("conversations"));
}

TEST(ReportTurns, ConversationsCutShortByAStopAreCountedApart) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept(ledger, 0, 1,
         {ok_record(0, 1, 0, 100, 110, 200, 3), ok_record(0, 1, 3, 100, 110, 900, 3)});
  ledger.withhold(1, {1, 2});  // 4 is lost; the third never began
  const ConversationCount count = count_conversations(ledger, 1, 5, *talks());
  EXPECT_EQ(count.planned, 3U);
  EXPECT_EQ(count.begun, 2U);
  EXPECT_EQ(count.whole + count.failed, 0U);
  EXPECT_EQ(count.turns_withheld, 2U);
}

TEST(ReportTurns, WithheldTurnsAreNeitherIssuedNorMissing) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_warmup(ledger);
  accept(ledger, 0, 2,
         {ok_record(0, 1, 0, 100, 110, 200, 3), ok_record(0, 1, 3, 100, 110, 900, 3)});
  ledger.withhold(1, {1, 2});
  run.phases[1].issued = 5;  // 4 is really lost
  run.phases[1].plays = true;
  EXPECT_TRUE(ledger.is_withheld(1, 2));
  EXPECT_FALSE(ledger.is_withheld(1, 3));
  EXPECT_EQ(ledger.missing_count(1, 5), 1U);
  EXPECT_EQ(ledger.missing(1, 5), (std::vector<base::Seq>{4}));
  EXPECT_EQ(ledger.never_issued(1, 5), 0U);
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->snapshot.counters.tracked_issued, 3) << "the lost one included";
  EXPECT_EQ(report->snapshot.counters.tracked_completed, 2);
}

}  // namespace
}  // namespace tutti::report
