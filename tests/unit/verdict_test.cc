#include "coordinator/verdict/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace tutti::verdict {
namespace {

using base::Duration;
using base::ExitCode;
using testing::HasSubstr;

RunCount good_run() {
  RunCount run;
  PhaseCount warmup;
  warmup.name = "warmup";
  warmup.kind = base::PhaseKind::kWarmup;
  warmup.issued = warmup.completed = 5;
  PhaseCount performance;
  performance.name = "performance";
  performance.issued = performance.completed = 100;
  run.phases = {warmup, performance};
  AgentCount agent;
  agent.name = "box-7";
  run.agents = {agent};
  return run;
}

struct Case {
  const char* name;
  std::function<void(RunCount&)> spoil;
  bool valid;
  ExitCode exit_code;
  std::vector<std::string> in_reasons;  // one substring per reason, in order
};

class VerdictTable : public testing::TestWithParam<Case> {};

TEST_P(VerdictTable, DecidesValidityReasonsAndExitCode) {
  RunCount run = good_run();
  GetParam().spoil(run);
  const Verdict verdict = judge(run, {});
  EXPECT_EQ(verdict.valid, GetParam().valid);
  EXPECT_EQ(verdict.exit_code, GetParam().exit_code);
  ASSERT_EQ(verdict.reasons.size(), GetParam().in_reasons.size());
  for (std::size_t i = 0; i < verdict.reasons.size(); ++i) {
    EXPECT_THAT(verdict.reasons[i].text, HasSubstr(GetParam().in_reasons[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, VerdictTable,
    testing::Values(
        Case{"good", [](RunCount&) {}, true, ExitCode::kOk, {}},
        Case{"some_failed",
             [](RunCount& run) { run.phases[1].failed = 3; },
             false,
             ExitCode::kOk,
             {"phase performance: 3 of 100 requests failed"}},
        Case{"all_failed",
             [](RunCount& run) { run.phases[1].failed = 100; },
             false,
             ExitCode::kExecution,
             {"phase performance: every request failed (100 of 100)"}},
        Case{"all_failed_and_some_missing",
             [](RunCount& run) {
               run.phases[1].completed = run.phases[1].failed = 90;
               run.phases[1].missing = 10;
             },
             false,
             ExitCode::kExecution,
             {"10 of 100 issued requests ended without a record",
              "every request failed (90 of 90)"}},
        Case{"warmup_all_failed",
             [](RunCount& run) { run.phases[0].failed = 5; },
             true,
             ExitCode::kOk,
             {}},
        Case{"missing",
             [](RunCount& run) {
               run.phases[1].completed = 97;
               run.phases[1].missing = 3;
               run.phases[1].missing_examples = {4, 9};
             },
             false,
             ExitCode::kExecution,
             {"phase performance: 3 of 100 issued requests ended without a record (seq 4, 9, …)"}},
        Case{"doubled",
             [](RunCount& run) { run.phases[1].doubled = 1; },
             false,
             ExitCode::kExecution,
             {"phase performance: 1 request was recorded twice"}},
        Case{"never_issued",
             [](RunCount& run) { run.phases[1].never_issued = 2; },
             false,
             ExitCode::kExecution,
             {"2 records came for requests that were never issued"}},
        Case{"agent_lost",
             [](RunCount& run) { run.agents[0].lost_after = Duration::millis(1500); },
             false,
             ExitCode::kExecution,
             {"agent box-7 was lost 1.500 s after the start"}},
        Case{"records_lost",
             [](RunCount& run) { run.agents[0].records_lost = 12; },
             false,
             ExitCode::kExecution,
             {"agent box-7 lost 12 records"}},
        Case{"watchdog",
             [](RunCount& run) {
               run.stopped_early = true;
               run.watchdogs = {"no reply for 300.0 s with 7 requests in flight"};
             },
             false,
             ExitCode::kExecution,
             {"no reply for 300.0 s"}},
        Case{"stopped_for_no_stated_cause",
             [](RunCount& run) { run.stopped_early = true; },
             false,
             ExitCode::kExecution,
             {"the run stopped before its end"}},
        Case{"nothing_issued",
             [](RunCount& run) { run.phases[1] = {.name = "performance"}; },
             false,
             ExitCode::kExecution,
             {"phase performance: no request was issued"}},
        Case{"interrupted",
             [](RunCount& run) { run.interrupted = run.stopped_early = true; },
             false,
             ExitCode::kInterrupted,
             {"interrupted"}},
        Case{"interrupted_before_anything",
             [](RunCount& run) {
               run.interrupted = run.stopped_early = true;
               run.phases[1] = {.name = "performance"};
             },
             false,
             ExitCode::kInterrupted,
             {"interrupted"}},
        Case{"interrupted_wins_over_lost_agent",
             [](RunCount& run) {
               run.interrupted = run.stopped_early = true;
               run.agents[0].lost_after = Duration::seconds(2);
             },
             false,
             ExitCode::kInterrupted,
             {"agent box-7 was lost", "interrupted"}}),
    [](const testing::TestParamInfo<Case>& it) { return std::string(it.param.name); });

TEST(Verdict, AFlawIsNotAFailure) {
  RunCount run = good_run();
  run.phases[1].failed = 3;
  EXPECT_EQ(judge(run, {}).reasons.at(0).weight, Weight::kFlaw);
  Rules lenient;
  lenient.failed_requests_invalidate = false;
  const Verdict verdict = judge(run, lenient);
  EXPECT_TRUE(verdict.valid);
  EXPECT_EQ(verdict.warnings.size(), 1U);
}

TEST(Verdict, NamesTheFrontendsThatFailedAndSinceWhen) {
  RunCount run = good_run();
  run.phases[1].failed = 4;
  FrontendCount dead{"http://a:1", 40, 4, Duration::millis(1500), Duration::millis(9000), {}};
  run.frontends.push_back(dead);
  dead.last_success = Duration::millis(1200);
  run.frontends.push_back(dead);
  dead.last_success = Duration::millis(4000);
  run.frontends.push_back(dead);
  dead.last_success = Duration::millis(9500);
  run.frontends.push_back(dead);
  run.frontends.push_back({"http://b:1", 6, 0, {}, {}, {}});
  const Verdict verdict = judge(run, {});
  EXPECT_EQ(verdict.exit_code, ExitCode::kOk);
  ASSERT_EQ(verdict.warnings.size(), 5U);
  const std::string same =
      "frontend http://a:1: 4 of 40 failed, the first at 1.500 s, the last at 9.000 s; ";
  EXPECT_EQ(verdict.warnings[0], same + "it never succeeded");
  EXPECT_EQ(verdict.warnings[1], same + "no success after 1.200 s");
  EXPECT_EQ(verdict.warnings[2], same + "its last success was at 4.000 s");
  EXPECT_EQ(verdict.warnings[3], same + "it answered again until 9.500 s");
  EXPECT_EQ(verdict.warnings[4],
            "frontend http://b:1: none of its 6 queries had ended when the run was stopped");
}

TEST(Verdict, SaysAReasonOnceHoweverOftenItCame) {
  RunCount run = good_run();
  run.watchdogs = {"the disk is full", "something else", "the disk is full"};
  const Verdict verdict = judge(run, {});
  ASSERT_EQ(verdict.reasons.size(), 2U);
  EXPECT_EQ(verdict.reasons[1].text, "something else");
}

TEST(Verdict, SaysWhichAgentHadNoCopyOnDisk) {
  RunCount run = good_run();
  run.agents[0].unspooled_batches = 1;
  const Verdict verdict = judge(run, {});
  EXPECT_TRUE(verdict.valid);
  ASSERT_EQ(verdict.warnings.size(), 1U);
  EXPECT_THAT(verdict.warnings[0],
              HasSubstr("agent box-7 had no room on its disk for 1 batch of records:"));
}

}  // namespace
}  // namespace tutti::verdict
