#include <gtest/gtest.h>

#include "common/plan/stop.h"

namespace tutti::plan {
namespace {

using base::Duration;

constexpr Duration s(std::int64_t seconds) { return Duration::seconds(seconds); }

PhaseCounters flying(Duration since, std::uint64_t in_flight = 1) {
  PhaseCounters counters;
  counters.issued = 10;
  counters.in_flight = in_flight;
  counters.in_flight_since = since;
  return counters;
}

TEST(CountReached, StopsAtTheTotalNotBeforeIt) {
  const CountReached rule(10);
  PhaseCounters counters;
  counters.issued = 9;
  EXPECT_TRUE(rule.evaluate(counters, s(9'999)).proceeds()) << "time alone never ends a count";
  counters.issued = 10;
  const Decision decision = rule.evaluate(counters, s(0));
  EXPECT_EQ(decision.course, Course::kStop);
  EXPECT_EQ(decision.cause, StopCause::kCount);
  EXPECT_FALSE(rule.next_check(counters).has_value());
}

TEST(IssueCap, StopsWhenIssuingHasLastedTheCapToTheNanosecond) {
  const IssueCap rule(s(10));
  EXPECT_TRUE(rule.evaluate({}, s(10) - Duration::nanos(1)).proceeds());
  EXPECT_EQ(rule.evaluate({}, s(10)).cause, StopCause::kIssueCap);
  EXPECT_EQ(rule.evaluate({}, s(10)).course, Course::kStop) << "a cap is an end, not a failure";
  EXPECT_EQ(rule.next_check({}), s(10));
}

TEST(StopAsked, StopsAsSoonAsAsked) {
  const StopAsked rule;
  PhaseCounters counters;
  EXPECT_TRUE(rule.evaluate(counters, s(1)).proceeds());
  counters.stop_asked = true;
  EXPECT_EQ(rule.evaluate(counters, s(1)).cause, StopCause::kAsked);
}

TEST(ResponseIdle, FailsWhenNothingAnsweredSinceInFlightLeftZero) {
  const ResponseIdle rule(s(300));
  const PhaseCounters counters = flying(s(5), 12);
  EXPECT_TRUE(rule.evaluate(counters, s(305) - Duration::nanos(1)).proceeds());
  const Decision decision = rule.evaluate(counters, s(305));
  EXPECT_EQ(decision.course, Course::kFail);
  EXPECT_EQ(decision.cause, StopCause::kResponseIdle);
  EXPECT_NE(decision.reason.find("EndpointResponseIdleTimeoutError"), std::string::npos);
  EXPECT_NE(decision.reason.find("300.0 s"), std::string::npos);
  EXPECT_NE(decision.reason.find("12 queries"), std::string::npos);
  EXPECT_EQ(rule.next_check(counters), s(305));
}

TEST(ResponseIdle, AnyResponseStartsTheWaitAnew) {
  const ResponseIdle rule(s(300));
  PhaseCounters counters = flying(s(5));
  counters.last_response = s(200);
  EXPECT_TRUE(rule.evaluate(counters, s(499)).proceeds());
  EXPECT_EQ(rule.evaluate(counters, s(500)).cause, StopCause::kResponseIdle);
  EXPECT_EQ(rule.next_check(counters), s(500));
}

TEST(ResponseIdle, AQuietSpellWithNothingInFlightDoesNotCount) {
  const ResponseIdle rule(s(300));
  PhaseCounters counters = flying(s(1000));  // in flight again at 1000 s …
  counters.last_response = s(10);            // … long after the last response
  EXPECT_TRUE(rule.evaluate(counters, s(1299)).proceeds());
  EXPECT_EQ(rule.evaluate(counters, s(1300)).course, Course::kFail);
}

TEST(ResponseIdle, IsSilentWithNothingInFlightAndOnceAStopIsAsked) {
  const ResponseIdle rule(s(300));
  EXPECT_TRUE(rule.evaluate({}, s(9'999)).proceeds());
  EXPECT_FALSE(rule.next_check({}).has_value());
  PhaseCounters counters = flying(s(0));
  counters.stop_asked = true;
  EXPECT_TRUE(rule.evaluate(counters, s(9'999)).proceeds());
  EXPECT_FALSE(rule.next_check(counters).has_value());
}

TEST(DrainTimeout, FailsOnlyWhenDrainingWithQueriesInFlight) {
  const DrainTimeout rule(s(240));
  PhaseCounters counters = flying(s(0), 3);
  EXPECT_TRUE(rule.evaluate(counters, s(9'999)).proceeds()) << "not draining";
  EXPECT_FALSE(rule.next_check(counters).has_value());
  counters.draining_since = s(100);
  EXPECT_EQ(rule.next_check(counters), s(340));
  EXPECT_TRUE(rule.evaluate(counters, s(339)).proceeds());
  EXPECT_EQ(rule.evaluate(counters, s(340)).cause, StopCause::kDrainTimeout);
  counters.in_flight = 0;
  EXPECT_TRUE(rule.evaluate(counters, s(340)).proceeds()) << "drained just in time";
  EXPECT_FALSE(rule.next_check(counters).has_value());
}

TEST(RunTimeout, FailsAtItsLimitWhateverIsGoingOn) {
  const RunTimeout rule(s(60));
  EXPECT_TRUE(rule.evaluate({}, s(59)).proceeds());
  EXPECT_EQ(rule.evaluate({}, s(60)).course, Course::kFail);
  EXPECT_EQ(rule.evaluate({}, s(60)).cause, StopCause::kRunTimeout);
  EXPECT_EQ(rule.next_check({}), s(60));
}

TEST(StopRules, WithoutRulesProceedForEver) {
  const StopRules rules;
  EXPECT_TRUE(rules.evaluate({}, s(1'000'000)).proceeds());
  EXPECT_FALSE(rules.next_check({}).has_value());
}

TEST(StopRules, AFailureOutranksAStopAndTheFirstOfEqualsSpeaks) {
  StopRules rules;
  rules.add(std::make_unique<StopAsked>())
      .add(std::make_unique<CountReached>(10))
      .add(std::make_unique<IssueCap>(s(100)))
      .add(std::make_unique<ResponseIdle>(s(300)));
  PhaseCounters counters = flying(s(0));
  EXPECT_EQ(rules.evaluate(counters, s(200)).cause, StopCause::kCount);
  EXPECT_EQ(rules.evaluate(counters, s(300)).cause, StopCause::kResponseIdle);
  counters.stop_asked = true;  // silences the idle rule and speaks first
  EXPECT_EQ(rules.evaluate(counters, s(300)).cause, StopCause::kAsked);
}

TEST(StopRules, WakeAtTheEarliestCheckOfAnyRule) {
  StopRules rules;
  rules.add(std::make_unique<IssueCap>(s(100))).add(std::make_unique<ResponseIdle>(s(30)));
  EXPECT_EQ(rules.next_check({}), s(100));
  EXPECT_EQ(rules.next_check(flying(s(50))), s(80));
  EXPECT_EQ(rules.next_check(flying(s(90))), s(100));
}

TEST(StopRules, NestLikeAnyRule) {
  auto inner = std::make_unique<StopRules>();
  inner->add(std::make_unique<CountReached>(1));
  StopRules rules;
  rules.add(std::move(inner));
  PhaseCounters counters;
  counters.issued = 1;
  EXPECT_EQ(rules.evaluate(counters, s(0)).cause, StopCause::kCount);
}

TEST(StopRules, ALimitOfNothingIsAProgrammersError) {
  EXPECT_DEATH(IssueCap(Duration{}), "promise broken");
  EXPECT_DEATH(ResponseIdle(Duration{}), "promise broken");
  EXPECT_DEATH(DrainTimeout(Duration{}), "promise broken");
  EXPECT_DEATH(RunTimeout(Duration{}), "promise broken");
}

}  // namespace
}  // namespace tutti::plan
