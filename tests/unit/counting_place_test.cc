// Where tokens are counted: by what was asked for, and by the cores of the agents' hosts.

#include "coordinator/conduct/counting_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace tutti::conduct {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

CountingPlan plan_of(CountingWhere where) {
  return {where, {"hash", 10, base::Duration::seconds(1)}};
}

class Crowd {
 public:
  void add(const std::string& host, std::uint32_t cores, std::uint32_t workers, bool counts = true,
           std::uint64_t memory = 0) {
    roster::Agent& agent = agents_.emplace_back();
    agent.hello.agent_name = "a" + std::to_string(agents_.size());
    agent.hello.host = host;
    agent.hello.cores = cores;
    agent.hello.workers = workers;
    agent.hello.counts_tokens = counts;
    agent.hello.memory_bytes = memory;
  }
  CountingPlace choose(const CountingPlan& plan) const {
    std::vector<const roster::Agent*> all;
    for (const roster::Agent& agent : agents_) {
      all.push_back(&agent);
    }
    return choose_counting(plan, all);
  }

 private:
  std::deque<roster::Agent> agents_;
};

TEST(CountingPlace, NobodyCountsOnAgentsWithoutATokenizerOrWhenTheCoordinatorIsToDoIt) {
  Crowd crowd;
  crowd.add("h", 64, 1);
  EXPECT_FALSE(crowd.choose({CountingWhere::kAuto, {}}).agents);
  const CountingPlace place = crowd.choose(plan_of(CountingWhere::kCoordinator));
  EXPECT_FALSE(place.agents);
  EXPECT_THAT(place.notice, IsEmpty());
}

TEST(CountingPlace, AutoTakesAgentsWhoseHostsHaveACoreForEachThreadOfAllOfThem) {
  Crowd roomy;
  roomy.add("h", 8, 2);
  roomy.add("h", 8, 2);
  roomy.add("other", 3, 1);
  const CountingPlace place = roomy.choose(plan_of(CountingWhere::kAuto));
  EXPECT_TRUE(place.agents);
  EXPECT_THAT(place.notice, HasSubstr("by the agents, with model hash"));
  roomy.add("other", 3, 1);
  const CountingPlace crowded = roomy.choose(plan_of(CountingWhere::kAuto));
  EXPECT_FALSE(crowded.agents);
  EXPECT_THAT(crowded.problem, IsEmpty());
  EXPECT_THAT(crowded.notice, AllOf(HasSubstr("host other has 3 cores"), HasSubstr("take 6")));
  EXPECT_TRUE(roomy.choose(plan_of(CountingWhere::kAgents)).agents) << "when told to, all the same";
}

// 10 MiB of files are 160 MiB of memory in each agent.
TEST(CountingPlace, AutoLeavesHostsAloneWhoseMemoryTheTokenizersWouldHalve) {
  CountingPlan plan = plan_of(CountingWhere::kAuto);
  plan.terms.model_bytes = std::uint64_t{10} << 20;
  Crowd crowd;
  crowd.add("h", 8, 1, true, std::uint64_t{640} << 20);
  crowd.add("h", 8, 1, true, std::uint64_t{640} << 20);
  crowd.add("unknown", 8, 1);
  EXPECT_TRUE(crowd.choose(plan).agents);
  Crowd tight;
  tight.add("h", 8, 1, true, std::uint64_t{639} << 20);
  tight.add("h", 8, 1, true, std::uint64_t{639} << 20);
  const CountingPlace place = tight.choose(plan);
  EXPECT_FALSE(place.agents);
  EXPECT_THAT(place.notice, AllOf(HasSubstr("host h has 639 MiB"), HasSubstr("take 320 MiB")));
  plan.where = CountingWhere::kAgents;
  EXPECT_TRUE(tight.choose(plan).agents) << "when told to, all the same";
}

TEST(CountingPlace, AnAgentThatCannotIsNamedAndRefusedOnlyWhereItWasToCount) {
  Crowd crowd;
  crowd.add("h", 64, 1);
  crowd.add("h", 64, 1, false);
  const CountingPlace place = crowd.choose(plan_of(CountingWhere::kAuto));
  EXPECT_FALSE(place.agents);
  EXPECT_THAT(place.problem, IsEmpty());
  EXPECT_THAT(place.notice, HasSubstr("unable to count tokens: a2"));
  const CountingPlace asked = crowd.choose(plan_of(CountingWhere::kAgents));
  EXPECT_FALSE(asked.agents);
  EXPECT_THAT(asked.problem, AllOf(HasSubstr("a2"), HasSubstr("build tutti-agent there with cargo"),
                                   HasSubstr("distributed.token_counting")));
}

}  // namespace
}  // namespace tutti::conduct
