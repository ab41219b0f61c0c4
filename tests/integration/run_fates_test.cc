// Agents and coordinators that are killed, frozen, slowed, told to go, late, doubled or absent,
// with real processes over tcp. After each: the verdict names it, the exit code is right, no record
// that was made is missing, and 10 s later nothing is asked of the frontends any more. The row for
// row table is in docs/operating.md.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/stage.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

StageSettings stage_named(const std::string& name, std::vector<std::string> more = {}) {
  StageSettings settings;
  settings.name = "fates-" + name;
  settings.more = std::move(more);
  return settings;
}

void freeze(Program& program, int ms) {
  program.signal(SIGSTOP);
  poll(nullptr, 0, ms);
  program.signal(SIGCONT);
}

std::string reasons(const json& summary) { return summary["verdict"]["reasons"].dump(); }

// The silence after which the coordinator gave an agent up, as it tells it; 0: it tells of none.
double silence_told(const std::string& text) {
  std::smatch found;
  return std::regex_search(text, found, std::regex("nothing heard for ([0-9.]+) s"))
             ? std::stod(found[1])
             : 0;
}

// ---- agents ----------------------------------------------------------------------------------

TEST(Fates, AKilledAgentIsNamedWithinThreeSecondsAndItsSpoolHasWhatItRecorded) {
  Stage stage(stage_named("agent-killed"));
  ASSERT_TRUE(stage.runs(200));
  stage.agents[1]->signal(SIGKILL);
  const auto killed_at = SteadyClock::now();
  EXPECT_EQ(stage.coordinator->wait(15'000), 4) << stage.coordinator->output();
  EXPECT_EQ(stage.agents[0]->wait(5'000), 0) << stage.agents[0]->output();
  const json summary = stage.summary();
  EXPECT_EQ(summary["state"], "interrupted");
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(reasons(summary), ContainsRegex("agent agent-1 was lost [0-9.]+ s after"));
  EXPECT_GT(silence_told(stage.coordinator->output()), 2.0);
  EXPECT_LE(silence_told(stage.coordinator->output()), 3.0);
  EXPECT_THAT(read_text(stage.folder + "/report.txt"), HasSubstr("(LOST after"));
  EXPECT_GT(summary["n_samples_dropped"].get<int>(), 0) << "it had queries in flight";

  // What it wrote down is what it sent, and maybe a batch more; each batch is written first.
  const RebuiltRun spooled = rebuild({stage.spool(1)}, stage.base + "/spooled");
  ASSERT_EQ(spooled.ran.exit_code, 4) << spooled.ran.output;
  EXPECT_GE(spooled.summary["n_samples_completed"], stage.agent_in(summary, 1)["completed"]);
  EXPECT_GT(stage.agent_in(summary, 1)["completed"], 0);
  EXPECT_TRUE(stage.is_quiet_10_s_after(killed_at));
}

TEST(Fates, WithContinueTheOthersGoOnWithTheirOwnSlotsUntilTheLastIsLost) {
  Stage stage(stage_named("continue-killed", {"--on-agent-loss", "continue"}));
  ASSERT_TRUE(stage.runs(200));
  stage.agents[1]->signal(SIGKILL);
  ASSERT_TRUE(stage.coordinator->says("agent agent-1 was lost", 10'000));
  ASSERT_TRUE(stage.coordinator->says("goes on with 1 of 2 agents and 10 of 20 slots", 2'000))
      << stage.coordinator->output();
  const double finished = stage.mock.metric("tutti_mock_finished_total");
  ASSERT_TRUE(stage.runs(finished + 300)) << "the other one does go on";
  for (int i = 0; i < 50; ++i) {
    EXPECT_LE(stage.mock.metric("tutti_mock_active_requests"), 10) << "its slots grew";
  }
  stage.agents[0]->signal(SIGKILL);
  const auto killed_at = SteadyClock::now();
  EXPECT_EQ(stage.coordinator->wait(15'000), 4) << stage.coordinator->output();
  const json summary = stage.summary();
  EXPECT_EQ(summary["state"], "interrupted");
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(reasons(summary),
              AllOf(HasSubstr("agent agent-1 was lost"), HasSubstr("agent agent-0 was lost")));
  ASSERT_EQ(summary["went_on_without_lost_agents"].size(), 2U);
  EXPECT_TRUE(stage.is_quiet_10_s_after(killed_at));
}

// It wakes while the run goes on without it: what it was given is called missing by then, and must
// not be asked now.
TEST(Fates, WithContinueARunIsWholeButInvalidAndAThawedAgentStopsAtOnce) {
  StageSettings settings = stage_named("continue-frozen", {"--on-agent-loss", "continue"});
  settings.queries = 4000;
  Stage stage(settings);
  ASSERT_TRUE(stage.runs(200));
  stage.agents[1]->signal(SIGSTOP);
  ASSERT_TRUE(stage.coordinator->says("agent agent-1 was lost", 10'000));
  EXPECT_LE(silence_told(stage.coordinator->output()), 3.0);
  stage.agents[1]->signal(SIGCONT);
  const auto thawed_at = SteadyClock::now();
  EXPECT_EQ(stage.agents[1]->wait(9'000), 4) << stage.agents[1]->output();
  EXPECT_THAT(stage.agents[1]->output(), HasSubstr("this agent stood still for"));
  ASSERT_EQ(stage.coordinator->wait(60'000), 4) << stage.coordinator->output();
  EXPECT_EQ(stage.agents[0]->wait(5'000), 0) << stage.agents[0]->output();

  const json summary = stage.summary();
  EXPECT_EQ(summary["state"], "complete");
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_EQ(summary["n_samples_issued"], 4000);
  const int dropped = summary["n_samples_dropped"].get<int>();
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(summary["n_samples_completed"].get<int>() + dropped, 4000);
  ASSERT_EQ(summary["went_on_without_lost_agents"].size(), 1U);
  EXPECT_EQ(summary["went_on_without_lost_agents"][0]["name"], "agent-1");
  EXPECT_EQ(summary["went_on_without_lost_agents"][0]["slots"], 10);
  EXPECT_GT(summary["went_on_without_lost_agents"][0]["lost_at_s"], 0);
  EXPECT_THAT(read_text(stage.folder + "/report.txt"),
              AllOf(HasSubstr("WARNING: the run went on without agents that were lost"),
                    ContainsRegex("agent agent-1 was lost [0-9.]+ s after")));

  // Its workers wake a moment before its session does: a turn of its slots at most.
  const RebuiltRun spooled = rebuild({stage.spool(1)}, stage.base + "/spooled");
  ASSERT_EQ(spooled.ran.exit_code, 4) << spooled.ran.output;
  const int in_spool = spooled.summary["n_samples_completed"].get<int>();
  const int in_run = stage.agent_in(summary, 1)["completed"].get<int>();
  EXPECT_GE(in_spool, in_run);
  EXPECT_LE(in_spool, in_run + dropped) << "it asked what was another's";
  EXPECT_EQ(stage.agent_in(summary, 0)["completed"].get<int>() + in_spool,
            stage.mock.metric("tutti_mock_completions_total"));
  EXPECT_TRUE(stage.is_quiet_10_s_after(thawed_at));
}

TEST(Fates, AnAgentThatIsToldToGoShipsAllItHasAndIsNamed) {
  for (const int number : {SIGTERM, SIGINT}) {
    SCOPED_TRACE(number);
    Stage stage(stage_named(fmt::format("agent-signal-{}", number)));
    ASSERT_TRUE(stage.runs(200));
    stage.agents[1]->signal(number);
    const auto told_at = SteadyClock::now();
    EXPECT_EQ(stage.agents[1]->wait(9'000), 130) << stage.agents[1]->output();
    EXPECT_EQ(stage.coordinator->wait(15'000), 4) << stage.coordinator->output();
    EXPECT_EQ(stage.agents[0]->wait(5'000), 0) << stage.agents[0]->output();
    const json summary = stage.summary();
    EXPECT_EQ(summary["verdict"]["valid"], false);
    EXPECT_THAT(reasons(summary), HasSubstr("it left: SIG"));
    EXPECT_EQ(summary["n_samples_dropped"], 0) << "what it cut short has a record too";
    EXPECT_EQ(summary["n_samples_completed"], summary["n_samples_issued"]);
    EXPECT_TRUE(stage.is_quiet_10_s_after(told_at));
  }
}

TEST(Fates, LateAndDoubledAgentsAreRefusedByNameAndTheRunGoesOn) {
  StageSettings settings = stage_named("late");
  settings.queries = 2000;
  Stage stage(settings);
  ASSERT_TRUE(stage.runs(200));
  const auto late = stage.start_agent("agent-9", stage.base + "/spool-late");
  const auto twin = stage.start_agent("agent-0", stage.base + "/spool-twin");
  EXPECT_EQ(late->wait(9'000), 3) << late->output();
  EXPECT_THAT(late->output(), HasSubstr("the run has begun"));
  EXPECT_EQ(twin->wait(9'000), 3) << twin->output();
  EXPECT_EQ(stage.coordinator->wait(60'000), 0) << stage.coordinator->output();
  EXPECT_THAT(stage.coordinator->output(), HasSubstr("agent agent-9 was refused"));
  const json summary = stage.summary();
  EXPECT_EQ(summary["verdict"]["valid"], true);
  EXPECT_EQ(summary["n_samples_completed"], 2000);
  EXPECT_EQ(summary["distributed"]["agents"].size(), 2U);
}

TEST(Fates, ATakenNameIsRefusedWhileAgentsGatherAndOneTooFewCallsTheRunOff) {
  StageSettings settings = stage_named("few", {"--service-ready-timeout", "4"});
  settings.absent = 1;
  Stage stage(settings);
  ASSERT_TRUE(stage.coordinator->says("agent agent-0 joined", 10'000));
  const auto twin = stage.start_agent("agent-0", stage.base + "/spool-twin");
  EXPECT_EQ(twin->wait(9'000), 3) << twin->output();
  EXPECT_THAT(twin->output(), HasSubstr("an agent named \"agent-0\" has joined already"));
  EXPECT_EQ(stage.coordinator->wait(15'000), 3) << stage.coordinator->output();
  EXPECT_THAT(stage.coordinator->output(), HasSubstr("1 of 2 agents joined within 4 s"));
  EXPECT_NE(stage.agents[0]->wait(9'000), 0);
  EXPECT_THAT(stage.agents[0]->output(), HasSubstr("the run was called off"));
  EXPECT_EQ(stage.mock.metric("tutti_mock_completions_total"), 0);
}

// ---- the coordinator -------------------------------------------------------------------------

TEST(Fates, OrphansOfAKilledCoordinatorCancelTheirLongStreams) {
  StageSettings settings = stage_named("orphans");
  settings.mock = {"--ttft", "60s"};
  Stage stage(settings);
  ASSERT_TRUE(stage.serves(20));
  stage.coordinator->signal(SIGKILL);
  const auto killed_at = SteadyClock::now();
  EXPECT_TRUE(stage.is_quiet_10_s_after(killed_at));
  for (const auto& agent : stage.agents) {
    EXPECT_EQ(agent->wait(5'000), 4) << agent->output();
  }
  const RebuiltRun all = rebuild(stage.spools(), stage.folder);
  ASSERT_EQ(all.ran.exit_code, 4) << all.ran.output;
  EXPECT_EQ(all.summary["n_samples_completed"], 20);
  EXPECT_EQ(all.summary["n_samples_failed"], 20) << "cut short, and recorded so";
}

TEST(Fates, LocalAgentsOfAKilledCoordinatorGoWithIt) {
  const Mock mock(1, {"--ttft", "60s"});
  const std::string base = fresh_folder("fates-local");
  Program tutti(words_of(
      {write_prompts(base, 100), base + "/run", mock.urls(), 20, 1000, {"--local-agents", "2"}}));
  for (int i = 0; i < 1000 && mock.metric("tutti_mock_active_requests") < 20; ++i) {
    poll(nullptr, 0, 20);
  }
  const auto agents = agents_of(tutti.pid());
  ASSERT_EQ(agents.size(), 2U);
  tutti.signal(SIGKILL);
  const auto killed_at = SteadyClock::now();
  EXPECT_EQ(tutti.wait(5'000), 128 + SIGKILL);
  while (mock.metric("tutti_mock_active_requests") > 0 && seconds_since(killed_at) < 10) {
    poll(nullptr, 0, 50);
  }
  EXPECT_EQ(mock.metric("tutti_mock_active_requests"), 0);
  sleep_until(killed_at, 10);
  EXPECT_EQ(mock.metric("tutti_mock_completions_total"), 20);
  for (const pid_t agent : agents) {
    EXPECT_NE(kill(agent, 0), 0) << "agent " << agent << " is still there";
  }
}

TEST(Fates, ACoordinatorThatStoodStillForAMomentLosesNothing) {
  StageSettings settings = stage_named("short-freeze");
  settings.queries = 3000;
  Stage stage(settings);
  ASSERT_TRUE(stage.runs(200));
  freeze(*stage.coordinator, 1200);
  EXPECT_EQ(stage.coordinator->wait(60'000), 0) << stage.coordinator->output();
  const json summary = stage.summary();
  EXPECT_EQ(summary["verdict"]["valid"], true) << reasons(summary);
  EXPECT_EQ(summary["n_samples_completed"], 3000);
  for (const auto& agent : stage.agents) {
    EXPECT_EQ(agent->wait(5'000), 0) << agent->output();
  }
}

// Its agents have left when it wakes. Whatever reached it is in its report; all of it is in theirs.
TEST(Fates, ACoordinatorThatStoodStillTooLongNamesItsAgentsAndTheSpoolsHaveAll) {
  Stage stage(stage_named("long-freeze"));
  ASSERT_TRUE(stage.runs(200));
  stage.coordinator->signal(SIGSTOP);
  const auto frozen_at = SteadyClock::now();
  for (const auto& agent : stage.agents) {
    EXPECT_EQ(agent->wait(9'000), 4) << agent->output();
    EXPECT_THAT(agent->output(), HasSubstr("lost the coordinator"));
  }
  EXPECT_TRUE(stage.is_quiet_10_s_after(frozen_at));
  stage.coordinator->signal(SIGCONT);
  EXPECT_EQ(stage.coordinator->wait(15'000), 4) << stage.coordinator->output();
  const json summary = stage.summary();
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(reasons(summary),
              AllOf(HasSubstr("agent agent-0 was lost"), HasSubstr("agent agent-1 was lost")));
  const RebuiltRun all = rebuild(stage.spools(), stage.base + "/rebuilt");
  ASSERT_EQ(all.ran.exit_code, 4) << all.ran.output;
  EXPECT_EQ(all.summary["n_samples_completed"], stage.mock.metric("tutti_mock_finished_total"));
  EXPECT_GE(all.summary["n_samples_completed"], summary["n_samples_completed"]);
}

// Awake for a tenth of the time: records wait at the agents, leases come late, and nobody takes it
// for dead.
TEST(Fates, ASlowCoordinatorSlowsTheRunAndLosesNothing) {
  StageSettings settings = stage_named("slow");
  settings.queries = 4000;
  Stage stage(settings);
  ASSERT_TRUE(stage.runs(200));
  const auto slow_from = SteadyClock::now();
  while (seconds_since(slow_from) < 6) {
    freeze(*stage.coordinator, 450);
    poll(nullptr, 0, 50);
  }
  EXPECT_EQ(stage.coordinator->wait(60'000), 0) << stage.coordinator->output();
  const json summary = stage.summary();
  EXPECT_EQ(summary["verdict"]["valid"], true) << reasons(summary);
  EXPECT_EQ(summary["n_samples_completed"], 4000);
  EXPECT_EQ(summary["n_samples_failed"], 0);
  EXPECT_EQ(summary["n_samples_dropped"], 0);
  EXPECT_EQ(stage.mock.metric("tutti_mock_completions_total"), 4000) << "asked once each";
  for (const auto& agent : stage.agents) {
    EXPECT_EQ(agent->wait(5'000), 0) << agent->output();
  }
}

}  // namespace
}  // namespace tutti::testing_support
