#include "coordinator/roster/roster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "coordinator/roster/clock_estimate.h"

namespace tutti::roster {
namespace {

using base::Duration;
using base::Instant;

// Two clocks and a road between them, to ask an estimate about.
struct Road {
  std::int64_t skew_ns = 0;
  double drift = 0;
  Duration out_min{};
  Duration back_min{};
  Duration jitter{};
  base::Mt19937 chance{1};

  Instant agent(Instant coordinator) const {
    return {coordinator.ns + skew_ns + std::llround(drift * static_cast<double>(coordinator.ns))};
  }
  Duration some(Duration most) {
    return {static_cast<std::int64_t>(chance.next_double() * static_cast<double>(most.ns))};
  }
  ClockExchange ping(Instant at) {
    ClockExchange exchange;
    exchange.coordinator_sent = at;
    const Instant there = at + out_min + some(jitter);
    const Instant answered = there + Duration::micros(30);
    exchange.agent_received = agent(there);
    exchange.agent_sent = agent(answered);
    exchange.coordinator_received = answered + back_min + some(jitter);
    return exchange;
  }
  std::int64_t wrong_by(const ClockEstimate& estimate, Instant at) const {
    return std::llabs((agent(at) - at).ns - estimate.offset_at(at).value.ns);
  }
};

TEST(ClockEstimate, FindsTheSkewWithinHalfTheSmallestRoundTrip) {
  Road road;
  road.skew_ns = -123'456'789'012;
  road.out_min = road.back_min = Duration::micros(100);
  road.jitter = Duration::millis(5);
  ClockEstimate estimate;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(estimate.add(road.ping(Instant{1'000'000'000 + i * 5'000'000LL})));
  }
  const Instant at{1'200'000'000};
  EXPECT_LE(road.wrong_by(estimate, at), estimate.offset_at(at).error.ns);
  EXPECT_LE(estimate.offset_at(at).error.ns, estimate.rtt_min().ns / 2 + 110'000);
  EXPECT_GE(estimate.rtt_min(), Duration::micros(200));
}

TEST(ClockEstimate, BoundHoldsWhenOneWayIsMuchSlower) {
  for (const bool slow_out : {true, false}) {
    Road road;
    road.skew_ns = 77'000'000;
    road.out_min = slow_out ? Duration::millis(40) : Duration::micros(50);
    road.back_min = slow_out ? Duration::micros(50) : Duration::millis(40);
    road.jitter = Duration::millis(2);
    ClockEstimate estimate;
    for (int i = 0; i < 20; ++i) {
      estimate.add(road.ping(Instant{1'000'000'000 + i * 5'000'000LL}));
    }
    const Instant at{1'100'000'000};
    // No exchange can see this: the estimate is 20 ms off, and says that it may be.
    EXPECT_GT(road.wrong_by(estimate, at), 15'000'000);
    EXPECT_LE(road.wrong_by(estimate, at), estimate.offset_at(at).error.ns);
  }
}

TEST(ClockEstimate, MeasuresDriftAndBoundsWhatItExtrapolates) {
  for (const double drift : {-80e-6, 0.0, 80e-6, 300e-6}) {
    Road road;
    road.skew_ns = 5'000'000'000'000;
    road.drift = drift;
    road.out_min = road.back_min = Duration::micros(80);
    road.jitter = Duration::micros(400);
    ClockEstimate estimate;
    for (int second = 0; second < 60; ++second) {
      estimate.add(road.ping(Instant{(1 + second) * 1'000'000'000LL}));
      const Instant soon{(1 + second) * 1'000'000'000LL + 900'000'000};
      EXPECT_LE(road.wrong_by(estimate, soon), estimate.offset_at(soon).error.ns) << second;
    }
    EXPECT_NEAR(estimate.drift(), drift, estimate.drift_error());
    EXPECT_LT(estimate.drift_error(), 30e-6);
    EXPECT_EQ(estimate.rate_max(), ClockEstimate::kDriftMax);
    // Ten minutes later, unpinged: wrong, but by no more than it admits, which is what a clock
    // that is slewed from now on could do.
    const Instant later{660'000'000'000};
    EXPECT_LE(road.wrong_by(estimate, later), estimate.offset_at(later).error.ns);
    EXPECT_LT(estimate.offset_at(later).error, Duration::millis(301));
  }
}

TEST(ClockEstimate, BoundHoldsOverALongRunInLittleMemory) {
  Road road;
  road.drift = 35e-6;
  road.out_min = road.back_min = Duration::micros(60);
  road.jitter = Duration::millis(1);
  ClockEstimate estimate;
  for (int second = 1; second <= 5000; ++second) {
    estimate.add(road.ping(Instant{second * 1'000'000'000LL}));
  }
  EXPECT_EQ(estimate.exchanges(), 5000U);
  // The whole run stays covered, its beginning too.
  for (const int second : {1, 100, 2500, 4999}) {
    const Instant at{second * 1'000'000'000LL};
    EXPECT_LE(road.wrong_by(estimate, at), estimate.offset_at(at).error.ns);
    EXPECT_LT(estimate.offset_at(at).error, Duration::millis(2)) << second;
  }
}

TEST(ClockEstimate, MapsThereAndBack) {
  Road road;
  road.skew_ns = -40'000'000'000;
  road.drift = 120e-6;
  road.out_min = road.back_min = Duration::micros(100);
  ClockEstimate estimate;
  for (int i = 1; i < 30; ++i) {
    estimate.add(road.ping(Instant{i * 1'000'000'000LL}));
  }
  for (const std::int64_t s : {1, 7, 15, 29, 40}) {
    const Instant at{s * 1'000'000'000};
    EXPECT_LE(std::llabs((estimate.to_coordinator(estimate.to_agent(at)) - at).ns), 5);
  }
}

TEST(ClockEstimate, AClockThatWasSteppedMakesItTrustLessInsteadOfBeingWrong) {
  Road road;
  road.out_min = road.back_min = Duration::micros(100);
  ClockEstimate estimate;
  for (int i = 1; i <= 10; ++i) {
    estimate.add(road.ping(Instant{i * 1'000'000'000LL}));
  }
  EXPECT_LT(estimate.offset_at(Instant{10'000'000'000}).error, Duration::millis(1));
  road.skew_ns = 50'000'000;  // a jump no slewing explains
  for (int i = 11; i <= 20; ++i) {
    estimate.add(road.ping(Instant{i * 1'000'000'000LL}));
  }
  EXPECT_GE(estimate.rate_max(), 0.04);
  EXPECT_LT(estimate.rate_max(), 0.2);
  const Instant at{20'000'000'000};
  EXPECT_LE(road.wrong_by(estimate, at), estimate.offset_at(at).error.ns);
}

TEST(ClockEstimate, StampsThatContradictOneAnotherAtOneInstantGiveEverythingBetween) {
  ClockEstimate estimate;
  estimate.add({Instant{100}, Instant{1100}, Instant{1100}, Instant{100}});
  estimate.add({Instant{100}, Instant{9100}, Instant{9100}, Instant{100}});
  const ClockOffset offset = estimate.offset_at(Instant{100});
  EXPECT_LE(offset.value.ns - offset.error.ns, 1000);
  EXPECT_GE(offset.value.ns + offset.error.ns, 9000);
}

TEST(ClockEstimate, KnowsHowMuchRoundTripsDiffer) {
  ClockEstimate even;
  ClockEstimate uneven;
  for (int i = 1; i <= 200; ++i) {
    const Instant at{i * 1'000'000'000LL};
    const auto ping = [at](Duration rtt) {
      return ClockExchange{at, at + Duration{rtt.ns / 2}, at + Duration{rtt.ns / 2}, at + rtt};
    };
    even.add(ping(Duration::millis(10)));
    uneven.add(ping(Duration::millis(i % 2 == 0 ? 4 : 16)));
  }
  EXPECT_EQ(even.rtt_spread(), Duration{});
  EXPECT_NEAR(even.rtt_recent().to_seconds(), 0.010, 1e-9);
  EXPECT_NEAR(uneven.rtt_recent().to_seconds(), 0.010, 0.001);
  EXPECT_NEAR(uneven.rtt_spread().to_seconds(), 0.006, 0.001);
}

TEST(ClockEstimate, TakesNoImpossibleStamps) {
  ClockEstimate estimate;
  EXPECT_FALSE(estimate.add({Instant{100}, Instant{1}, Instant{2}, Instant{90}}));
  EXPECT_FALSE(estimate.add({Instant{100}, Instant{9}, Instant{2}, Instant{190}}));
  EXPECT_FALSE(estimate.add({Instant{100}, Instant{1}, Instant{99}, Instant{150}}));
  EXPECT_EQ(estimate.exchanges(), 0U);
}

// ---- roster ----------------------------------------------------------------------------------

wire::Hello hello(const std::string& name) {
  wire::Hello message;
  message.agent_name = name;
  message.host = "h";
  return message;
}

TEST(Roster, RefusesAnotherProtocolATakenNameAndANamelessAgent) {
  Roster roster;
  wire::Hello old = hello("a");
  old.protocol_version = 3;
  const auto wrong = roster.join(1, old, Instant{1});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("protocol 3"), std::string::npos);
  EXPECT_FALSE(roster.join(1, hello(""), Instant{1}));
  EXPECT_EQ(roster.join(1, hello("a"), Instant{1}).value(), 0U);
  EXPECT_FALSE(roster.join(1, hello("b"), Instant{1}));  // one hello for one connection
  const auto twin = roster.join(2, hello("a"), Instant{1});
  ASSERT_FALSE(twin);
  EXPECT_NE(twin.error().message.find("--name"), std::string::npos);
  EXPECT_EQ(roster.join(2, hello("A"), Instant{1}).value(), 1U);
  ASSERT_EQ(roster.by_name().size(), 2U);
  EXPECT_EQ(roster.by_name()[0]->name(), "A");
}

TEST(Roster, ForgottenNamesAreFreeAndLostOnesAreNot) {
  Roster roster;
  ASSERT_TRUE(roster.join(1, hello("a"), Instant{1}));
  roster.forget(1);
  ASSERT_TRUE(roster.join(2, hello("a"), Instant{2}));
  EXPECT_TRUE(roster.lose(2, "silence", Instant{3}));
  EXPECT_FALSE(roster.lose(2, "again", Instant{4}));
  EXPECT_EQ(roster.find(2)->lost_why, "silence");
  EXPECT_EQ(roster.find(2)->lost_at, Instant{3});
  EXPECT_FALSE(roster.alive(2));
  EXPECT_EQ(roster.alive_count(), 0U);
  EXPECT_FALSE(roster.join(3, hello("a"), Instant{5}));
}

TEST(Roster, PingsInABurstThenEverySecondAndNeverTheLost) {
  Roster roster;
  ASSERT_TRUE(roster.join(1, hello("a"), Instant{1'000'000'000}));
  std::vector<std::pair<AgentKey, wire::ClockPing>> pings;
  const auto count = [&](std::int64_t from_ms, std::int64_t to_ms) {
    pings.clear();
    for (std::int64_t ms = from_ms; ms < to_ms; ++ms) {
      roster.due_pings(Instant{ms * 1'000'000}, pings);
    }
    return pings.size();
  };
  EXPECT_EQ(count(1000, 1100), Roster::kBurst);
  EXPECT_EQ(count(1100, 6100), 5U);
  roster.burst(Instant{6'100'000'000});
  EXPECT_EQ(count(6100, 6200), Roster::kBurst);
  roster.lose(1, "", Instant{6'200'000'000});
  EXPECT_EQ(count(6200, 9000), 0U);
  EXPECT_EQ(roster.next_ping_at(), base::kFarFuture);
}

TEST(Roster, APongCountsOnceAndOnlyForAPingThatIsOut) {
  Roster roster;
  ASSERT_TRUE(roster.join(1, hello("a"), Instant{1000}));
  std::vector<std::pair<AgentKey, wire::ClockPing>> pings;
  roster.due_pings(Instant{1000}, pings);
  ASSERT_EQ(pings.size(), 1U);
  const wire::ClockPong pong{pings[0].second.number, Instant{1000}, Instant{5000}, Instant{5000}};
  EXPECT_FALSE(roster.pong(1, {pong.number + 1, Instant{1000}, Instant{5000}, Instant{5000}},
                           Instant{2000}));
  EXPECT_FALSE(roster.pong(9, pong, Instant{2000}));
  EXPECT_TRUE(roster.pong(1, pong, Instant{2000}));
  EXPECT_FALSE(roster.pong(1, pong, Instant{2000}));
  EXPECT_TRUE(roster.clocks_measured(1));
  EXPECT_FALSE(roster.clocks_measured(2));
  EXPECT_EQ(roster.rtt_max(), Duration::nanos(1000));
  EXPECT_NEAR(static_cast<double>(roster.find(1)->clock.offset_at(Instant{1500}).value.ns), 3500,
              1);
}

}  // namespace
}  // namespace tutti::roster
