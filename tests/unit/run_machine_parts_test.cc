// Prefetch and capacity: the arithmetic under the RunMachine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "coordinator/conduct/budget.h"
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

TEST(Prefetch, ALotIsAnotherDepthOnceItIsMeasuredAndNotSetByHand) {
  const Duration delay = Duration::millis(30);
  Prefetch prefetch(-1, 500);
  EXPECT_EQ(prefetch.lot(delay, at_ms(0)), 0U);
  prefetch.completed(200, at_ms(0));
  EXPECT_EQ(prefetch.lot(delay, at_ms(10)), prefetch.depth(delay, at_ms(10)));
  EXPECT_EQ(prefetch.lot(delay, at_ms(10)), 60U);
  Prefetch five(5, 500);
  five.completed(200, at_ms(0));
  EXPECT_EQ(five.lot(delay, at_ms(10)), 0U);
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
  EXPECT_THAT(refused.problems[0],
              HasSubstr("host big would open at most 60000 connections from 1 source "
                        "address to 2 frontends"));
  EXPECT_THAT(refused.problems[0], HasSubstr("30000 of them between one address and one frontend"));
  EXPECT_THAT(refused.problems[0], HasSubstr("28000 ports allow as many, which is 56000 in all"));
  EXPECT_THAT(refused.problems[0], HasSubstr("source_addresses"));
  EXPECT_THAT(refused.problems[0], HasSubstr("ip_local_port_range"));
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.source_addresses = {"10.0.0.1", "10.0.0.2"};
  }
  const Capacity fits = share_capacity(plan, fleet.list());
  EXPECT_TRUE(fits.problems.empty());
  // 60,000 over 2 sources × 2 frontends.
  EXPECT_THAT(fits.budget, testing::Contains(HasSubstr(
                               "15000 of them between one address and one frontend, where "
                               "28000 ports allow as many (54 %)")));
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

// The example of docs/operating.md.
TEST(Capacity, TheBudgetIsSaidWithItsArithmetic) {
  Fleet fleet(2);
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.host = "big";
    agent.hello.memory_bytes = std::uint64_t{8} << 30;
  }
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 4000);
  plan.bodies.bytes = std::uint64_t{3} << 20;
  const Capacity capacity = share_capacity(plan, fleet.list());
  EXPECT_TRUE(capacity.problems.empty());
  EXPECT_THAT(
      capacity.budget,
      testing::ElementsAre(
          "agents a and b: each 2000 connections + 2000 kept idle + 128 for itself (64 and 16 for "
          "each of 4 workers) = 4128 of 10000 open files",
          "host big would open at most 4000 connections from 1 source address to 2 frontends "
          "(distinct host:port), 2000 of them between one address and one frontend, where 28000 "
          "ports allow as many (7 %)",
          "host big takes memory for 4000 streams × 16 KiB (direct) + 2 agents × 64 MiB + bodies "
          "3.0 MiB = 193.5 MiB of 8.0 GiB free"));
}

// 20 MiB of tokenizer files are 320 MiB in each agent that counts with them.
TEST(Capacity, TokenizersOfAgentsThatCountTakeMemory) {
  Fleet fleet(2);
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.host = "big";
    agent.hello.cores = 16;
    agent.hello.counts_tokens = true;
    agent.hello.memory_bytes = std::uint64_t{1} << 30;
  }
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 4000);
  plan.counting.where = CountingWhere::kAgents;
  plan.counting.terms.model_hash = "m";
  plan.counting.terms.model_bytes = std::uint64_t{20} << 20;
  const Capacity fits = share_capacity(plan, fleet.list());
  EXPECT_TRUE(fits.problems.empty());
  EXPECT_THAT(fits.budget.back(),
              HasSubstr("2 agents × 64 MiB + tokenizers 2 × 320.0 MiB + bodies 0.0 MiB = 830.5 MiB "
                        "of 1.0 GiB free"));
  const auto open_slots = [&] {
    RunPlan open = plan;
    open.phases[0].schedule.pacing = base::Pacing::kBurst;
    open.phases[0].schedule.concurrency = 0;
    open.phases[0].schedule.total = 1'000'000;
    return share_capacity(open, fleet.list()).shares[0].slots[0];
  };
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.memory_bytes = std::uint64_t{860} << 20;
  }
  // (0.9 · 860 − 2 · (64 + 320)) MiB, 16 KiB a stream, two agents: 192.
  EXPECT_EQ(open_slots(), 192U);
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.memory_bytes = std::uint64_t{800} << 20;
  }
  const Capacity too_much = share_capacity(plan, fleet.list());
  ASSERT_EQ(too_much.problems.size(), 1U);
  EXPECT_THAT(too_much.problems[0], HasSubstr("set distributed.token_counting to coordinator"));
  plan.counting.where = CountingWhere::kCoordinator;
  EXPECT_TRUE(share_capacity(plan, fleet.list()).problems.empty());
}

TEST(Capacity, MemoryIsSharedByTheAgentsOfAHostAndTooLittleIsRefused) {
  Fleet fleet(2);
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.host = "big";
    agent.hello.memory_bytes = std::uint64_t{190} << 20;
  }
  const Capacity capacity = share_capacity(plan_of(base::Pacing::kClosedLoop, 4000), fleet.list());
  ASSERT_EQ(capacity.problems.size(), 1U);
  EXPECT_THAT(capacity.problems[0], HasSubstr("4000 streams × 16 KiB"));
  EXPECT_THAT(capacity.problems[0], HasSubstr("add hosts"));
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.host = agent.hello.agent_name;
  }
  EXPECT_TRUE(
      share_capacity(plan_of(base::Pacing::kClosedLoop, 4000), fleet.list()).problems.empty());
}

TEST(Capacity, WeightsAndUrlsOfOneServerFillAPairSooner) {
  Fleet fleet(1);
  fleet.agents[0].hello.fd_limit = 1'000'000;
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 40'000);
  EXPECT_TRUE(share_capacity(plan, fleet.list()).problems.empty());
  plan.target.balance = base::Balance::kWeighted;
  plan.target.weights = {3, 1};
  Capacity capacity = share_capacity(plan, fleet.list());
  ASSERT_EQ(capacity.problems.size(), 1U);
  EXPECT_THAT(capacity.problems[0], HasSubstr("30000 of them between one address"));
  plan.target.balance = base::Balance::kLeastInFlight;
  plan.target.urls = {"http://one/a", "http://ONE:80/b"};
  capacity = share_capacity(plan, fleet.list());
  ASSERT_EQ(capacity.problems.size(), 1U);
  EXPECT_THAT(capacity.problems[0], HasSubstr("to 1 frontend"));
}

TEST(Capacity, IdleConnectionsAreKeptAsFarAsFilesAllow) {
  Fleet fleet(1);
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 9000);  // 9,872 files are left
  EXPECT_EQ(share_capacity(plan, fleet.list()).shares[0].connections_max, 9872U);
  plan.phases[0].schedule.concurrency = 9872;  // no file is left for one that is idle
  EXPECT_EQ(share_capacity(plan, fleet.list()).shares[0].connections_max, 9872U);
  plan.phases[0].schedule.concurrency = 1000;
  EXPECT_EQ(share_capacity(plan, fleet.list()).shares[0].connections_max, 2000U);
  plan.target.balance = base::Balance::kPinned;
  EXPECT_EQ(share_capacity(plan, fleet.list()).shares[0].connections_max, 1000U);
  plan.target.urls.pop_back();  // one frontend: every connection fits the next query
  EXPECT_EQ(share_capacity(plan, fleet.list()).shares[0].connections_max, 0U);
}

TEST(Capacity, MoreConnectionsThanFilesAreHeldToThemWithAWarning) {
  Fleet fleet(2);
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 8);
  plan.connections_max = 200'000;
  Capacity capacity = share_capacity(plan, fleet.list());
  EXPECT_TRUE(capacity.problems.empty());
  EXPECT_EQ(capacity.shares[0].connections_max, 9872U);  // what files leave each
  ASSERT_EQ(capacity.warnings.size(), 1U);
  EXPECT_THAT(capacity.warnings[0], HasSubstr("max_connections is 200000"));
  EXPECT_THAT(capacity.warnings[0], HasSubstr("room for 19744"));
  // Two frontends: as many idle to the other one as are in use.
  EXPECT_THAT(capacity.budget[0], HasSubstr("each 4 connections + 4 kept idle + 128 for itself"));
  plan.target.urls.pop_back();
  EXPECT_THAT(share_capacity(plan, fleet.list()).budget[0], HasSubstr("+ 0 kept idle"));
  plan.connections_max = 19'744;
  EXPECT_TRUE(share_capacity(plan, fleet.list()).warnings.empty());
  // A slot needs its connection: for these files are too few, which no clamp may hide.
  plan.connections_max = 200'000;
  plan.phases[0].schedule.concurrency = 30'000;
  EXPECT_THAT(share_capacity(plan, fleet.list()).problems[0],
              HasSubstr("agent a would open 15000 connections"));
}

// Open files are taken as they are, ports and memory to nine tenths, all shared evenly: no load
// without a closed loop can be refused or warned of for slots that nobody asked for.
TEST(Capacity, ChosenSlotsFitByConstruction) {
  for (std::size_t agents = 1; agents <= 20; ++agents) {
    for (std::size_t frontends = 1; frontends <= 8; ++frontends) {
      for (const std::uint64_t mib : {0U, 64U, 128U, 512U, 1024U, 4096U, 65'536U}) {
        for (const std::uint32_t ports : {40U, 28'232U, 64'000U}) {
          for (const bool tls : {false, true}) {
            Fleet fleet(agents);
            for (std::size_t i = 0; i < agents; ++i) {
              fleet.agents[i].hello.host = "big";
              fleet.agents[i].hello.fd_limit = i % 3 == 2 ? 2000 : 1'000'000;
              fleet.agents[i].hello.ephemeral_ports = ports;
              if (i % 4 == 1) {
                fleet.agents[i].hello.source_addresses = {"10.0.0.1", "10.0.0.2"};
              }
              // 0: not known. Enough for the agents themselves and a stream each.
              fleet.agents[i].hello.memory_bytes =
                  mib == 0 ? 0 : (mib << 20) + agents * (kAgentBytes + kStreamBytesMultiTls);
            }
            RunPlan plan = plan_of(base::Pacing::kTimed, 0);
            plan.target.way = agents % 2 == 0 ? base::Way::kMulti : base::Way::kAuto;
            plan.target.urls.clear();
            for (std::size_t f = 0; f < frontends; ++f) {
              plan.target.urls.push_back((tls ? "https://h" : "http://h") + std::to_string(f));
              plan.target.weights.push_back(static_cast<std::uint32_t>(f + 1));
            }
            if (agents % 3 == 0) {
              plan.target.balance = base::Balance::kWeighted;
            }
            const Capacity capacity = share_capacity(plan, fleet.list());
            const std::string at = std::to_string(agents) + " agents, " +
                                   std::to_string(frontends) + " frontends, " +
                                   std::to_string(mib) + " MiB, " + std::to_string(ports);
            ASSERT_THAT(capacity.problems, testing::IsEmpty()) << at;
            ASSERT_THAT(capacity.warnings, testing::IsEmpty()) << at;
            ASSERT_THAT(capacity.budget, testing::Not(testing::Contains(HasSubstr("may fail"))))
                << at;
            for (const AgentShare& share : capacity.shares) {
              ASSERT_GE(share.slots_max, 1U) << at;
              ASSERT_EQ(share.slots_asked, 0U) << at;
            }
          }
        }
      }
    }
  }
}

TEST(Capacity, ChosenSlotsUseWhatThereIs) {
  Fleet fleet(9);
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.host = "big";
    agent.hello.fd_limit = 1'000'000;
    agent.hello.ephemeral_ports = 28'232;
  }
  RunPlan plan = plan_of(base::Pacing::kBurst, 0);
  // (0.9 · 28,232 − 9) / (9 · ½) = 5,644.4
  EXPECT_EQ(share_capacity(plan, fleet.list()).shares[0].slots[0], 5644U);
  for (roster::Agent& agent : fleet.agents) {
    agent.hello.memory_bytes = std::uint64_t{1} << 30;
  }
  plan.target.urls = {"https://one/", "https://two/"};
  // (0.9 · 1 GiB − 9 · 64 MiB) / (9 · 48 KiB) = 819.2
  Capacity capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(capacity.shares[0].slots[0], 819U);
  EXPECT_NEAR(capacity.used_percent, 90, 0.1);
  // Beside a closed loop that takes more than that: its slots, and no more.
  RunPhase loop = plan_of(base::Pacing::kClosedLoop, 9001).phases[0];
  plan.phases.push_back(loop);
  capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(capacity.shares[0].slots_max, 1001U);
  EXPECT_EQ(capacity.shares[8].slots_max, 1000U);
  EXPECT_THAT(capacity.problems, testing::IsEmpty());
}

TEST(Capacity, TheConsoleSaysTheSumsOnlyNearALimit) {
  Fleet fleet(1);
  fleet.agents[0].hello.memory_bytes = std::uint64_t{64} << 30;
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 100);
  Capacity capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(capacity.budget.size(), 3U);
  // (100 + 128) of 10,000 files; the 100 kept idle are closed before anything else goes short.
  EXPECT_THAT(spoken_budget(capacity),
              testing::ElementsAre("Budget: fits; at most 3 % of files, ports and memory "
                                   "(report.txt has the sums)"));
  plan.phases[0].schedule.concurrency = 4900;  // 50.3 % of the files
  capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(spoken_budget(capacity), capacity.budget);
  plan = plan_of(base::Pacing::kTimed, 0);  // fills the files because nobody said how many
  EXPECT_THAT(spoken_budget(share_capacity(plan, fleet.list())),
              testing::ElementsAre("Budget: fits; at most 100 % of files, ports and memory, as "
                                   "queries in flight are held to what fits (report.txt has the "
                                   "sums)"));
  fleet.agents[0].hello = {};
  EXPECT_THAT(spoken_budget(share_capacity(plan, fleet.list())), testing::IsEmpty());
}

TEST(Capacity, StreamsAreSizedByWayAndTls) {
  const auto line = [](base::Way way, const char* url) {
    Fleet fleet(1);
    fleet.agents[0].hello.memory_bytes = std::uint64_t{8} << 30;
    RunPlan plan = plan_of(base::Pacing::kClosedLoop, 10);
    plan.target.way = way;
    plan.target.urls[1] = url;
    return share_capacity(plan, fleet.list()).budget.back();
  };
  EXPECT_THAT(line(base::Way::kAuto, "http://b"), HasSubstr("10 streams × 16 KiB (direct) "));
  EXPECT_THAT(line(base::Way::kMulti, "http://b"), HasSubstr("10 streams × 32 KiB (multi) "));
  EXPECT_THAT(line(base::Way::kAuto, "https://b"), HasSubstr("10 streams × 48 KiB (direct, TLS)"));
  EXPECT_THAT(line(base::Way::kDirect, "https://b"), HasSubstr("× 48 KiB (direct, TLS)"));
  EXPECT_THAT(line(base::Way::kMulti, "https://b"), HasSubstr("× 96 KiB (multi, TLS)"));
}

TEST(Capacity, EachAgentUsesTheSourceAddressesThatAreItsHosts) {
  Fleet fleet(3);
  fleet.agents[0].hello.own_addresses = {"127.0.0.1/8", "10.0.0.1", "10.0.0.2"};
  fleet.agents[1].hello.own_addresses = {"127.0.0.1/8", "10.0.0.3"};
  fleet.agents[2].hello.source_addresses = {"10.9.9.9"};  // its own choice
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 10);
  plan.target.source_addresses = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
  const Capacity capacity = share_capacity(plan, fleet.list());
  EXPECT_THAT(capacity.problems, testing::IsEmpty());
  EXPECT_THAT(capacity.shares[0].source_addresses, testing::ElementsAre("10.0.0.1", "10.0.0.2"));
  EXPECT_THAT(capacity.shares[1].source_addresses, testing::ElementsAre("10.0.0.3"));
  EXPECT_THAT(capacity.shares[2].source_addresses, testing::ElementsAre("10.9.9.9"));
}

TEST(Capacity, SourceAddressesThatAreNobodysAreNamed) {
  Fleet fleet(2);
  fleet.agents[0].hello.own_addresses = {"10.0.0.1"};
  fleet.agents[1].hello.own_addresses = {"10.0.0.2"};
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 10);
  plan.target.source_addresses = {"10.0.0.1", "10.0.0.7"};
  const Capacity capacity = share_capacity(plan, fleet.list());
  ASSERT_EQ(capacity.problems.size(), 2U);
  EXPECT_THAT(capacity.problems[0], HasSubstr("agent b on host host-b has none of"));
  EXPECT_THAT(capacity.problems[0], HasSubstr("it has 10.0.0.2"));
  EXPECT_THAT(capacity.problems[1], HasSubstr("10.0.0.7 is on no agent's host"));
}

TEST(Capacity, SourcesOfTheWrongFamilyAreNamedWithTheFrontend) {
  Fleet fleet(1);
  fleet.agents[0].hello.source_addresses = {"fd00::1"};
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 10);
  plan.target.urls = {"http://10.0.0.9:8000/x", "http://[fd00::9]:8000/x"};
  const Capacity capacity = share_capacity(plan, fleet.list());
  ASSERT_EQ(capacity.problems.size(), 1U);
  EXPECT_THAT(capacity.problems[0], HasSubstr("cannot reach 10.0.0.9:8000"));
  EXPECT_THAT(capacity.problems[0], HasSubstr("none is IPv4"));
}

TEST(Capacity, ConnectionsFollowTheSettings) {
  const Fleet fleet(3);
  RunPlan plan = plan_of(base::Pacing::kClosedLoop, 100);
  Capacity capacity = share_capacity(plan, fleet.list());
  EXPECT_EQ(capacity.shares[0].connections_max, 68U);  // as many again kept idle
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
