// Which frontend gets the next query, and when the next connection may be opened.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/target/connect_pacer.h"
#include "agent/target/frontend_picker.h"

namespace tutti::target {
namespace {

using base::Balance;
using base::Duration;
using base::Instant;
using testing::ElementsAre;

PickRules rules(Balance balance, std::vector<std::uint32_t> weights = {}) {
  return {balance, std::move(weights), {}};
}

TEST(FrontendPicker, LeastInFlightFillsTheGapAndRotatesTies) {
  FrontendPicker picker(rules(Balance::kLeastInFlight), 3, 0);
  std::vector<int> first;
  for (int i = 0; i < 6; ++i) {
    const std::uint16_t f = picker.pick(0, 0);
    picker.started(f);
    first.push_back(f);
  }
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 0, 1, 2));
  picker.ended(1);
  EXPECT_EQ(picker.pick(0, 0), 1);
  picker.started(1);
  EXPECT_EQ(picker.in_flight(1), 2U);
}

TEST(FrontendPicker, WorkersBeginAtDifferentFrontends) {
  FrontendPicker second(rules(Balance::kLeastInFlight), 3, 4);
  EXPECT_EQ(second.pick(0, 0), 1);
}

TEST(FrontendPicker, RoundRobinIsTheSequenceAndPinnedTheWorker) {
  FrontendPicker robin(rules(Balance::kRoundRobin), 3, 1);
  FrontendPicker pinned(rules(Balance::kPinned), 3, 7);
  for (base::Seq seq = 0; seq < 9; ++seq) {
    EXPECT_EQ(robin.pick(seq, 0), seq % 3);
    EXPECT_EQ(pinned.pick(seq, 0), 1);
  }
}

// Without a rule the frontend that fails at once is always the one with fewest in flight.
TEST(FrontendPicker, AFrontendThatFailsAtOnceGetsNoMoreThanItsTurn) {
  FrontendPicker picker(rules(Balance::kLeastInFlight), 4, 0);
  std::vector<int> counts(4, 0);
  for (int i = 0; i < 4000; ++i) {
    const std::uint16_t f = picker.pick(0, 0);
    ++counts[f];
    picker.started(f);
    if (f == 2) {  // dead; the others keep what they get
      picker.ended(f);
      picker.judged(f, false);
    }
  }
  EXPECT_LE(counts[2], 1001);
  EXPECT_GE(counts[2], 990) << "it is not left out either";
}

TEST(FrontendPicker, OneSuccessEndsTheRule) {
  FrontendPicker picker(rules(Balance::kLeastInFlight), 2, 0);
  picker.judged(0, false);
  picker.judged(0, false);
  picker.judged(0, true);
  for (int i = 0; i < 10; ++i) {
    picker.started(1);
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(picker.pick(0, 0), 0);
  }
}

TEST(FrontendPicker, WhenAllFailTheyTakeTurns) {
  FrontendPicker picker(rules(Balance::kLeastInFlight), 3, 0);
  for (std::uint16_t f = 0; f < 3; ++f) {
    picker.judged(f, false);
  }
  std::vector<int> counts(3, 0);
  for (int i = 0; i < 300; ++i) {
    ++counts[picker.pick(0, 0)];
  }
  EXPECT_THAT(counts, ElementsAre(100, 100, 100));
}

TEST(WeightedRound, IsSmoothAndExact) {
  EXPECT_THAT(weighted_round(std::vector<std::uint32_t>{3, 1}), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(weighted_round(std::vector<std::uint32_t>{20, 20}), ElementsAre(0, 1));
  EXPECT_THAT(weighted_round(std::vector<std::uint32_t>{0, 5, 0}), ElementsAre(1));
}

TEST(FrontendPicker, WeightedSequencesAreOneForAllWorkers) {
  std::vector<int> counts(3, 0);
  FrontendPicker one(rules(Balance::kWeighted, {7, 2, 1}), 3, 0);
  FrontendPicker other(rules(Balance::kWeighted, {7, 2, 1}), 3, 5);
  one.arm(base::Pacing::kBurst, 0, 10);
  other.arm(base::Pacing::kBurst, 0, 10);
  for (base::Seq seq = 0; seq < 10'000; ++seq) {
    ++counts[(seq % 3 == 0 ? one : other).pick(seq, 0)];
  }
  EXPECT_THAT(counts, ElementsAre(7000, 2000, 1000));
}

TEST(FrontendPicker, WeightedSlotsThatAreOfADeadFrontendDoNotSpin) {
  FrontendPicker picker(rules(Balance::kWeighted, {2, 1, 1}), 3, 0);
  picker.arm(base::Pacing::kClosedLoop, 0, 8);
  std::vector<int> counts(3, 0);
  std::vector<std::uint16_t> live;
  for (int i = 0; i < 1000; ++i) {
    const std::uint16_t f = picker.pick(0, 0);
    ++counts[f];
    picker.started(f);
    if (f == 2) {
      picker.ended(f);
      picker.judged(f, false);
      continue;
    }
    live.push_back(f);
    if (live.size() == 8) {
      picker.ended(live.front());
      picker.judged(live.front(), true);
      live.erase(live.begin());
    }
  }
  EXPECT_LE(counts[2], 251);
  EXPECT_GE(counts[2], 200);
}

// ---- the pacer -------------------------------------------------------------------------------

Instant at_us(std::int64_t us) { return Instant{1'000'000'000 + us * 1000}; }

TEST(ConnectPacer, WithoutARateNothingWaits) {
  ConnectPacer pacer(0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(pacer.open(at_us(0)));
    pacer.charge(at_us(0));
  }
}

TEST(ConnectPacer, AHundredthOfASecondAtOnceThenTheRate) {
  ConnectPacer pacer(1000);
  int opened = 0;
  for (int us = 0; us < 1'000'000; us += 100) {
    while (pacer.open(at_us(us))) {
      pacer.charge(at_us(us));
      ++opened;
    }
    ASSERT_LE(opened, 10 + us / 1000);
  }
  EXPECT_GE(opened, 1008);
}

TEST(ConnectPacer, WhatWasOpenedUnaskedIsPaidBack) {
  ConnectPacer pacer(100);
  for (int i = 0; i < 51; ++i) {
    pacer.charge(at_us(0));
  }
  EXPECT_FALSE(pacer.open(at_us(499'000)));
  EXPECT_EQ(pacer.next_at(), at_us(510'000));
  EXPECT_TRUE(pacer.open(at_us(510'000)));
}

}  // namespace
}  // namespace tutti::target
