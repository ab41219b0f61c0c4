// The search for the highest load that holds, the words for one that does not, and the head-room
// factor.

#include "coordinator/calibrate_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using base::Duration;
using testing::HasSubstr;

// Drives a search against a host that holds everything up to `limit`; returns the loads tried.
std::vector<double> drive(LoadSearch& search, double limit) {
  std::vector<double> tried;
  while (const auto load = search.next()) {
    tried.push_back(*load);
    if (tried.size() > 100) {
      ADD_FAILURE() << "the search does not end";
      break;
    }
    search.tell(*load <= limit, *load / limit);
  }
  return tried;
}

TEST(LoadSearch, EndsCloseBelowTheLimitOfAnyHost) {
  for (const double limit : {1.0, 3.0, 70.0, 999.0, 1000.0, 5400.0, 123'456.0}) {
    LoadSearch search({1000, 1e6, 1.15});
    drive(search, limit);
    EXPECT_LE(search.best(), limit);
    if (limit >= 1000.0 / 64) {
      EXPECT_GE(search.best() * 1.15 + 2, limit) << "limit " << limit;
    }
  }
}

TEST(LoadSearch, ACloseGuessTakesFewSteps) {
  LoadSearch search({1000, 1e6, 1.15});
  EXPECT_LE(drive(search, 60'000).size(), 6U);
}

TEST(LoadSearch, StopsAtTheMostItMayAsk) {
  LoadSearch search({1000, 9000, 1.15});
  const auto tried = drive(search, 1e9);
  EXPECT_EQ(search.best(), 9000);
  EXPECT_TRUE(search.reached_most());
  EXPECT_FALSE(search.fell_short());
  for (const double load : tried) {
    EXPECT_LE(load, 9000);
  }
}

TEST(LoadSearch, LeapsByTwoWhereTheUseIsNotKnown) {
  LoadSearch search({1000, 1e6, 1.15});
  search.tell(true, 0);
  EXPECT_EQ(search.next(), 2000);
}

TEST(LoadSearch, WhenNothingHoldsTheBestIsNone) {
  LoadSearch search({1000, 1e6, 1.15});
  drive(search, 0.5);
  EXPECT_EQ(search.best(), 0);
  EXPECT_FALSE(search.reached_most());
}

StepSeen honest() {
  StepSeen seen;
  seen.queries = 100;
  seen.offered_per_s = 1000;
  seen.achieved_per_s = 990;
  seen.lag_p99 = Duration::micros(300);
  seen.cpu_busiest = 0.5;
  return seen;
}

TEST(Shortfall, EachLimitSpeaksForItselfWithBothNumbers) {
  EXPECT_EQ(shortfall(honest(), {}), "");
  auto seen = honest();
  seen.failed = 3;
  seen.failure = "refused";
  EXPECT_THAT(shortfall(seen, {}), testing::AllOf(HasSubstr("3 of 100"), HasSubstr("refused")));
  seen = honest();
  seen.lost = 2;
  EXPECT_THAT(shortfall(seen, {}), HasSubstr("2 records"));
  seen = honest();
  seen.cpu_busiest = 0.81;
  EXPECT_THAT(shortfall(seen, {}), testing::AllOf(HasSubstr("0.81"), HasSubstr("0.80")));
  seen = honest();
  seen.lag_p99 = Duration::micros(1500);
  EXPECT_THAT(shortfall(seen, {}), testing::AllOf(HasSubstr("1.500"), HasSubstr("1.000")));
  seen = honest();
  seen.in_flight_share = 0.9;
  EXPECT_THAT(shortfall(seen, {}), testing::AllOf(HasSubstr("90.00"), HasSubstr("99.90")));
  seen = honest();
  seen.achieved_per_s = 900;
  EXPECT_THAT(shortfall(seen, {}), testing::AllOf(HasSubstr("900"), HasSubstr("1000")));
}

TEST(HeadRoom, IsTheLeastOfWhatIsAskedAndScalesWithAgents) {
  const Measured measured{{40'000}, {10'000}, {16'000}, 2};  // by two agents
  Expected asked;
  EXPECT_FALSE(head_room(measured, asked, 6));
  asked.events_per_s = 60'000;
  asked.streams = 12'000;
  auto room = head_room(measured, asked, 6);  // 120,000 events and 48,000 streams
  ASSERT_TRUE(room);
  EXPECT_DOUBLE_EQ(room->factor, 2);
  EXPECT_THAT(room->by, HasSubstr("stream events/s: 60000 of 120000"));
  asked.streams = 96'000;
  room = head_room(measured, asked, 6);
  EXPECT_DOUBLE_EQ(room->factor, 0.5);
  EXPECT_THAT(room->by, HasSubstr("streams held"));
  asked = {};
  asked.requests_per_s = 10'000;
  EXPECT_DOUBLE_EQ(head_room(measured, asked, 1)->factor, 0.5);
}

TEST(HeadRoom, OfWhatWasNotMeasuredCannotBeTold) {
  Expected asked;
  asked.events_per_s = 10;
  asked.streams = 5;
  const Measured nothing;
  EXPECT_EQ(head_room(nothing, asked, 3)->untold, "stream events/s, streams held");
  const Measured events_only{{40'000}, {}, {}, 1};
  EXPECT_EQ(head_room(events_only, asked, 3)->untold, "streams held");
  asked.streams.reset();
  EXPECT_EQ(head_room(events_only, asked, 3)->untold, "");
}

TEST(HeadRoom, IsAtLeastWhereTheScarcestWasNotSearchedToItsEnd) {
  Expected asked;
  asked.events_per_s = 10'000;
  asked.streams = 1000;
  Measured measured{{40'000, true}, {}, {8000}, 1};
  auto room = head_room(measured, asked, 1);
  EXPECT_DOUBLE_EQ(room->factor, 4);
  EXPECT_TRUE(room->at_least);
  EXPECT_THAT(room->by, HasSubstr("10000 of at least 40000"));
  measured.streams.best = 2000;  // a limit that was met is scarcer
  room = head_room(measured, asked, 1);
  EXPECT_DOUBLE_EQ(room->factor, 2);
  EXPECT_FALSE(room->at_least);
}

}  // namespace
}  // namespace tutti
