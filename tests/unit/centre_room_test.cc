// The coordinator's own budget: what fits is said with the sum, what does not is refused by name
// before the run, and a phase that is capped in time is only warned of.

#include "coordinator/conduct/centre_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::conduct {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

RunPlan plan_of(base::Seq records, base::Duration cap = {}) {
  RunPlan plan;
  plan.agents_expected = 1000;
  plan.bodies.rows = 10;
  plan.bodies.bytes = 4'000;
  RunPhase phase;
  phase.schedule.pacing = base::Pacing::kClosedLoop;
  phase.schedule.total = records;
  phase.schedule.concurrency = 1'000'000;
  phase.issue_cap = cap;
  plan.phases.push_back(phase);
  return plan;
}

TEST(CentreRoom, SaysTheSumsOfWhatFits) {
  const CentreRoom room = centre_room(plan_of(10'000'000), {16 * kGiB, 100 * kGiB});
  EXPECT_EQ(room.records_max, 10'000'000U);
  EXPECT_EQ(room.memory_bytes, 10'000'000 * (kRecordHeldBytes + kRecordReportBytes) +
                                   1'000'000 * kCommandHeldBytes + 1000 * kCentreAgentBytes +
                                   kCentreFixedBytes);
  EXPECT_EQ(room.disk_bytes, 10'000'000 * (kRecordDiskBytes + 400));
  EXPECT_THAT(room.problems, IsEmpty());
  EXPECT_THAT(room.warnings, IsEmpty());
  EXPECT_THAT(room.budget, ElementsAre(HasSubstr("10000000 records × "),
                                       AllOf(HasSubstr("disk"), HasSubstr("400 of prompt"))));
}

TEST(CentreRoom, CountsOfAgentsTakeRoomWhereTheyMayCome) {
  const CentreHost host{16 * kGiB, 100 * kGiB};
  const std::uint64_t plain = centre_room(plan_of(10'000'000), host).memory_bytes;
  RunPlan counted = plan_of(10'000'000);
  counted.counting.terms.model_hash = "hash";
  EXPECT_EQ(centre_room(counted, host).memory_bytes, plain) << "the coordinator counts";
  counted.counting.where = CountingWhere::kAuto;
  EXPECT_EQ(centre_room(counted, host).memory_bytes, plain + 10'000'000 * kRecordCountBytes);
}

TEST(CentreRoom, RefusesWhatDoesNotFitByNameWithTheRemedy) {
  const CentreRoom room = centre_room(plan_of(100'000'000), {16 * kGiB, 50 * kGiB});
  EXPECT_THAT(room.problems,
              ElementsAre(AllOf(HasSubstr("memory for 100000000 records"),
                                HasSubstr("16.0 GiB are free"), HasSubstr("n_samples_to_issue")),
                          AllOf(HasSubstr("disk"), HasSubstr("another report_dir"))));
  EXPECT_THAT(room.budget, IsEmpty());
}

TEST(CentreRoom, OnlyWarnsWhereAPhaseMayEndEarlier) {
  const CentreRoom room =
      centre_room(plan_of(100'000'000, base::Duration::seconds(600)), {16 * kGiB, 0});
  EXPECT_THAT(room.problems, IsEmpty());
  EXPECT_THAT(room.warnings, ElementsAre(HasSubstr("capped in time")));
}

// `tutti calibrate` plans without an end and lets the cap end it.
TEST(CentreRoom, CountsNoMoreThanACapLetsThrough) {
  const auto cap = base::Duration::seconds(5);
  RunPlan plan = plan_of(UINT32_MAX - 1, cap);
  EXPECT_EQ(centre_room(plan, {}).records_max, 5'000'000U);
  plan.phases[0].schedule.pacing = base::Pacing::kTimed;
  plan.phases[0].schedule.target_qps = 1'000;
  EXPECT_EQ(centre_room(plan, {}).records_max, 5'500U);
  plan.phases[0].schedule.total = 40;
  EXPECT_EQ(centre_room(plan, {}).records_max, 40U);
}

TEST(CentreRoom, SaysNothingOfWhatIsNotKnown) {
  const CentreRoom room = centre_room(plan_of(4'000'000'000), {});
  EXPECT_THAT(room.problems, IsEmpty());
  EXPECT_THAT(room.budget, IsEmpty());
}

}  // namespace
}  // namespace tutti::conduct
