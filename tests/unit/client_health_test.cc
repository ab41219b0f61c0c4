// Client health: every limit holds at its value and breaks just beyond it; a finding names agent,
// metric, value, limit and when; no finding without cause.

#include "coordinator/verdict/client_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace tutti::verdict {
namespace {

using base::Duration;
using base::Instant;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kSecond = 1'000'000'000;

HealthRow second(std::int64_t from_s) {
  HealthRow row;
  row.phase = 1;
  row.health.from = Instant{from_s * kSecond};
  row.health.to = Instant{(from_s + 1) * kSecond};
  row.health.issue_lag_p99 = Duration::micros(100);
  row.health.issue_lag_count = 100;
  row.health.turn_max = Duration::millis(2);
  row.health.cpu_busiest_worker = 0.4;
  return row;
}

// Two agents for 200 s, all well; box-1 is spoilt.
ClientFacts healthy() {
  ClientFacts facts;
  for (const char* name : {"box-0", "box-1"}) {
    ClientAgent agent;
    agent.name = name;
    for (std::int64_t s = 100; s < 300; ++s) {
      agent.rows.push_back(second(s));
    }
    agent.issue_lag_p99 = Duration::micros(120);
    agent.issue_lag_count = 20'000;
    agent.mean_in_flight = 100.0;
    agent.slots = 100;
    facts.agents.push_back(std::move(agent));
  }
  facts.frontends = {{"http://a", 500}, {"http://b", 500}};
  return facts;
}

struct Limit {
  const char* metric;
  std::function<void(ClientFacts&)> at;      // exactly at the limit
  std::function<void(ClientFacts&)> beyond;  // just beyond
  const char* agent = "box-1";
};

wire::Health& health(ClientFacts& facts, std::size_t row = 7) {
  return facts.agents[1].rows[row].health;
}

// Three of 200 s are more than one percent of the time, two are not.
void spoil(ClientFacts& facts, std::size_t seconds, const std::function<void(wire::Health&)>& how) {
  for (std::size_t i = 0; i < seconds; ++i) {
    how(health(facts, 7 + i));
  }
}

class ClientLimitTable : public testing::TestWithParam<Limit> {};

TEST_P(ClientLimitTable, HoldsAtTheLimitAndBreaksBeyondIt) {
  ClientFacts at = healthy();
  GetParam().at(at);
  EXPECT_FALSE(judge_client(at, {}).bound());
  ClientFacts beyond = healthy();
  GetParam().beyond(beyond);
  const ClientVerdict verdict = judge_client(beyond, {});
  ASSERT_EQ(verdict.findings.size(), 1U);
  const Finding& finding = verdict.findings[0];
  EXPECT_EQ(finding.metric, GetParam().metric);
  EXPECT_EQ(finding.agent, GetParam().agent);
  EXPECT_THAT(finding.text, HasSubstr(GetParam().agent));
  EXPECT_NE(finding.value, finding.limit);
  EXPECT_FALSE(finding.unit.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ClientLimitTable,
    testing::Values(
        Limit{"issue_lag_p99",
              [](ClientFacts& f) {
                spoil(f, 3, [](auto& h) { h.issue_lag_p99 = Duration::millis(1); });
              },
              [](ClientFacts& f) {
                spoil(f, 3, [](auto& h) { h.issue_lag_p99 = Duration{1'000'001}; });
              }},
        Limit{"issue_lag_p99",
              [](ClientFacts& f) { f.agents[1].issue_lag_p99 = Duration::millis(1); },
              [](ClientFacts& f) { f.agents[1].issue_lag_p99 = Duration{1'000'001}; }},
        Limit{"cpu_busiest_worker",
              [](ClientFacts& f) { spoil(f, 3, [](auto& h) { h.cpu_busiest_worker = 0.8; }); },
              [](ClientFacts& f) { spoil(f, 3, [](auto& h) { h.cpu_busiest_worker = 0.801; }); }},
        Limit{"cpu_session",
              [](ClientFacts& f) { spoil(f, 3, [](auto& h) { h.cpu_session = 0.8; }); },
              [](ClientFacts& f) { spoil(f, 3, [](auto& h) { h.cpu_session = 0.801; }); }},
        Limit{"turn_max", [](ClientFacts& f) { health(f).turn_max = Duration::millis(100); },
              [](ClientFacts& f) { health(f).turn_max = Duration{100'000'001}; }},
        Limit{"session_turn_max",
              [](ClientFacts& f) { health(f).session_turn_max = Duration::millis(100); },
              [](ClientFacts& f) { health(f).session_turn_max = Duration{100'000'001}; }},
        Limit{"connect_failures", [](ClientFacts& f) { health(f).connect_failures = 0; },
              [](ClientFacts& f) { health(f).connect_failures = 1; }},
        Limit{"records_lost", [](ClientFacts& f) { f.agents[1].records_lost = 0; },
              [](ClientFacts& f) { f.agents[1].records_lost = 1; }},
        Limit{"clock_error", [](ClientFacts& f) { f.agents[1].clock_error = Duration::millis(1); },
              [](ClientFacts& f) { f.agents[1].clock_error = Duration{1'000'001}; }},
        Limit{"mean_in_flight", [](ClientFacts& f) { f.agents[1].mean_in_flight = 98.0; },
              [](ClientFacts& f) { f.agents[1].mean_in_flight = 97.99; }},
        Limit{"frontend_imbalance",
              [](ClientFacts& f) {
                f.frontends = {{"http://a", 510}, {"http://b", 490}};
              },
              [](ClientFacts& f) {
                f.frontends = {{"http://a", 511}, {"http://b", 489}};
              },
              ""}));

TEST(ClientHealth, AFindingOfTimeSaysWhatCountingTokensTookThen) {
  ClientFacts facts = healthy();
  spoil(facts, 5, [](auto& h) { h.turn_max = Duration::millis(200); });
  EXPECT_THAT(judge_client(facts, {}).findings.at(0).text, testing::Not(HasSubstr("counting")));
  spoil(facts, 5, [](auto& h) { h.cpu_counting = 0.75; });
  EXPECT_THAT(judge_client(facts, {}).findings.at(0).text,
              HasSubstr("while counting tokens took 75 % of a core"));
  ClientFacts ports = healthy();
  health(ports).connect_failures = 1;
  health(ports).cpu_counting = 0.75;
  EXPECT_THAT(judge_client(ports, {}).findings.at(0).text, testing::Not(HasSubstr("counting")));
  ClientFacts busy = healthy();
  spoil(busy, 5, [](auto& h) { h.cpu_counting = 4; });
  EXPECT_FALSE(judge_client(busy, {}).bound()) << "counting alone breaks no limit";
}

TEST(ClientHealth, AFindingSaysWhenItWasWorstAndForHowLong) {
  ClientFacts facts = healthy();
  spoil(facts, 5, [](auto& h) { h.issue_lag_p99 = Duration::millis(2); });
  health(facts, 9).issue_lag_p99 = Duration::millis(7);
  const ClientVerdict verdict = judge_client(facts, {});
  ASSERT_EQ(verdict.findings.size(), 1U);
  const Finding& finding = verdict.findings[0];
  EXPECT_DOUBLE_EQ(finding.value, 7);
  EXPECT_DOUBLE_EQ(finding.limit, 1);
  EXPECT_EQ(finding.unit, "ms");
  EXPECT_EQ(finding.at, Instant{109 * kSecond});
  EXPECT_EQ(finding.beyond, Duration::seconds(5));
  EXPECT_THAT(finding.text, HasSubstr("agent box-1: p99 of issued − due 7 ms (limit 1), beyond it "
                                      "in 5.0 s of 200.0 s"));
}

TEST(ClientHealth, LagAndCpuForgiveOnePercentOfTheTimeAndAStallNone) {
  ClientFacts facts = healthy();
  spoil(facts, 2, [](auto& h) {
    h.issue_lag_p99 = Duration::millis(50);
    h.cpu_busiest_worker = 1.0;
  });
  EXPECT_FALSE(judge_client(facts, {}).bound());
  health(facts).turn_max = Duration::millis(1500);
  EXPECT_TRUE(judge_client(facts, {}).bound());
}

TEST(ClientHealth, LagIsJudgedAgainstTheTtftItDisturbs) {
  ClientFacts facts = healthy();
  facts.ttft_p50 = Duration::millis(300);  // 1 % is 3 ms
  facts.agents[1].issue_lag_p99 = Duration::millis(3);
  EXPECT_FALSE(judge_client(facts, {}).bound());
  facts.agents[1].issue_lag_p99 = Duration{3'000'001};
  EXPECT_TRUE(judge_client(facts, {}).bound());
  facts.ttft_p50 = Duration::millis(20);  // 1 % is less than the limit that always holds
  EXPECT_EQ(issue_lag_limit(facts.ttft_p50, {}), Duration::millis(1));
}

TEST(ClientHealth, CpuOfAShortIntervalIsNotJudged) {
  ClientFacts facts = healthy();
  facts.agents[1].rows.resize(1);
  HealthRow& row = facts.agents[1].rows[0];
  row.health.cpu_busiest_worker = 1.0;
  row.health.to = row.health.from + Duration{499'999'999};
  EXPECT_FALSE(judge_client(facts, {}).bound());
  row.health.to = row.health.from + Duration::millis(500);
  EXPECT_TRUE(judge_client(facts, {}).bound());
}

// box-1 told of 200 s in rows of four intervals each.
ClientFacts merged() {
  ClientFacts facts = healthy();
  facts.agents[1].rows.clear();
  for (std::int64_t i = 0; i < 200; i += 4) {
    HealthRow row = second(100 + i);
    row.health.to = row.health.from + Duration::seconds(4);
    row.intervals = 4;
    facts.agents[1].rows.push_back(row);
  }
  return facts;
}

TEST(ClientHealth, AMergedRowIsBeyondALimitForAsLongAsItsIntervalsWere) {
  ClientFacts facts = merged();
  HealthRow& row = facts.agents[1].rows[3];
  row.health.cpu_busiest_worker = 1.0;
  row.health.issue_lag_p99 = Duration::millis(5);
  row.beyond = {Duration::seconds(2), Duration::seconds(2), Duration{}};
  EXPECT_FALSE(judge_client(facts, {}).bound()) << "2 s of 200 s, not 4 s";
  row.beyond[1] = Duration::seconds(3);
  ClientVerdict verdict = judge_client(facts, {});
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].metric, "cpu_busiest_worker");
  EXPECT_EQ(verdict.findings[0].beyond, Duration::seconds(3));
  EXPECT_THAT(verdict.findings[0].text, HasSubstr("beyond it in 3.0 s of 200.0 s"));
  row.beyond = {Duration::seconds(3), Duration{}, Duration{}};
  verdict = judge_client(facts, {});
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_THAT(verdict.findings[0].text, HasSubstr("beyond it in at most 3.0 s of 200.0 s"));
  facts.ttft_p50 = Duration::seconds(1);  // 1 % is 10 ms, and the row's worst is 5 ms
  EXPECT_FALSE(judge_client(facts, {}).bound());
}

TEST(ClientHealth, WhatOnceIsEnoughForIsBeyondInAtMostTheWholeMergedRow) {
  ClientFacts facts = merged();
  facts.agents[1].rows[3].health.turn_max = Duration::millis(101);
  const ClientVerdict verdict = judge_client(facts, {});
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].metric, "turn_max");
  EXPECT_THAT(verdict.findings[0].text, HasSubstr("beyond it in at most 4.0 s of 200.0 s"));
}

TEST(ClientHealth, TimesBeyondAreOfTheIntervalsOwnLengthAndOfWhatIsJudged) {
  HealthRow row = second(4);
  EXPECT_EQ(times_beyond(row, {}), TimesBeyond{});
  row.health.issue_lag_p99 = Duration{1'000'001};
  row.health.cpu_session = 0.9;
  EXPECT_EQ(times_beyond(row, {}),
            (TimesBeyond{Duration::seconds(1), Duration{}, Duration::seconds(1)}));
  row.health.issue_lag_count = 99;
  row.health.to = row.health.from + Duration::millis(499);
  EXPECT_EQ(times_beyond(row, {}), TimesBeyond{});
}

TEST(ClientHealth, TheP99OfFewValuesIsTheirLargestAndIsNotJudged) {
  ClientFacts facts = healthy();
  spoil(facts, 100, [](auto& h) {
    h.issue_lag_p99 = Duration::millis(2);
    h.issue_lag_count = 99;
  });
  EXPECT_FALSE(judge_client(facts, {}).bound());
  EXPECT_TRUE(broken_in(facts.agents[1].rows[7], Duration::millis(1), {}).empty());
  spoil(facts, 3, [](auto& h) { h.issue_lag_count = 100; });
  EXPECT_TRUE(judge_client(facts, {}).bound());
  EXPECT_EQ(broken_in(facts.agents[1].rows[7], Duration::millis(1), {}).size(), 1U);
  facts = healthy();
  facts.agents[1].issue_lag_p99 = Duration::millis(2);
  facts.agents[1].issue_lag_count = 99;
  EXPECT_FALSE(judge_client(facts, {}).bound());
  facts.agents[1].issue_lag_count = 100;
  EXPECT_TRUE(judge_client(facts, {}).bound());
}

TEST(ClientHealth, LateIssuesAreHeldAgainstTheMedianLatencyAndComeWithARemedy) {
  ClientFacts facts = healthy();
  facts.agents[1].issue_lag_p99 = Duration::micros(2330);
  EXPECT_THAT(judge_client(facts, {}).findings.at(0).text, Not(HasSubstr("median")));
  facts.latency_p50 = Duration::millis(233);
  const std::string text = judge_client(facts, {}).findings.at(0).text;
  EXPECT_THAT(text, HasSubstr("2.33 ms (limit 1), 1 % of the median latency of 233 ms"));
  EXPECT_THAT(text, HasSubstr("may have shaped"));
  EXPECT_THAT(text, HasSubstr("the host was busy: free it, or use more workers or agents"));
}

TEST(ClientHealth, TimesAreNotRoundedUp) {
  ClientFacts facts = healthy();
  facts.agents[1].rows.resize(2);
  facts.agents[1].rows[1].health.to = facts.agents[1].rows[1].health.from + Duration::millis(1010);
  for (HealthRow& row : facts.agents[1].rows) {
    row.health.cpu_session = 0.9;
  }
  EXPECT_THAT(judge_client(facts, {}).findings.at(0).text, HasSubstr("in 2.0 s of 2.0 s"));
}

TEST(ClientHealth, AnIntervalOfNoLengthStillCounts) {
  ClientFacts facts = healthy();
  health(facts).to = health(facts).from;
  health(facts).connect_failures = 1;
  EXPECT_TRUE(judge_client(facts, {}).bound());
}

TEST(ClientHealth, EveryWorkerMayBeAQueryOffTheBalance) {
  ClientFacts facts = healthy();
  facts.frontends = {{"a", 24}, {"b", 16}};
  facts.workers = 4;
  EXPECT_FALSE(judge_client(facts, {}).bound());
  facts.workers = 3;
  EXPECT_TRUE(judge_client(facts, {}).bound());
}

TEST(ClientHealth, FewQueriesCannotBeSharedMoreFinelyThanByOne) {
  ClientFacts facts = healthy();
  facts.frontends = {{"a", 2}, {"b", 1}, {"c", 1}};
  EXPECT_FALSE(judge_client(facts, {}).bound());
  facts.frontends = {{"a", 4}, {"b", 2}, {"c", 2}};
  EXPECT_TRUE(judge_client(facts, {}).bound());
  facts.frontends = {{"a", 4}};
  EXPECT_FALSE(judge_client(facts, {}).bound());
}

TEST(ClientHealth, OnlyAClosedLoopHasAConcurrencyToHold) {
  ClientFacts facts = healthy();
  for (ClientAgent& agent : facts.agents) {
    agent.slots = 0;
    agent.mean_in_flight = 1.0;
  }
  EXPECT_FALSE(judge_client(facts, {}).bound());
}

TEST(ClientHealth, AnAgentThatToldNothingIsNamedAndNotCalledHealthy) {
  ClientFacts facts = healthy();
  facts.agents[0].rows.clear();
  const ClientVerdict verdict = judge_client(facts, {});
  EXPECT_FALSE(verdict.bound());
  EXPECT_EQ(verdict.unseen, std::vector<std::string>{"box-0"});
  EXPECT_EQ(verdict.judged, Duration::seconds(200));
}

TEST(ClientHealth, OneIntervalBreaksWithoutForgiveness) {
  HealthRow row = second(4);
  EXPECT_TRUE(broken_in(row, Duration::millis(1), {}).empty());
  row.health.issue_lag_p99 = Duration::micros(1001);
  row.health.cpu_session = 0.9;
  const auto broken = broken_in(row, Duration::millis(1), {});
  ASSERT_EQ(broken.size(), 2U);
  EXPECT_EQ(broken[0].metric, "issue_lag_p99");
  EXPECT_EQ(broken[1].metric, "cpu_session");
  EXPECT_EQ(broken[1].at, Instant{4 * kSecond});
}

}  // namespace
}  // namespace tutti::verdict
