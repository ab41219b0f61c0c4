// The judge of the simulated world finds what it is there for: a world with one planted bug breaks
// a promise, in the words of the one that the bug is about, and without it breaks none.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/simulate.h"

namespace tutti::sim {
namespace {

// What else must happen in the world for the bug to matter.
enum class Setting : std::uint8_t {
  kLoop,
  kTalks,
  kStop,
  kCrash,
  kCutAndBusy,
  kCutAndSlow,
  kDeadCentre,
  kFullDisk
};

struct Case {
  const char* name;
  Planted bug;
  Setting setting;
  const char* complaint;  // a part of it
};

Scenario talks(std::uint64_t seed) {
  auto conversations = std::make_shared<plan::Conversations>();
  base::SampleIndex sample = 0;
  for (std::uint32_t i = 0; i < 40; ++i) {
    plan::Conversation talk{"c" + std::to_string(i), {}};
    for (std::uint32_t turn = 0; turn < 5; ++turn) {
      talk.turns.push_back({sample++, Duration::millis(80), 2 * turn + 1});
    }
    conversations->push_back(std::move(talk));
  }
  Scenario scenario;
  scenario.seed = seed;
  scenario.agents = 3;
  scenario.plan = plain_plan(3, 11, 1);
  plan::PhaseSpec& spec = scenario.plan.phases[0].schedule;
  plan::TrajectorySpec wanted;
  wanted.delayed = true;
  spec.trajectories = plan::Trajectories::make(conversations, wanted).value();
  spec.total = spec.trajectories->queries();
  spec.dataset_rows = sample;
  return scenario;
}

Scenario world_of(Setting setting, std::uint64_t seed) {
  if (setting == Setting::kTalks) {
    return talks(seed);
  }
  Scenario scenario;
  scenario.seed = seed;
  scenario.agents = 3;
  scenario.plan = plain_plan(3, 24, 900);
  scenario.plan.prefetch = 20;
  scenario.plan.clock_error_max = Duration::seconds(1);
  scenario.plan.counting.where = conduct::CountingWhere::kAgents;
  scenario.plan.counting.terms = {"model", 10, Duration::seconds(2)};
  scenario.engine.service_mean = Duration::millis(150);
  const Instant at{3'000'000'000 + static_cast<std::int64_t>(seed) * 10'000'000};
  switch (setting) {
    case Setting::kStop:
      scenario.faults = {{FaultKind::kStop, at}};
      break;
    case Setting::kCrash:
      scenario.faults = {{FaultKind::kAgentCrash, at, 1}};
      break;
    case Setting::kCutAndBusy:  // its queue lasts
      scenario.engine.service_mean = Duration::seconds(3);
      scenario.faults = {{FaultKind::kPartition, at, 1, Duration::seconds(30)}};
      break;
    case Setting::kCutAndSlow:  // what is in flight lasts
      scenario.engine.service_mean = Duration::seconds(40);
      scenario.faults = {{FaultKind::kPartition, at, 1, Duration::seconds(30)}};
      break;
    case Setting::kDeadCentre:
      scenario.faults = {{FaultKind::kCoordinatorCrash, at}};
      break;
    case Setting::kFullDisk:
      scenario.faults = {{FaultKind::kDiskFull, at}};
      break;
    default:
      break;
  }
  return scenario;
}

const Case kCases[] = {
    {"StartsTwice", Planted::kStartsTwice, Setting::kLoop, "was started twice"},
    {"OneSlotMore", Planted::kOneSlotMore, Setting::kLoop, "its slots are"},
    {"OtherRow", Planted::kOtherRow, Setting::kLoop, "with another row, salt or due time"},
    {"RecordVanishes", Planted::kRecordVanishes, Setting::kLoop, "the run did not end"},
    {"RecordVanishesUnheard", Planted::kRecordVanishes, Setting::kDeadCentre,
     "is in no spool and not in the ledger"},
    {"RecordTwice", Planted::kRecordTwice, Setting::kLoop, "has two records"},
    {"RecallIgnored", Planted::kRecallIgnored, Setting::kStop, "lies beyond the prefix"},
    {"GoesOnAlone", Planted::kGoesOnAlone, Setting::kCutAndBusy, "and started a query at"},
    {"AbortIgnored", Planted::kAbortIgnored, Setting::kCutAndSlow, "had a query in flight at"},
    {"NoDelay", Planted::kNoDelay, Setting::kTalks, "did not wait for the delay"},
    {"NoSpool", Planted::kNoSpool, Setting::kDeadCentre, "is in no spool and not in the ledger"},
    {"CountVanishes", Planted::kCountVanishes, Setting::kLoop, "the count of seq"},
    {"ClockLies", Planted::kClockLies, Setting::kLoop, "its clock is off by"},
    {"LedgerForgets", Planted::kLedgerForgets, Setting::kLoop, "records, the ledger has"},
    {"LossUnseen", Planted::kLossUnseen, Setting::kCrash, "fell silent at"},
    {"LossUntold", Planted::kLossUntold, Setting::kCrash, "was lost, and nobody says so"},
    {"AllIsWell", Planted::kAllIsWell, Setting::kCrash, "but the run is valid or ended with 0"},
    {"AllIsWellAfterAStop", Planted::kAllIsWell, Setting::kStop, "did not issue all of phase"},
    {"RefusalUntold", Planted::kRefusalUntold, Setting::kFullDisk, "does not say it"},
    {"SlotsMove", Planted::kSlotsMove, Setting::kLoop, "its share is"},
};

class PlantedBug : public testing::TestWithParam<Case> {};

TEST_P(PlantedBug, IsFoundAndTheSameWorldWithoutItIsWhole) {
  const Case& one = GetParam();
  int named = 0;
  std::string said;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Scenario scenario = world_of(one.setting, seed);
    const Report whole = simulate(scenario);
    EXPECT_TRUE(whole.complaints.empty()) << explain(whole);
    scenario.planted = one.bug;
    const Report broken = simulate(scenario);
    EXPECT_FALSE(broken.complaints.empty()) << "seed " << seed;
    for (const std::string& complaint : broken.complaints) {
      named += complaint.find(one.complaint) != std::string::npos ? 1 : 0;
      said += complaint + "\n";
    }
  }
  EXPECT_GT(named, 0) << "nobody says \"" << one.complaint << "\"\n" << said;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace tutti::sim
