// Trajectories: the numbering of turns, budgets, passes, delays; and the schedule over them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/plan/order.h"
#include "common/plan/schedule.h"

namespace tutti::plan {
namespace {

using base::Duration;

// Conversation i has i + 1 turns, of samples that are numbered through.
std::shared_ptr<const Conversations> some(std::size_t count) {
  auto out = std::make_shared<Conversations>();
  base::SampleIndex sample = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Conversation one{"c" + std::to_string(i), {}};
    for (std::size_t turn = 0; turn <= i; ++turn) {
      one.turns.push_back({sample++, Duration::millis(100 + static_cast<int>(turn)),
                           static_cast<std::uint32_t>(2 * turn + 1)});
    }
    out->push_back(std::move(one));
  }
  return out;
}

std::shared_ptr<const Trajectories> made(std::size_t conversations, const TrajectorySpec& spec) {
  auto out = Trajectories::make(some(conversations), spec);
  EXPECT_TRUE(out.has_value()) << (out ? "" : out.error().message);
  return *out;
}

TEST(Trajectories, EachConversationOnceInTheOrderOfTheSampleShuffle) {
  TrajectorySpec spec;
  spec.order_seed = 7;
  const auto all = made(5, spec);
  ASSERT_EQ(all->count(), 5U);
  EXPECT_EQ(all->queries(), 1U + 2 + 3 + 4 + 5);
  SampleOrder order(OrderKind::kWithoutReplacement, 5, 7);
  base::Seq seq = 0;
  for (std::uint64_t k = 0; k < 5; ++k) {
    const std::uint32_t which = order.next();
    EXPECT_EQ(all->logical_id(k), "c" + std::to_string(which));
    EXPECT_EQ(all->turns(k), which + 1);
    EXPECT_EQ(all->first_seq(k), seq);
    for (std::uint32_t turn = 0; turn < all->turns(k); ++turn, ++seq) {
      EXPECT_EQ(all->place_of(seq).trajectory, k);
      EXPECT_EQ(all->place_of(seq).turn, turn);
      const base::IssueCommand command = all->command(seq);
      EXPECT_EQ(command.seq, seq);
      EXPECT_EQ(command.sample, all->conversation(k).turns[turn].sample);
      EXPECT_FALSE(command.salted);
      EXPECT_EQ(command.due_offset.ns, 0) << "delays are not asked for";
    }
  }
}

TEST(Trajectories, AskedForMoreItGoesRoundWithAnotherShuffleAndSaysThePass) {
  TrajectorySpec spec;
  spec.count = 8;
  spec.salted = true;
  spec.delayed = true;
  const auto all = made(3, spec);
  ASSERT_EQ(all->count(), 8U);
  for (std::uint64_t pass = 0; pass < 2; ++pass) {
    std::set<std::string> names;
    for (std::uint64_t k = pass * 3; k < pass * 3 + 3; ++k) {
      names.insert(all->conversation(k).id);
      EXPECT_EQ(all->pass(k), pass + 1);
      const base::IssueCommand command = all->command(all->first_seq(k));
      EXPECT_TRUE(command.salted);
      EXPECT_EQ(command.salt, pass_mark(pass + 1));
      EXPECT_EQ(command.due_offset.ns, 0) << "nothing to wait for before the first turn";
      if (all->turns(k) > 1) {
        EXPECT_EQ(all->command(all->first_seq(k) + 1).due_offset, Duration::millis(101));
      }
    }
    EXPECT_EQ(names.size(), 3U);
  }
  EXPECT_THAT(all->logical_id(7), testing::EndsWith("__repeat_3"));
}

TEST(Trajectories, AWarmUpIsCutToItsNumberOfRequests) {
  TrajectorySpec spec;
  spec.queries_max = 8;
  const auto all = made(3, spec);  // six turns a pass
  EXPECT_EQ(all->queries(), 8U);
  EXPECT_EQ(all->first_seq(all->count()), 8U);
  EXPECT_EQ(all->place_of(7).trajectory, all->count() - 1);
  EXPECT_EQ(all->pass(all->count() - 1), 2U);
}

TEST(Trajectories, WhatCannotBePlayedIsRefused) {
  EXPECT_FALSE(Trajectories::make(std::make_shared<Conversations>(), {}).has_value());
  TrajectorySpec many;
  many.count = kTrajectoriesMax + 1;
  EXPECT_FALSE(Trajectories::make(some(2), many).has_value());
  auto long_one = std::make_shared<Conversations>();
  long_one->push_back({"c", std::vector<Turn>(kTurnsMax + 1)});
  EXPECT_FALSE(Trajectories::make(long_one, {}).has_value());
}

TEST(Trajectories, AScheduleOfThemGivesTheirTurnsInOrder) {
  PhaseSpec spec;
  spec.trajectories = made(4, {});
  spec.pacing = base::Pacing::kClosedLoop;
  spec.concurrency = 2;
  spec.dataset_rows = 10;
  spec.total = 10;
  EXPECT_TRUE(check(spec).empty());
  Schedule schedule(spec);
  for (base::Seq seq = 0; seq < 10; ++seq) {
    EXPECT_EQ(schedule.next(), spec.trajectories->command(seq));
  }
  EXPECT_FALSE(schedule.next().has_value());
  spec.total = 9;
  EXPECT_EQ(check(spec).at(0).field, "total");
  spec.total = 10;
  spec.pacing = base::Pacing::kBurst;
  EXPECT_EQ(check(spec).at(0).field, "trajectories");
}

}  // namespace
}  // namespace tutti::plan
