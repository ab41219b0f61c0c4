#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "common/plan/deal.h"

namespace tutti::plan {
namespace {

using Weights = std::vector<std::uint32_t>;

Weights shares(const Dealer& dealer, std::size_t agents, base::Seq from, base::Seq n) {
  Weights out(agents, 0);
  for (base::Seq seq = from; seq < from + n; ++seq) {
    ++out.at(dealer.agent_of(seq));
  }
  return out;
}

TEST(SplitSlots, GivesTheRemainderToTheFirstAgents) {
  EXPECT_EQ(split_slots(512, 3), (Weights{171, 171, 170}));
  EXPECT_EQ(split_slots(8, 4), (Weights{2, 2, 2, 2}));
  EXPECT_EQ(split_slots(2, 4), (Weights{1, 1, 0, 0}));
  EXPECT_EQ(split_slots(0, 2), (Weights{0, 0}));
  EXPECT_EQ(split_slots(UINT32_MAX, 1), (Weights{UINT32_MAX}));
}

TEST(SplitSlots, AlwaysSumsToCWithSharesOneApartAtMost) {
  for (std::uint32_t slots = 0; slots < 200; ++slots) {
    for (std::size_t agents = 1; agents < 30; ++agents) {
      const Weights split = split_slots(slots, agents);
      EXPECT_EQ(std::accumulate(split.begin(), split.end(), 0U), slots);
      EXPECT_LE(split.front() - split.back(), 1U);
      EXPECT_TRUE(std::is_sorted(split.rbegin(), split.rend()));
    }
  }
}

TEST(Dealer, EqualWeightsArePlainRoundRobin) {
  const Dealer dealer({28'000, 28'000, 28'000});
  EXPECT_EQ(dealer.cycle(), 3U);
  for (base::Seq seq = 0; seq < 12; ++seq) {
    EXPECT_EQ(dealer.agent_of(seq), seq % 3);
  }
}

TEST(Dealer, OneCycleServesEveryAgentExactlyItsWeight) {
  const Weights weights = {171, 171, 170};
  const Dealer dealer(weights);
  EXPECT_EQ(dealer.cycle(), 512U);
  EXPECT_EQ(shares(dealer, 3, 0, 512), weights);
  EXPECT_EQ(shares(dealer, 3, 512'000'000'000, 512), weights);  // and far out, too
}

TEST(Dealer, SharesAreInterleavedNotBlocked) {
  const Dealer dealer({5, 1, 1});
  std::vector<std::size_t> cycle(7);
  for (base::Seq seq = 0; seq < 7; ++seq) {
    cycle[seq] = dealer.agent_of(seq);
  }
  EXPECT_EQ(cycle, (std::vector<std::size_t>{0, 0, 1, 0, 2, 0, 0}));
}

TEST(Dealer, AnyWindowIsFairToWithinOneRound) {
  const Weights weights = {400, 300, 200, 100, 7};
  const Dealer dealer(weights);
  const double sum = 1007.0;
  for (const base::Seq n : {10ULL, 100ULL, 333ULL, 1000ULL}) {
    const Weights got = shares(dealer, weights.size(), 0, n);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(got[i], static_cast<double>(n) * weights[i] / sum, 2.0) << n << ", agent " << i;
    }
  }
}

TEST(Dealer, AnAgentOfWeightZeroGetsNothing) {
  const Dealer dealer({0, 3, 0, 1});
  EXPECT_EQ(shares(dealer, 4, 0, 400), (Weights{0, 300, 0, 100}));
}

TEST(Dealer, HugeCoprimeWeightsKeepABoundedPatternAndStarveNobody) {
  const Weights weights = {4'294'967'291, 4'294'967'279, 1};
  const Dealer dealer(weights);
  EXPECT_LE(dealer.cycle(), Dealer::kCycleMax + weights.size());
  const Weights got = shares(dealer, 3, 0, dealer.cycle());
  EXPECT_EQ(got[2], 1U);
  EXPECT_NEAR(got[0], got[1], 1.0);
}

TEST(Dealer, NobodyToDealToIsAProgrammersError) {
  EXPECT_DEATH(Dealer({}), "promise broken");
  EXPECT_DEATH(Dealer({0, 0}), "promise broken");
}

}  // namespace
}  // namespace tutti::plan
