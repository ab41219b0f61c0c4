// Prefetch and capacity: the arithmetic under the RunMachine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "coordinator/conduct/capacity.h"
#include "coordinator/conduct/prefetch.h"

namespace tutti::conduct {
namespace {

using base::Duration;
using base::Instant;
using ::testing::HasSubstr;

Instant at_ms(std::int64_t ms) { return Instant{(1'000'000 + ms) * 1'000'000}; }

// ---- prefetch --------------------------------------------------------------------------------

TEST(Prefetch, BeforeAnythingIsMeasuredItIsTheSlotsWithinLimits) {
  EXPECT_EQ(Prefetch(-1, 1).depth(Duration::millis(30), at_ms(0)), Prefetch::kDepthMin);
  EXPECT_EQ(Prefetch(-1, 20).depth(Duration::millis(30), at_ms(0)), 20U);
  EXPECT_EQ(Prefetch(-1, 5000).depth(Duration::millis(30), at_ms(0)), Prefetch::kUnmeasuredMax);
  EXPECT_EQ(Prefetch(-1, 0).depth(Duration::millis(30), at_ms(0)), 0U);
}

TEST(Prefetch, IsTwiceRateTimesDelay) {
  Prefetch prefetch(-1, 500);
  for (int ms = 0; ms < 2000; ms += 10) {
    prefetch.completed(10, at_ms(ms));  // 1000 a second
  }
  EXPECT_NEAR(prefetch.rate(at_ms(2000)), 1000, 60);
  EXPECT_NEAR(static_cast<double>(prefetch.depth(Duration::millis(30), at_ms(2000))), 60, 4);
  EXPECT_NEAR(static_cast<double>(prefetch.depth(Duration::millis(125), at_ms(2000))), 250, 15);
  EXPECT_EQ(prefetch.depth(Duration::micros(10), at_ms(2000)), Prefetch::kDepthMin);
}

TEST(Prefetch, HoldsTheBestOfTheLastWindowsAndForgetsAfterThem) {
  Prefetch prefetch(-1, 500);
  prefetch.completed(400, at_ms(0));
  const auto fresh = prefetch.depth(Duration::millis(100), at_ms(10));
  EXPECT_EQ(fresh, 400U);  // 400 in 200 ms = 2000/s; 2 · 2000 · 0.1
  prefetch.completed(1, at_ms(1300));
  EXPECT_EQ(prefetch.depth(Duration::millis(100), at_ms(1300)), fresh);
  prefetch.completed(1, at_ms(1700));
  EXPECT_EQ(prefetch.depth(Duration::millis(100), at_ms(1700)), Prefetch::kDepthMin);
  EXPECT_EQ(prefetch.rate(at_ms(9000)), 0);
}

TEST(Prefetch, ASettingIsTakenAsItIs) {
  Prefetch none(0, 64);
  Prefetch five(5, 64);
  for (int ms = 0; ms < 1000; ++ms) {
    none.completed(50, at_ms(ms));
    five.completed(50, at_ms(ms));
  }
  EXPECT_EQ(none.depth(Duration::seconds(1), at_ms(1000)), 0U);
  EXPECT_EQ(five.depth(Duration::seconds(1), at_ms(1000)), 5U);
}

TEST(Prefetch, NeverExceedsItsLimit) {
  Prefetch prefetch(-1, 64);
  prefetch.completed(1'000'000'000, at_ms(0));
  EXPECT_EQ(prefetch.depth(Duration::seconds(10), at_ms(0)),
            static_cast<std::uint64_t>(kPrefetchMax));
}

// ---- capacity --------------------------------------------------------------------------------

struct Fleet {
  explicit Fleet(std::size_t count) : agents(count) {
    for (std::size_t i = 0; i < count; ++i) {
      agents[i].key = i;
      agents[i].hello.agent_name = std::string(1, static_cast<char>('a' + i));
      agents[i].hello.host = "host-" + agents[i].hello.agent_name;
      agents[i].hello.workers = 4;
      agents[i].hello.fd_limit = 10'000;
      agents[i].hello.ephemeral_ports = 28'000;
    }
  }
  std::vector<const roster::Agent*> list() const {
    std::vector<const roster::Agent*> out;
    for (const roster::Agent& agent : agents) {
      out.push_back(&agent);
    }
    return out;
  }
  std::vector<roster::Agent> agents;
};

RunPlan plan_of(base::Pacing pacing, std::uint32_t concurrency) {
  RunPlan plan;
  plan.target.urls = {"http://one/", "http://two/"};
  RunPhase phase;
  phase.name = "performance";
  phase.schedule.pacing = pacing;
  phase.schedule.concurrency = concurrency;
  phase.schedule.total = 1'000'000;
  plan.phases.push_back(phase);
  return plan;
}

TEST(Capacity, SlotsAddUpToTheConcurrencyExactly) {
  for (const std::uint32_t c : {1U, 2U, 6U, 7U, 100U, 12'345U}) {
    for (std::size_t n = 1; n <= 9; ++n) {
      const Fleet fleet(n);
      const Capacity capacity = share_capacity(plan_of(base::Pacing::kClosedLoop, c), fleet.list());
      std::uint64_t sum = 0;
      for (const AgentShare& share : capacity.shares) {
        sum += share.slots[0];
      }
      EXPECT_EQ(sum, c) << n;
    }
  }
}

TEST(Capacity, TooFewOpenFilesAreRefusedWithTheArithmetic) {
  Fleet fleet(2);
  fleet.agents[1].hello.fd_limit = 1024;
  const Capacity capacity = share_capacity(plan_of(base::Pacing::kClosedLoop, 4000), fleet.list());
  ASSERT_EQ(capacity.problems.size(), 1U);
  // 2000 wanted; 1024 − (64 + 4 · 16) = 896 left; 2000 + 128 would do.
  EXPECT_THAT(capacity.problems[0], HasSubstr("agent b would open 2000 connections"));
  EXPECT_THAT(capacity.problems[0], HasSubstr("leaves 896"));
  EXPECT_THAT(capacity.problems[0], HasSubstr("raise its limit to 2128"));
}

TEST(Capacity, AgentsOfOneHostShareItsPorts) {
  Fleet fleet(4);
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.host = "big";
    agent.hello.fd_limit = 1'000'000;
  }
  const RunPlan plan = plan_of(base::Pacing::kClosedLoop, 60'000);
  const Capacity refused = share_capacity(plan, fleet.list());
  ASSERT_EQ(refused.problems.size(), 1U);
  EXPECT_THAT(refused.problems[0], HasSubstr("host big would open 60000 connections"));
  EXPECT_THAT(refused.problems[0], HasSubstr("28000 ports × 1 source addresses × 2 frontends"));
  EXPECT_THAT(refused.problems[0], HasSubstr("allow 56000"));
  fleet.agents[0].hello.source_addresses = {"10.0.0.1", "10.0.0.2"};
  EXPECT_TRUE(share_capacity(plan, fleet.list()).problems.empty());
}

TEST(Capacity, OpenPhasesGetWhatTheAgentsHoldUnlessTold) {
  Fleet fleet(2);
  fleet.agents[1].hello.fd_limit = 1128;
  RunPlan plan = plan_of(base::Pacing::kBurst, 0);
  Capacity capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(capacity.shares[0].slots[0], 9872U);
  EXPECT_EQ(capacity.shares[1].slots[0], 1000U);
  EXPECT_TRUE(capacity.problems.empty());
  plan.in_flight_max = 11;
  capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(capacity.shares[0].slots[0], 6U);
  EXPECT_EQ(capacity.shares[1].slots[0], 5U);
  plan.in_flight_max = 0;
  plan.phases[0].schedule.total = 3;
  EXPECT_EQ(share_capacity(plan, fleet.list()).shares[0].slots[0], 3U);
}

TEST(Capacity, ConnectionsFollowTheSettings) {
  const Fleet fleet(3);
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 100);
  Capacity capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(capacity.shares[0].connections_max, 0U);
  EXPECT_EQ(capacity.shares[0].connections_warm, 34U);
  plan.connections_max = 10;
  plan.connections_warm = 200;
  capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(capacity.shares[0].connections_max, 4U);
  EXPECT_EQ(capacity.shares[2].connections_max, 3U);
  EXPECT_EQ(capacity.shares[0].connections_warm, 4U);  // no more than may be open
  plan.connections_warm = 0;
  EXPECT_EQ(share_capacity(plan, fleet.list()).shares[0].connections_warm, 0U);
}

TEST(RunPlanCheck, NamesEverythingThatIsWrongAtOnce) {
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 0);
  plan.agents_expected = 0;
  plan.prefetch = -2;
  plan.lost_after = Duration::millis(1);
  const base::Problems problems = check(plan);
  std::string fields;
  for (const base::Problem& problem : problems) {
    fields += problem.field + " ";
  }
  EXPECT_EQ(fields,
            "phases[0].dataset_rows phases[0].concurrency agents_expected prefetch lost_after ");
}

}  // namespace
}  // namespace tutti::conduct
