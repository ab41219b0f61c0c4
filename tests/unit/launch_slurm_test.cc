// What the launcher starts: every place said in full, one agent beside the coordinator, the others
// told where it is; and one clear refusal for what cannot be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/launch/slurm_plan.h"

namespace tutti::launch {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

const Programs kPrograms{"/opt/tutti", "/opt/tutti-agent"};

LaunchOptions options() {
  LaunchOptions out;
  out.insecure = true;
  out.benchmark = {"benchmark", "from-config", "-c", "run file.yaml"};
  return out;
}

Launch planned(const LaunchOptions& options,
               std::map<std::string, std::string> values = {{"SLURM_JOB_NODELIST", "n[1-3]"}}) {
  auto launch = plan_launch(options, environment(std::move(values)), kPrograms, "/shared/tutti-1");
  EXPECT_TRUE(launch.has_value()) << (launch ? "" : launch.error().message);
  return launch.value_or(Launch{});
}

std::string refused(const LaunchOptions& options, std::map<std::string, std::string> values = {
                                                      {"SLURM_JOB_NODELIST", "n[1-3]"}}) {
  const auto launch = plan_launch(options, environment(std::move(values)), kPrograms, "");
  EXPECT_FALSE(launch.has_value());
  return launch ? "" : launch.error().message;
}

// The word after `flag`.
std::string after(const Words& words, const std::string& flag) {
  const auto at = std::find(words.begin(), words.end(), flag);
  return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
}

TEST(LaunchSlurm, CoordinatorOnTheFirstHostAgentsOnAll) {
  const Launch launch = planned(options());
  EXPECT_EQ(launch.coordinator_host, "n1");
  EXPECT_THAT(launch.agent_hosts, ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(
      launch.coordinator_line,
      ElementsAre("srun", "--overlap", "-N", "1", "-n", "1", "--ntasks-per-node=1", "--nodelist",
                  "n1", "--cpu-bind=none", "--input=none", "--job-name=tutti-coordinator",
                  "/opt/tutti", "benchmark", "from-config", "-c", "run file.yaml", "--local-agents",
                  "1", "--listen", "tcp://0.0.0.0:5870", "--expect-agents", "3", "--gather-timeout",
                  "300", "--insecure-agents"));
  EXPECT_THAT(launch.agents_line,
              ElementsAre("srun", "--overlap", "-N", "2", "-n", "2", "--ntasks-per-node=1",
                          "--nodelist", "n2,n3", "--cpu-bind=none", "--input=none",
                          "--job-name=tutti-agents", "--label", "/opt/tutti-agent", "--wait", "300",
                          "--term-grace", "25", "--insecure", "--connect", "tcp://n1:5870"));
}

TEST(LaunchSlurm, AgentsOnAGivenListLeaveTheCoordinatorAlone) {
  LaunchOptions wanted = options();
  wanted.agents_on = "n[2-3]";
  wanted.port = 6000;
  wanted.workers = 4;
  const Launch launch = planned(wanted);
  EXPECT_EQ(after(launch.coordinator_line, "--local-agents"), "0");
  EXPECT_EQ(after(launch.coordinator_line, "--expect-agents"), "2");
  EXPECT_EQ(after(launch.coordinator_line, "--listen"), "tcp://0.0.0.0:6000");
  EXPECT_EQ(after(launch.coordinator_line, "--agent-workers"), "4");
  EXPECT_EQ(after(launch.agents_line, "--nodelist"), "n2,n3");
  EXPECT_EQ(after(launch.agents_line, "--connect"), "tcp://n1:6000");
  EXPECT_EQ(after(launch.agents_line, "--workers"), "4");
}

TEST(LaunchSlurm, ASharedFolderMeansAnyPortAndAFile) {
  LaunchOptions wanted = options();
  wanted.shared = "/shared";
  wanted.coordinator = "n3";
  const Launch launch = planned(wanted);
  EXPECT_EQ(launch.coordinator_host, "n3");
  EXPECT_EQ(after(launch.coordinator_line, "--listen"), "tcp://0.0.0.0:*");
  EXPECT_EQ(after(launch.coordinator_line, "--rendezvous"), "/shared/tutti-1/coordinator");
  EXPECT_EQ(after(launch.agents_line, "--rendezvous"), "/shared/tutti-1/coordinator");
  EXPECT_EQ(after(launch.agents_line, "--nodelist"), "n1,n2");
  EXPECT_THAT(launch.agents_line, Not(Contains("--connect")));
}

TEST(LaunchSlurm, WithKeysBothSidesNameTheirOwnAndTheOther) {
  LaunchOptions wanted = options();
  wanted.keys = "/shared/keys";
  wanted.insecure = false;
  const Launch launch = planned(wanted);
  EXPECT_EQ(after(launch.coordinator_line, "--keys"), "/shared/keys/coordinator.key");
  EXPECT_EQ(after(launch.coordinator_line, "--agent-keys"), "/shared/keys/agent.key.pub");
  EXPECT_EQ(after(launch.agents_line, "--keys"), "/shared/keys/agent.key");
  EXPECT_EQ(after(launch.agents_line, "--coordinator-key"), "/shared/keys/coordinator.key.pub");
  EXPECT_THAT(launch.coordinator_line, Not(Contains("--insecure-agents")));
  EXPECT_THAT(launch.agents_line, Not(Contains("--insecure")));
}

TEST(LaunchSlurm, OneHostNeedsNoListeningAndNoLeave) {
  LaunchOptions wanted = options();
  wanted.insecure = false;
  const Launch launch = planned(wanted, {{"SLURM_JOB_NODELIST", "n7"}});
  EXPECT_THAT(launch.agents_line, IsEmpty());
  EXPECT_EQ(after(launch.coordinator_line, "--local-agents"), "1");
  EXPECT_THAT(launch.coordinator_line, Not(Contains("--listen")));
}

TEST(LaunchSlurm, FromALoginNodeTheJobAndItsHostsAreNamedAndExtraWordsComeLast) {
  LaunchOptions wanted = options();
  wanted.job = "77";
  wanted.hosts = "a[1-2],a1";
  wanted.srun_words = {"--mem=0"};
  wanted.srun = "/usr/bin/srun";
  const Launch launch = planned(wanted, {});
  EXPECT_EQ(launch.coordinator_line[0], "/usr/bin/srun");
  EXPECT_EQ(after(launch.coordinator_line, "--jobid"), "77");
  EXPECT_EQ(after(launch.agents_line, "--job-name=tutti-agents"), "--mem=0");
  EXPECT_THAT(launch.agent_hosts, ElementsAre("a1", "a2"));
}

TEST(LaunchSlurm, AnApiKeyDoesNotGoIntoTheProcessListsOfAllHosts) {
  for (const char* word : {"--api-key", "--api-key=sk-1234", "--endpoint-config.api-key=sk-1234"}) {
    LaunchOptions with = options();
    with.benchmark.insert(with.benchmark.end(), {word, "sk-1234"});
    EXPECT_THAT(refused(with), AllOf(HasSubstr("process lists"), HasSubstr("${API_KEY}"),
                                     Not(HasSubstr("sk-1234"))));
  }
}

TEST(LaunchSlurm, RefusalsNameTheRemedy) {
  LaunchOptions wanted = options();
  EXPECT_THAT(refused(wanted, {}), AllOf(HasSubstr("SLURM_JOB_NODELIST"), HasSubstr("--jobid")));
  EXPECT_THAT(refused(wanted, {{"SLURM_JOB_NODELIST", "n[1-"}}), HasSubstr("does not close"));
  wanted.job = "5";
  EXPECT_THAT(refused(wanted), HasSubstr("squeue -h -j 5 -o %N"));
  wanted = options();
  wanted.insecure = false;
  EXPECT_THAT(refused(wanted), HasSubstr("--insecure"));
  wanted = options();
  wanted.agents_on = "n[3-4]";
  EXPECT_THAT(refused(wanted), AllOf(HasSubstr("n4"), HasSubstr("n1,n2,n3")));
  wanted = options();
  wanted.coordinator = "m1";
  EXPECT_THAT(refused(wanted), AllOf(HasSubstr("--coordinator"), HasSubstr("m1")));
  wanted = options();
  wanted.benchmark = {"probe"};
  EXPECT_THAT(refused(wanted), HasSubstr("-- benchmark from-config"));
  for (const std::string word : {"--listen", "--expect-agents=3", "--local-agents", "--agents=x"}) {
    wanted = options();
    wanted.benchmark.push_back(word);
    EXPECT_THAT(refused(wanted), HasSubstr(word));
  }
}

TEST(LaunchSlurm, TheCoordinatorWaitsAsLongAsTheAgentsUnlessToldOtherwise) {
  LaunchOptions wanted = options();
  wanted.wait_s = 90;
  EXPECT_EQ(after(planned(wanted).coordinator_line, "--gather-timeout"), "90");
  for (const char* own : {"--gather-timeout=20", "--distributed.gather-timeout-s"}) {
    wanted = options();
    wanted.benchmark.emplace_back(own);
    EXPECT_THAT(planned(wanted).coordinator_line, Not(Contains("--gather-timeout"))) << own;
  }
}

TEST(LaunchSlurm, ATaskIsTheCoordinatorOnRankZeroAndAnAgentElsewhere) {
  const std::map<std::string, std::string> step = {
      {"SLURM_NTASKS", "3"}, {"SLURM_STEP_NODELIST", "n[2-4]"}, {"SLURM_JOB_NODELIST", "n[1-9]"}};
  auto first = step;
  first["SLURM_PROCID"] = "0";
  const auto coordinator = plan_task(options(), environment(first), kPrograms);
  ASSERT_TRUE(coordinator.has_value());
  EXPECT_THAT(*coordinator,
              ElementsAre("/opt/tutti", "benchmark", "from-config", "-c", "run file.yaml",
                          "--local-agents", "1", "--listen", "tcp://0.0.0.0:5870",
                          "--expect-agents", "3", "--gather-timeout", "300", "--insecure-agents"));
  auto third = step;
  third["SLURM_PROCID"] = "2";
  const auto agent = plan_task(options(), environment(third), kPrograms);
  ASSERT_TRUE(agent.has_value());
  EXPECT_THAT(*agent, ElementsAre("/opt/tutti-agent", "--wait", "300", "--term-grace", "25",
                                  "--insecure", "--connect", "tcp://n2:5870"));
}

TEST(LaunchSlurm, ATaskAloneRunsAloneAndOutsideAStepThereIsNone) {
  LaunchOptions wanted = options();
  wanted.insecure = false;
  const auto alone = plan_task(
      wanted,
      environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_NODELIST", "n4"}}),
      kPrograms);
  ASSERT_TRUE(alone.has_value());
  EXPECT_THAT(*alone, Not(Contains("--listen")));
  // A batch script has a rank, but no step.
  const auto batch =
      plan_task(wanted, environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}}), kPrograms);
  ASSERT_FALSE(batch.has_value());
  EXPECT_THAT(batch.error().message, HasSubstr("SLURM_STEP_NODELIST"));
}

}  // namespace
}  // namespace tutti::launch
