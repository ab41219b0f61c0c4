// What must hold for any seed, size and number of agents, tried over many of each.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "common/plan/deal.h"
#include "common/plan/schedule.h"

namespace tutti::plan {
namespace {

constexpr std::uint64_t kSeeds[] = {0, 1, 42, 10487924139932647040ULL, UINT64_MAX};

TEST(OrderProperty, EveryEpochIsAPermutationAndEpochsDiffer) {
  for (const std::uint64_t seed : kSeeds) {
    for (const std::uint32_t rows : {1U, 2U, 3U, 16U, 1000U, 4097U}) {
      SampleOrder order(OrderKind::kWithoutReplacement, rows, seed);
      std::vector<std::uint32_t> last;
      for (int epoch = 0; epoch < 4; ++epoch) {
        std::vector<std::uint32_t> list(rows);
        for (auto& row : list) {
          row = order.next();
        }
        EXPECT_TRUE(rows < 16 || list != last) << "an epoch repeated: seed " << seed;
        last = list;
        std::sort(list.begin(), list.end());
        for (std::uint32_t i = 0; i < rows; ++i) {
          ASSERT_EQ(list[i], i) << "seed " << seed << ", epoch " << epoch;
        }
      }
    }
  }
}

// χ² over 100 rows and 100,000 draws: 99 degrees of freedom, 148.2 is the 0.1 % point.
TEST(OrderProperty, DrawsWithReplacementAreUniform) {
  constexpr std::uint32_t kRows = 100;
  constexpr int kDraws = 100'000;
  for (const std::uint64_t seed : kSeeds) {
    SampleOrder order(OrderKind::kWithReplacement, kRows, seed);
    std::vector<double> counts(kRows, 0);
    for (int i = 0; i < kDraws; ++i) {
      counts.at(order.next()) += 1;
    }
    const double expected = static_cast<double>(kDraws) / kRows;
    double chi_squared = 0;
    for (const double count : counts) {
      chi_squared += (count - expected) * (count - expected) / expected;
    }
    EXPECT_LT(chi_squared, 148.2) << seed;
  }
}

// Largest distance between the drawn gaps' distribution and 1 − e^(−λx), in units of 1/√n.
double kolmogorov_smirnov(std::uint64_t seed, double qps, std::size_t n) {
  PoissonArrivals arrivals(qps, seed);
  std::vector<double> gaps(n);
  for (auto& gap : gaps) {
    gap = static_cast<double>(arrivals.next_gap_ns());
  }
  std::sort(gaps.begin(), gaps.end());
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double expected = 1.0 - std::exp(-gaps[i] * qps / 1e9);
    const double below = static_cast<double>(i) / static_cast<double>(n);
    const double upto = static_cast<double>(i + 1) / static_cast<double>(n);
    worst = std::max({worst, std::fabs(expected - below), std::fabs(upto - expected)});
  }
  return worst * std::sqrt(static_cast<double>(n));
}

TEST(ArrivalProperty, GapsAreExponentialAtTheAskedRate) {
  for (const std::uint64_t seed : kSeeds) {
    for (const double qps : {0.5, 10.0, 1000.0, 50'000.0}) {
      // 1.95 is the 0.1 % point of the limit distribution.
      EXPECT_LT(kolmogorov_smirnov(seed, qps, 50'000), 1.95) << seed << " at " << qps;
    }
  }
}

TEST(ArrivalProperty, GapsAreNotCorrelatedWithTheirPredecessors) {
  for (const std::uint64_t seed : kSeeds) {
    PoissonArrivals arrivals(1000.0, seed);
    constexpr int kGaps = 100'000;
    double product = 0;
    double last = static_cast<double>(arrivals.next_gap_ns()) / 1e6 - 1.0;
    for (int i = 1; i < kGaps; ++i) {
      const double gap = static_cast<double>(arrivals.next_gap_ns()) / 1e6 - 1.0;
      product += gap * last;
      last = gap;
    }
    // The estimator's deviation is 1/√n; four of them.
    EXPECT_LT(std::fabs(product / kGaps), 4.0 / std::sqrt(kGaps)) << seed;
  }
}

TEST(SaltProperty, AMillionSaltsAreDistinct) {
  Salts salts(44);
  std::vector<std::uint64_t> drawn(1'000'000);
  for (auto& salt : drawn) {
    salt = salts.next();
  }
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
}

PhaseSpec timed(std::uint64_t seed, base::Seq total, std::uint32_t rows) {
  PhaseSpec spec;
  spec.pacing = base::Pacing::kTimed;
  spec.total = total;
  spec.dataset_rows = rows;
  spec.order_seed = seed;
  spec.gap_seed = seed;
  spec.target_qps = 2000;
  spec.salted = true;
  spec.salt_seed = seed;
  return spec;
}

std::vector<base::IssueCommand> all(const PhaseSpec& spec) {
  Schedule schedule(spec);
  std::vector<base::IssueCommand> out;
  schedule.take(SIZE_MAX, out);
  return out;
}

TEST(ScheduleProperty, AShorterPhaseIsAPrefixOfALongerOne) {
  for (const std::uint64_t seed : kSeeds) {
    const auto longer = all(timed(seed, 3000, 700));
    const auto shorter = all(timed(seed, 1234, 700));
    EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin())) << seed;
  }
}

TEST(ScheduleProperty, DueOffsetsStrictlyAscendAndSeqsAreDense) {
  for (const std::uint64_t seed : kSeeds) {
    base::Duration last{};
    base::Seq seq = 0;
    for (const auto& command : all(timed(seed, 10'000, 700))) {
      EXPECT_EQ(command.seq, seq++);
      EXPECT_GT(command.due_offset, last);
      last = command.due_offset;
    }
  }
}

// The promise of the whole design: however many agents, and whatever their weights, their shares
// put together are the schedule, no command twice and none missing, each share in schedule order.
TEST(DealProperty, TheUnionOfAnyAgentsSharesIsTheSchedule) {
  const std::vector<std::vector<std::uint32_t>> casts = {{1},
                                                         {1, 1, 1},
                                                         {171, 171, 170},
                                                         split_slots(512, 7),
                                                         {7, 1, 0, 30, 2, 5, 11},
                                                         std::vector<std::uint32_t>(100, 840)};
  const auto whole = all(timed(42, 20'000, 700));
  for (const auto& weights : casts) {
    const Dealer dealer(weights);
    std::vector<std::vector<base::IssueCommand>> shares(weights.size());
    Schedule schedule(timed(42, 20'000, 700));
    while (const auto command = schedule.next()) {
      shares.at(dealer.agent_of(command->seq)).push_back(*command);
    }
    std::vector<base::IssueCommand> together;
    for (const auto& share : shares) {
      EXPECT_TRUE(std::is_sorted(share.begin(), share.end(),
                                 [](const auto& a, const auto& b) { return a.seq < b.seq; }));
      together.insert(together.end(), share.begin(), share.end());
    }
    std::sort(together.begin(), together.end(),
              [](const auto& a, const auto& b) { return a.seq < b.seq; });
    EXPECT_EQ(together, whole) << weights.size() << " agents";
  }
}

TEST(DealProperty, EverySharePrefixIsWithinItsAgentsFairPart) {
  base::Mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint32_t> weights(1 + random.below(12));
    for (auto& weight : weights) {
      weight = static_cast<std::uint32_t>(random.below(50));
    }
    weights[0] += 1;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const Dealer dealer(weights);
    std::vector<double> served(weights.size(), 0);
    for (base::Seq seq = 0; seq < 2 * dealer.cycle(); ++seq) {
      served[dealer.agent_of(seq)] += 1;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double fair = static_cast<double>(seq + 1) * weights[i] / sum;
        ASSERT_LT(std::fabs(served[i] - fair), 4.0) << "agent " << i << " of " << weights.size();
        ASSERT_TRUE(weights[i] > 0 || served[i] == 0);
      }
    }
  }
}

}  // namespace
}  // namespace tutti::plan
