#include "common/plan/deal.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"

namespace tutti::plan {
namespace {

// Weights in lowest terms, or scaled when even those make too long a pattern.
std::vector<std::uint64_t> reduced(const std::vector<std::uint32_t>& weights) {
  std::uint64_t divisor = 0;
  std::uint64_t sum = 0;
  for (const std::uint32_t weight : weights) {
    divisor = std::gcd(divisor, std::uint64_t{weight});
    sum += weight;
  }
  TUTTI_CHECK(sum > 0);
  std::vector<std::uint64_t> out;
  out.reserve(weights.size());
  for (const std::uint32_t weight : weights) {
    if (sum / divisor <= Dealer::kCycleMax) {
      out.push_back(weight / divisor);
    } else {
      const std::uint64_t scaled = (weight * Dealer::kCycleMax + sum / 2) / sum;
      out.push_back(weight > 0 ? std::max<std::uint64_t>(1, scaled) : 0);
    }
  }
  return out;
}

}  // namespace

std::vector<std::uint32_t> split_slots(std::uint32_t slots, std::size_t agents) {
  TUTTI_CHECK(agents > 0);
  const auto floor = static_cast<std::uint32_t>(slots / agents);
  std::vector<std::uint32_t> out(agents, floor);
  for (std::size_t i = 0; i < slots % agents; ++i) {
    ++out[i];
  }
  return out;
}

// Smooth weighted round robin: each turn everybody earns its weight, the richest (the first of
// equals) is served and pays the sum. Over one cycle agent i is served exactly weight_i times,
// spread evenly.
Dealer::Dealer(const std::vector<std::uint32_t>& weights) {
  TUTTI_CHECK(!weights.empty() && weights.size() <= kAgentsMax);
  const std::vector<std::uint64_t> weight = reduced(weights);
  const auto sum =
      static_cast<std::int64_t>(std::accumulate(weight.begin(), weight.end(), std::uint64_t{0}));
  std::vector<std::int64_t> purse(weight.size(), 0);
  pattern_.reserve(static_cast<std::size_t>(sum));
  for (std::int64_t turn = 0; turn < sum; ++turn) {
    for (std::size_t i = 0; i < purse.size(); ++i) {
      purse[i] += static_cast<std::int64_t>(weight[i]);
    }
    const auto richest = std::max_element(purse.begin(), purse.end());
    *richest -= sum;
    pattern_.push_back(static_cast<std::uint16_t>(richest - purse.begin()));
  }
}

}  // namespace tutti::plan
