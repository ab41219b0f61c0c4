// The one promise of ClockEstimate and of the map made from it: the true offset is within value ±
// error, always. Clocks here are skewed, drift, and are slewed at up to 500 ppm in stretches nobody
// announces; the ways are jittered and unequal, pongs are lost, late and out of order.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/base/random.h"
#include "coordinator/conduct/clock_fit.h"
#include "coordinator/roster/clock_estimate.h"

namespace tutti::roster {
namespace {

using base::Duration;
using base::Instant;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

// The agent's clock less the coordinator's: straight between bends.
class TrueOffset {
 public:
  // Slopes of at most `steepest`, each for a while; the drift alone when `bends` is false.
  TrueOffset(base::Mt19937& random, double steepest, bool bends, std::int64_t until) {
    std::int64_t at = 0;
    auto offset = static_cast<double>(static_cast<std::int64_t>(random.below(1ULL << 50U))) -
                  static_cast<double>(1ULL << 49U);
    double slope = (2 * random.next_double() - 1) * steepest;
    while (at < until) {
      bends_.push_back({at, offset, slope});
      const std::int64_t length =
          bends ? kSecond / 10 + static_cast<std::int64_t>(random.below(60 * kSecond)) : until;
      offset += slope * static_cast<double>(length);
      at += length;
      const std::uint64_t kind = random.below(3);
      slope = kind == 0   ? steepest
              : kind == 1 ? -steepest
                          : (2 * random.next_double() - 1) * steepest;
    }
  }
  std::int64_t at(Instant coordinator) const {
    const auto next =
        std::upper_bound(bends_.begin(), bends_.end(), coordinator.ns,
                         [](std::int64_t t, const Bend& bend) { return t < bend.at; });
    const Bend& bend = *(next - 1);
    return std::llround(bend.offset + bend.slope * static_cast<double>(coordinator.ns - bend.at));
  }
  Instant agent(Instant coordinator) const { return {coordinator.ns + at(coordinator)}; }

 private:
  struct Bend {
    std::int64_t at;
    double offset;
    double slope;
  };
  std::vector<Bend> bends_;
};

struct Weather {
  double steepest = 0;
  bool bends = false;
  std::int64_t out_ns = 0;
  std::int64_t back_ns = 0;
  std::int64_t jitter_ns = 0;
  double lost = 0;
  std::int64_t silence_ns = 0;  // longest; one in twenty pings is followed by one
};

Weather draw(base::Mt19937& random) {
  Weather weather;
  weather.steepest = random.below(3) == 0 ? 500e-6 : 500e-6 * random.next_double();
  weather.bends = random.below(4) != 0;
  weather.out_ns = static_cast<std::int64_t>(random.below(10 * kMs)) + 1'000;
  weather.back_ns = random.below(2) == 0
                        ? weather.out_ns
                        : static_cast<std::int64_t>(random.below(40 * kMs)) + 1'000;
  weather.jitter_ns = static_cast<std::int64_t>(random.below(20 * kMs)) + 1;
  weather.lost = random.below(2) == 0 ? 0 : random.next_double() * 0.6;
  weather.silence_ns = static_cast<std::int64_t>(random.below(120)) * kSecond;
  return weather;
}

// Every exchange the estimate was told of, in the order in which the pongs came.
std::vector<ClockExchange> exchanges(base::Mt19937& random, const Weather& weather,
                                     const TrueOffset& truth, std::int64_t until) {
  std::vector<ClockExchange> out;
  const auto some = [&random](std::int64_t most) {
    return Duration{static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)))};
  };
  std::int64_t at = kSecond;
  for (int sent = 0; at < until; ++sent) {
    ClockExchange exchange;
    exchange.coordinator_sent = Instant{at};
    const Instant there = Instant{at} + Duration{weather.out_ns} + some(weather.jitter_ns);
    const Instant answered = there + some(2 * kMs);
    exchange.agent_received = truth.agent(there);
    exchange.agent_sent = truth.agent(answered);
    exchange.coordinator_received = answered + Duration{weather.back_ns} + some(weather.jitter_ns);
    if (random.next_double() >= weather.lost) {
      out.push_back(exchange);
    }
    at += sent < 8 ? 5 * kMs : kSecond;
    if (weather.silence_ns > 0 && random.below(20) == 0) {
      at += some(weather.silence_ns).ns;
    }
  }
  std::sort(out.begin(), out.end(), [](const ClockExchange& a, const ClockExchange& b) {
    return a.coordinator_received < b.coordinator_received;
  });
  return out;
}

// One nanosecond for the rounding of the truth itself.
bool holds(const ClockEstimate& estimate, const TrueOffset& truth, Instant at) {
  const ClockOffset offset = estimate.offset_at(at);
  return std::llabs(offset.value.ns - truth.at(at)) <= offset.error.ns + 1;
}

TEST(ClockProperty, TheTrueOffsetIsAlwaysWithinTheBound) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    base::Mt19937 random(seed);
    const std::int64_t until = (5 + static_cast<std::int64_t>(random.below(400))) * kSecond;
    const Weather weather = draw(random);
    const TrueOffset truth(random, weather.steepest, weather.bends, 2 * until);
    ClockEstimate estimate;
    for (const ClockExchange& exchange : exchanges(random, weather, truth, until)) {
      ASSERT_TRUE(estimate.add(exchange)) << "seed " << seed;
      const Instant now = exchange.coordinator_received;
      // What a phase is armed with; far ahead; and anywhere before.
      for (const std::int64_t ahead : {std::int64_t{0}, 300 * kMs, 60 * kSecond}) {
        ASSERT_TRUE(holds(estimate, truth, now + Duration{ahead})) << "seed " << seed;
      }
      for (int i = 0; i < 3; ++i) {
        const auto back =
            static_cast<std::int64_t>(random.next_double() * static_cast<double>(now.ns - 1));
        ASSERT_TRUE(holds(estimate, truth, now - Duration{back})) << "seed " << seed;
      }
    }
    if (estimate.exchanges() == 0) {
      continue;
    }
    // The truth explains all exchanges at 500 ppm, so nothing may have cast doubt on that.
    ASSERT_EQ(estimate.rate_max(), ClockEstimate::kDriftMax) << "seed " << seed;
    if (estimate.exchanges() >= 2) {
      const Instant first = estimate.points().front().at;
      const Instant last = estimate.points().back().at;
      if (first < last) {
        const double mean = static_cast<double>(truth.at(last) - truth.at(first)) /
                            static_cast<double>((last - first).ns);
        // The truth itself is rounded to nanoseconds at both ends.
        const double rounding = 2 / static_cast<double>((last - first).ns);
        ASSERT_NEAR(estimate.drift(), mean, estimate.drift_error() + rounding) << "seed " << seed;
      }
    }
  }
}

TEST(ClockProperty, EveryExchangeOnlyNarrowsWhatIsKnown) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    base::Mt19937 random(seed);
    const std::int64_t until = 60 * kSecond;
    const Weather weather = draw(random);
    const TrueOffset truth(random, weather.steepest, weather.bends, 2 * until);
    const Instant at{30 * kSecond};
    ClockEstimate estimate;
    Duration before{INT64_MAX / 2};
    for (const ClockExchange& exchange : exchanges(random, weather, truth, until)) {
      estimate.add(exchange);
      const Duration error = estimate.offset_at(at).error;
      ASSERT_LE(error.ns, before.ns + 2) << "seed " << seed;  // each step may round up by one
      before = error;
    }
  }
}

TEST(ClockProperty, TheMapOfARunIsRightWithinItsBoundFromEndToEnd) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    base::Mt19937 random(seed ^ 0xC10CULL);
    const std::int64_t until = (5 + static_cast<std::int64_t>(random.below(900))) * kSecond;
    const Weather weather = draw(random);
    const TrueOffset truth(random, weather.steepest, weather.bends, 2 * until);
    ClockEstimate estimate;
    for (const ClockExchange& exchange : exchanges(random, weather, truth, until)) {
      estimate.add(exchange);
    }
    if (estimate.exchanges() == 0) {
      continue;
    }
    const Instant end{until + static_cast<std::int64_t>(random.below(20 * kSecond))};
    const ledger::ClockMap map = conduct::fit_clock(estimate, end);
    const Instant first = estimate.points().front().at;
    ASSERT_LE(map.knots.size(), static_cast<std::size_t>(conduct::kClockStretchesMax) + 1);
    ASSERT_EQ(map.exchanges, estimate.exchanges());
    for (int i = 0; i < 500; ++i) {
      const Instant at = first + Duration{static_cast<std::int64_t>(
                                     random.next_double() * static_cast<double>((end - first).ns))};
      const Instant mapped = map.to_coordinator(truth.agent(at));
      ASSERT_LE(std::llabs((mapped - at).ns), map.error.ns + 3) << "seed " << seed;
    }
    for (const ledger::ClockKnot& knot : map.knots) {
      ASSERT_LE(knot.error.ns, map.error.ns) << "seed " << seed;
    }
    // Same order on both clocks, so that nothing of one agent is turned round.
    Instant last{};
    for (std::int64_t step = 0; step < 1000; ++step) {
      const Instant at = first + Duration{(end - first).ns / 1000 * step};
      const Instant mapped = map.to_coordinator(truth.agent(at));
      ASSERT_LE(last, mapped) << "seed " << seed;
      last = mapped;
    }
  }
}

// Hours ago the agent's clock was moved by less than a round trip shows. When a step that nothing
// hides proves that it can move like that, what is said of those hours is right as well, though
// most of their exchanges are forgotten.
TEST(ClockProperty, AStepSeenLateCorrectsHoursThatWereThinnedBefore) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    base::Mt19937 random(seed ^ 0x57E9ULL);
    const std::int64_t hidden_at =
        (1200 + static_cast<std::int64_t>(random.below(4000))) * kSecond + kSecond / 2;
    const std::int64_t shown_at = 5 * 3600 * kSecond + kSecond / 2;
    const std::int64_t hidden = 3 * kMs + static_cast<std::int64_t>(random.below(kMs / 2));
    const auto truth = [&](std::int64_t at) {
      return (at >= hidden_at ? hidden : 0) + (at >= shown_at ? 5 * kSecond : 0);
    };
    ClockEstimate estimate;
    for (std::int64_t at = kSecond; at < shown_at + 600 * kSecond; at += kSecond) {
      ClockExchange exchange;
      const std::int64_t there = at + 2 * kMs + static_cast<std::int64_t>(random.below(kMs / 10));
      exchange.coordinator_sent = Instant{at};
      exchange.agent_received = exchange.agent_sent = Instant{there + truth(there)};
      exchange.coordinator_received =
          Instant{there + 2 * kMs + static_cast<std::int64_t>(random.below(kMs / 10))};
      ASSERT_TRUE(estimate.add(exchange));
      ASSERT_LE(estimate.points().size(), ClockEstimate::kPointsMax);
    }
    ASSERT_GT(estimate.rate_max(), ClockEstimate::kDriftMax);
    for (const ClockEstimate::Point& point : estimate.points()) {
      if (point.at < Instant{shown_at - kSecond}) {
        const std::int64_t was = truth(point.at.ns);
        ASSERT_LE(point.low.ns, was + 1) << "seed " << seed << " at " << point.at.ns;
        ASSERT_GE(point.high.ns, was - 1) << "seed " << seed << " at " << point.at.ns;
      }
    }
  }
}

// A day of pings, in bounded memory, the first hour as well known as the last to within what the
// thinning costs.
TEST(ClockProperty, ADayOfPingsStaysBoundedInMemoryAndInError) {
  base::Mt19937 random(7);
  Weather weather;
  weather.out_ns = weather.back_ns = 80'000;
  weather.jitter_ns = 300'000;
  weather.bends = true;
  const std::int64_t day = 86'400 * kSecond;
  const TrueOffset truth(random, 60e-6, true, day + kSecond);
  ClockEstimate estimate;
  for (const ClockExchange& exchange : exchanges(random, weather, truth, day)) {
    estimate.add(exchange);
    ASSERT_LE(estimate.points().size(), ClockEstimate::kPointsMax);
  }
  EXPECT_GT(estimate.exchanges(), 86'000U);
  for (std::int64_t second = 1; second < 86'400; second += 7) {
    const Instant at{second * kSecond + static_cast<std::int64_t>(random.below(kSecond))};
    ASSERT_TRUE(holds(estimate, truth, at)) << second;
    ASSERT_LT(estimate.offset_at(at).error, Duration::millis(20)) << second;
  }
  const Duration error = conduct::fit_clock(estimate, Instant{day}).error;
  EXPECT_LT(error, Duration::millis(60));
}

}  // namespace
}  // namespace tutti::roster
