// Weighted and affinity choice: what must hold for any weights and any number of workers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "agent/target/frontend_picker.h"
#include "common/base/random.h"

namespace tutti::target {
namespace {

using base::Balance;

std::vector<std::uint32_t> some_weights(base::Mt19937& draw) {
  std::vector<std::uint32_t> weights(1 + draw.below(12));
  for (auto& weight : weights) {
    weight = static_cast<std::uint32_t>(draw.below(draw.below(2) == 0 ? 4 : 200));
  }
  weights[draw.below(weights.size())] += 1;
  return weights;
}

double share(const std::vector<std::uint32_t>& weights, std::size_t i, std::uint64_t of) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  return static_cast<double>(of) * weights[i] / sum;
}

TEST(PickerProperty, ARoundIsLessThanOneQueryFromTheWeightsAtAnyPlace) {
  base::Mt19937 draw(1);
  for (int trial = 0; trial < 300; ++trial) {
    const auto weights = some_weights(draw);
    const auto round = weighted_round(weights);
    std::vector<std::uint64_t> counts(weights.size(), 0);
    for (std::uint64_t k = 1; k <= 3 * round.size(); ++k) {
      ++counts[round[(k - 1) % round.size()]];
      for (std::size_t i = 0; i < weights.size(); ++i) {
        ASSERT_LT(std::abs(static_cast<double>(counts[i]) - share(weights, i, k)), 1.0)
            << "trial " << trial << ", frontend " << i << ", after " << k;
      }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ASSERT_EQ(counts[i] * std::accumulate(weights.begin(), weights.end(), std::uint64_t{0}),
                3 * round.size() * weights[i]);
    }
  }
}

// A closed loop over many workers: however queries end, the slots in flight of all workers together
// are within one of the weights once all slots are in use.
TEST(PickerProperty, ClosedLoopSlotsOfAllWorkersFollowTheWeights) {
  base::Mt19937 draw(2);
  for (int trial = 0; trial < 100; ++trial) {
    const auto weights = some_weights(draw);
    const std::size_t workers = 1 + draw.below(20);
    std::vector<std::uint64_t> in_flight(weights.size(), 0);
    std::uint64_t all_slots = 0;
    for (std::uint32_t w = 0; w < workers; ++w) {
      const auto slots = static_cast<std::uint32_t>(1 + draw.below(30));
      FrontendPicker picker({Balance::kWeighted, weights, {}}, weights.size(), w);
      picker.arm(base::Pacing::kClosedLoop, all_slots, slots);
      all_slots += slots;
      std::vector<std::uint16_t> live;
      for (int turn = 0; turn < 200 || live.size() < slots; ++turn) {
        if (live.size() == slots) {
          std::swap(live[draw.below(live.size())], live.back());
          picker.ended(live.back());
          picker.judged(live.back(), true);
          live.pop_back();
        }
        live.push_back(picker.pick(0, 0));
        picker.started(live.back());
      }
      for (const std::uint16_t f : live) {
        ++in_flight[f];
      }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ASSERT_LT(std::abs(static_cast<double>(in_flight[i]) - share(weights, i, all_slots)), 1.0)
          << "trial " << trial << ", frontend " << i;
    }
  }
}

std::vector<Frontend> frontends(std::size_t count) {
  std::vector<Frontend> made(count);
  for (std::size_t i = 0; i < count; ++i) {
    made[i].url = "http://host-" + std::to_string(i) + ":8000/v1/chat/completions";
  }
  return made;
}

TEST(PickerProperty, ASampleKeepsItsFrontendAndOneMoreFrontendMovesOnlyItsShare) {
  wire::TargetSpec target;
  target.balance = Balance::kAffinity;
  constexpr std::uint32_t kSamples = 20'000;
  for (std::size_t count = 1; count <= 8; ++count) {
    FrontendPicker picker(pick_rules(target, frontends(count)), count, 0);
    FrontendPicker another(pick_rules(target, frontends(count)), count, 17);
    FrontendPicker bigger(pick_rules(target, frontends(count + 1)), count + 1, 3);
    std::vector<std::uint32_t> counts(count, 0);
    std::uint32_t moved = 0;
    for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
      const std::uint16_t f = picker.pick(sample * 7, sample);
      ++counts[f];
      ASSERT_EQ(another.pick(sample, sample), f);
      const std::uint16_t g = bigger.pick(sample, sample);
      ASSERT_TRUE(g == f || g == count) << "moved between two that were there before";
      moved += g != f ? 1U : 0U;
    }
    const double even = static_cast<double>(kSamples) / static_cast<double>(count);
    for (const std::uint32_t each : counts) {
      EXPECT_NEAR(each, even, 6 * std::sqrt(even));
    }
    const double fair = static_cast<double>(kSamples) / static_cast<double>(count + 1);
    EXPECT_NEAR(moved, fair, 6 * std::sqrt(fair));
  }
}

}  // namespace
}  // namespace tutti::target
