#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "agent/drive/dealer.h"

namespace tutti::drive {
namespace {

using testing::ElementsAre;

std::vector<int> deal_many(Dealer& dealer, int count) {
  std::vector<int> dealt;
  for (int i = 0; i < count; ++i) {
    dealt.push_back(dealer.deal());
  }
  return dealt;
}

TEST(Share, PartsSumToTheTotalAndDifferByAtMostOne) {
  for (std::uint32_t total = 0; total < 50; ++total) {
    for (std::size_t workers = 1; workers < 9; ++workers) {
      std::uint32_t sum = 0;
      for (std::size_t i = 0; i < workers; ++i) {
        const std::uint32_t part = share_of(total, workers, i);
        EXPECT_LE(part - total / static_cast<std::uint32_t>(workers), 1U);
        sum += part;
      }
      EXPECT_EQ(sum, total);
    }
  }
}

TEST(Dealer, RotatesInTimedAndBurstPhasesOverWorkersThatHaveSlots) {
  Dealer dealer(3, 100);
  dealer.arm(base::Pacing::kTimed, 2);  // the third worker has none
  EXPECT_THAT(deal_many(dealer, 5), ElementsAre(0, 1, 0, 1, 0));
}

TEST(Dealer, AClosedLoopFavoursTheWorkerWithMostFreeSlots) {
  Dealer dealer(2, 100);
  dealer.arm(base::Pacing::kClosedLoop, 6);
  EXPECT_THAT(deal_many(dealer, 6), ElementsAre(0, 1, 0, 1, 0, 1));
  dealer.update(1, 3, 3);  // worker 1 has finished all of its three
  EXPECT_THAT(deal_many(dealer, 3), ElementsAre(1, 1, 1));
}

TEST(Dealer, RefusesWhatDoesNotFitAndCountsRoom) {
  Dealer dealer(2, 2);
  EXPECT_EQ(dealer.room(), 0U);  // not armed
  dealer.arm(base::Pacing::kBurst, 2);
  EXPECT_EQ(dealer.room(), 4U);
  EXPECT_THAT(deal_many(dealer, 5), ElementsAre(0, 1, 0, 1, -1));
  EXPECT_EQ(dealer.queued(0), 2U);
  dealer.update(0, 1, 0);
  EXPECT_EQ(dealer.room(), 1U);
  EXPECT_THAT(deal_many(dealer, 2), ElementsAre(0, -1));
}

}  // namespace
}  // namespace tutti::drive
