// Which intervals of agents' health speak for a step's window, and what they make of it.

#include "coordinator/calibrate_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/calibrate_search.h"

namespace tutti {
namespace {

using base::Duration;
using base::Instant;

Instant at(double s) { return Instant{1'000'000'000} + Duration::from_seconds(s); }

HealthNote note(std::uint64_t agent, double from_s, double to_s, double cpu) {
  HealthNote out;
  out.agent = agent;
  out.health.from = at(from_s);
  out.health.to = at(to_s);
  out.health.cpu_busiest_worker = cpu;
  return out;
}

TEST(HealthIn, ABusyAgentBreaksTheLimitThoughNineOfTenNotesCloseNoInterval) {
  std::vector<HealthNote> notes;
  for (int tenth = 0; tenth < 30; ++tenth) {
    notes.push_back({7, {}});
  }
  notes.push_back(note(7, 0, 1, 0.2));  // while it settled
  notes.push_back(note(7, 1, 2, 0.9));
  notes.push_back(note(7, 2, 2.4, 0.1));  // the drain
  notes.push_back(note(8, 1, 2, 0.3));
  const HealthSeen seen = health_in(notes, at(1), at(2));
  EXPECT_DOUBLE_EQ(seen.cpu_busiest, 0.9);
  EXPECT_EQ(seen.agents, 2U);
  StepSeen step;
  step.cpu_busiest = seen.cpu_busiest;
  EXPECT_THAT(shortfall(step, {}), testing::HasSubstr("0.90"));
}

TEST(HealthIn, AnEmptyHealthChangesNothingAndAloneTellsNothing) {
  std::vector<HealthNote> notes{note(1, 1, 2, 0.5)};
  const HealthSeen without = health_in(notes, at(1), at(2));
  notes.insert(notes.begin(), {1, {}});
  notes.push_back({1, {}});
  EXPECT_DOUBLE_EQ(health_in(notes, at(1), at(2)).cpu_busiest, without.cpu_busiest);
  const HealthSeen none = health_in({{1, {}}, {2, {}}}, at(1), at(2));
  EXPECT_EQ(none.agents, 0U);
  StepSeen step;
  step.agents_silent = 2;
  EXPECT_THAT(shortfall(step, {}), testing::HasSubstr("2 agents told nothing"));
}

TEST(HealthIn, IntervalsCountByWhatOfThemLiesInTheWindow) {
  const HealthSeen seen =
      health_in({note(1, 0, 1.25, 1.0), note(1, 1.25, 2.25, 0.2)}, at(1), at(2));
  EXPECT_DOUBLE_EQ(seen.cpu_busiest, 0.25 * 1.0 + 0.75 * 0.2);
  EXPECT_EQ(health_in({note(1, 0, 1.25, 1.0)}, at(1), at(2)).agents, 0U)
      << "a quarter is too little";
}

TEST(HealthIn, TheSessionThreadIsAThreadToo) {
  std::vector<HealthNote> notes{note(1, 1, 2, 0.2)};
  notes[0].health.cpu_session = 0.85;
  EXPECT_DOUBLE_EQ(health_in(notes, at(1), at(2)).cpu_busiest, 0.85);
}

TEST(HealthIn, TheReadLagIsOfIntervalsInTheWindowAndLossIsOfAnyNote) {
  std::vector<HealthNote> notes{note(1, 0, 1.01, 0), note(1, 1.01, 2.01, 0), note(1, 5, 6, 0)};
  notes[0].health.read_lag_p99 = Duration::millis(9);
  notes[1].health.read_lag_p99 = Duration::micros(40);
  notes[2].health.read_lag_p99 = Duration::millis(9);
  notes.push_back({1, {}});
  notes.back().health.records_lost = 3;
  const HealthSeen seen = health_in(notes, at(1), at(2));
  EXPECT_EQ(seen.read_lag_p99, Duration::micros(40));
  EXPECT_EQ(seen.records_lost, 3U);
}

}  // namespace
}  // namespace tutti
