#include "agent/target/frontend_picker.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace tutti::target {
namespace {

// Finaliser of splitmix64: every input bit moves every output bit.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// FNV-1a, then mixed.
std::uint64_t key_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return mixed(hash);
}

// a / b < c / d for b, d > 0 and values of 32 bits.
bool less(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  return a * d < c * b;
}

}  // namespace

std::vector<std::uint16_t> weighted_round(std::span<const std::uint32_t> weights) {
  std::uint64_t divisor = 0;
  for (const std::uint32_t weight : weights) {
    divisor = std::gcd(divisor, std::uint64_t{weight});
  }
  TUTTI_CHECK(divisor > 0);
  std::vector<std::uint64_t> shares;
  for (const std::uint32_t weight : weights) {
    shares.push_back(weight / divisor);
  }
  const std::uint64_t sum = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  std::vector<std::uint64_t> counts(weights.size(), 0);
  std::vector<std::uint16_t> round;
  round.reserve(sum);
  for (std::uint64_t k = 0; k < sum; ++k) {
    std::size_t best = weights.size();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const bool behind = counts[i] * sum < (k + 1) * shares[i];
      // Whole deadlines: within one, who got least for its weight goes first.
      const auto deadline = [&](std::size_t j) {
        return ((counts[j] + 1) * sum + shares[j] - 1) / shares[j];
      };
      if (behind && (best == weights.size() || deadline(i) < deadline(best) ||
                     (deadline(i) == deadline(best) &&
                      less(counts[i], shares[i], counts[best], shares[best])))) {
        best = i;
      }
    }
    TUTTI_CHECK(best < weights.size());  // Σ counts = k < k + 1 = Σ of what is due by then
    ++counts[best];
    round.push_back(static_cast<std::uint16_t>(best));
  }
  return round;
}

std::vector<std::uint32_t> dealt(std::span<const std::uint16_t> round, std::size_t frontends,
                                 std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint32_t> counts(frontends, 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    ++counts[round[(first + i) % round.size()]];
  }
  return counts;
}

PickRules pick_rules(const wire::TargetSpec& target, const std::vector<Frontend>& frontends) {
  PickRules rules{target.balance, target.weights, {}};
  for (const Frontend& frontend : frontends) {
    rules.keys.push_back(key_of(frontend.url));
  }
  return rules;
}

FrontendPicker::FrontendPicker(PickRules rules, std::size_t frontends, std::uint32_t worker)
    : rules_(std::move(rules)),
      in_flight_(frontends, 0),
      failing_(frontends, 0),
      next_(worker % frontends),
      turn_(worker),
      worker_(worker) {
  if (rules_.balance == base::Balance::kWeighted) {
    TUTTI_CHECK(rules_.weights.size() == frontends);
    round_ = weighted_round(rules_.weights);
    quotas_.assign(frontends, 0);
  }
  TUTTI_CHECK(rules_.balance != base::Balance::kAffinity || rules_.keys.size() == frontends);
}

void FrontendPicker::arm(base::Pacing pacing, std::uint64_t first_slot, std::uint32_t slots) {
  by_slots_ = pacing == base::Pacing::kClosedLoop;
  if (rules_.balance == base::Balance::kWeighted) {
    quotas_ = dealt(round_, in_flight_.size(), first_slot, slots);
  }
}

std::uint16_t FrontendPicker::pick(base::Seq seq, base::SampleIndex sample) {
  switch (rules_.balance) {
    case base::Balance::kPinned:
      return static_cast<std::uint16_t>(worker_ % in_flight_.size());
    case base::Balance::kRoundRobin:
      return static_cast<std::uint16_t>(seq % in_flight_.size());
    case base::Balance::kWeighted:
      return by_slots_ ? weighted_slot() : round_[seq % round_.size()];
    case base::Balance::kAffinity:
      return nearest(sample);
    case base::Balance::kLeastInFlight:
      break;
  }
  return least_in_flight();
}

std::uint16_t FrontendPicker::least_in_flight() {
  const std::size_t count = in_flight_.size();
  const std::size_t turn = turn_++ % count;
  std::size_t best = count;
  for (std::size_t step = 0; step < count; ++step) {
    const std::size_t candidate = (next_ + step) % count;
    if (may(candidate, turn) && (best == count || in_flight_[candidate] < in_flight_[best])) {
      best = candidate;
    }
  }
  next_ = (best + 1) % count;
  return static_cast<std::uint16_t>(best);
}

std::uint16_t FrontendPicker::weighted_slot() {
  const std::size_t count = in_flight_.size();
  const std::size_t turn = round_[turn_++ % round_.size()];
  // Of those with a slot of theirs free, the one whose slots are used least. When none has (an
  // older phase still holds some, or the others' slots stand in for a failing one's): by weight.
  for (const std::vector<std::uint32_t>* parts : {&quotas_, &rules_.weights}) {
    std::size_t best = count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t part = (*parts)[i];
      const bool open = part > 0 && may(i, turn) && (parts != &quotas_ || in_flight_[i] < part);
      if (open && (best == count || less(std::uint64_t{in_flight_[i]} + 1, part,
                                         std::uint64_t{in_flight_[best]} + 1, (*parts)[best]))) {
        best = i;
      }
    }
    if (best < count) {
      return static_cast<std::uint16_t>(best);
    }
  }
  return static_cast<std::uint16_t>(turn);
}

std::uint16_t FrontendPicker::nearest(base::SampleIndex sample) const {
  std::size_t best = 0;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < rules_.keys.size(); ++i) {
    const std::uint64_t score = mixed(rules_.keys[i] ^ mixed(std::uint64_t{sample} + 1));
    if (score > most) {
      most = score;
      best = i;
    }
  }
  return static_cast<std::uint16_t>(best);
}

}  // namespace tutti::target
