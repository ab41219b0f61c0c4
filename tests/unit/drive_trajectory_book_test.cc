// TrajectoryBook: every turn once, in order, and handed back when it was not taken up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/drive/trajectory_book.h"

namespace tutti::drive {
namespace {

using base::Duration;
using base::Instant;
using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<Trajectory> talk(base::Seq first, std::size_t turns, Duration delay = {}) {
  auto made = std::make_unique<Trajectory>();
  for (std::size_t i = 0; i < turns; ++i) {
    base::IssueCommand command;
    command.seq = first + i;
    command.due_offset = i == 0 ? Duration{} : delay;
    made->turns.push_back(command);
  }
  return made;
}

base::Seq newest(const Trajectory& trajectory) {
  return trajectory.turns[trajectory.taken - 1].seq;
}

TEST(TrajectoryBook, PlaysTurnsOneAfterTheOtherEachAfterItsDelay) {
  TrajectoryBook book;
  EXPECT_TRUE(book.empty());
  book.add(talk(10, 3, Duration::millis(5)));
  ASSERT_TRUE(book.anyone_waits());
  EXPECT_EQ(book.find(10), nullptr) << "it has not begun";
  Trajectory& begun = book.begin();
  EXPECT_EQ(newest(begun), 10U);
  EXPECT_FALSE(book.anyone_waits());
  EXPECT_EQ(book.next_turn_at(), base::kFarFuture) << "not before the first has ended";
  EXPECT_EQ(book.find(10), &begun);
  EXPECT_EQ(book.find(11), nullptr) << "not sent yet";
  EXPECT_TRUE(book.await_next(begun, Instant{1000}));
  EXPECT_EQ(book.next_turn_at(), Instant{1000} + Duration::millis(5));
  EXPECT_EQ(newest(book.go_on()), 11U);
  EXPECT_TRUE(book.await_next(begun, Instant{9'000'000}));
  EXPECT_EQ(newest(book.go_on()), 12U);
  EXPECT_FALSE(book.await_next(begun, Instant{20'000'000})) << "it was the last";
  book.close(begun);
  EXPECT_TRUE(book.empty());
}

TEST(TrajectoryBook, TheLowestNumberBeginsAndTheEarliestTurnGoesOn) {
  TrajectoryBook book;
  book.add(talk(20, 2));
  book.add(talk(0, 2, Duration::millis(9)));
  book.add(talk(7, 2, Duration::millis(1)));
  Trajectory& first = book.begin();
  Trajectory& second = book.begin();
  EXPECT_EQ(newest(first), 0U);
  EXPECT_EQ(newest(second), 7U);
  book.await_next(first, Instant{100});
  book.await_next(second, Instant{200});
  EXPECT_EQ(newest(book.go_on()), 8U);
  EXPECT_EQ(newest(book.go_on()), 1U);
}

TEST(TrajectoryBook, ARecallGivesBackWhatWasNotSentAndLeavesWhatIsInFlight) {
  TrajectoryBook book;
  book.add(talk(0, 3));
  book.add(talk(3, 3));
  book.add(talk(6, 2));
  Trajectory& in_flight = book.begin();
  Trajectory& between = book.begin();
  book.await_next(between, Instant{50});
  auto back = book.recall();
  std::sort(back.turns.begin(), back.turns.end());
  EXPECT_THAT(back.turns, ElementsAre(1, 2, 4, 5, 6, 7));
  EXPECT_EQ(back.never_begun, 1U);
  EXPECT_EQ(back.over, 1U) << "the one between two turns";
  EXPECT_EQ(book.next_turn_at(), base::kFarFuture);
  EXPECT_EQ(book.find(3), nullptr);
  EXPECT_EQ(book.find(0), &in_flight);
  EXPECT_FALSE(book.await_next(in_flight, Instant{60})) << "what is left of it is gone";
  EXPECT_THAT(book.recall().turns, IsEmpty());
}

TEST(TrajectoryBook, OneThatIsGivenUpKeepsItsTurnsThroughARecall) {
  TrajectoryBook book;
  book.add(talk(5, 4));
  Trajectory& failed = book.begin();
  EXPECT_EQ(TrajectoryBook::give_up(failed), 1U);
  EXPECT_THAT(book.recall().turns, IsEmpty());
  EXPECT_EQ(failed.turns.size(), 4U);
  EXPECT_EQ(book.find(8), &failed);
  book.close(failed);
  EXPECT_TRUE(book.empty());
}

}  // namespace
}  // namespace tutti::drive
