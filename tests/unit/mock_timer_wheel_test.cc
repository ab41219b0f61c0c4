#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/base/random.h"
#include "tests/mock_llm/timer_wheel.h"

namespace tutti::mock_llm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::int64_t kTick = 1 << 15;
constexpr std::int64_t kStart = 1'000'000'000'000;

std::vector<std::uint32_t> collect(TimerWheel& wheel, std::int64_t now) {
  std::vector<std::uint32_t> due;
  wheel.collect(now, due);
  return due;
}

TEST(MockTimerWheel, IsNeverEarlyAndAtMostOneTickLate) {
  TimerWheel wheel(kStart);
  wheel.arm(3, kStart + 1'000'000);
  EXPECT_THAT(collect(wheel, kStart + 999'999), IsEmpty());
  EXPECT_THAT(collect(wheel, kStart + 1'000'000 + kTick), ElementsAre(3));
  EXPECT_THAT(collect(wheel, kStart + 10'000'000), IsEmpty());
}

TEST(MockTimerWheel, APastDueTimeComesWithTheNextCollect) {
  TimerWheel wheel(kStart);
  wheel.arm(1, kStart - 5'000'000'000);
  EXPECT_LE(wheel.next_wake_ns(), kStart);
  EXPECT_THAT(collect(wheel, kStart), ElementsAre(1));
  EXPECT_EQ(wheel.next_wake_ns(), INT64_MAX);
}

TEST(MockTimerWheel, ATimerBeyondOneTurnOfTheWheelWaitsForItsTurn) {
  TimerWheel wheel(kStart);
  const std::int64_t turn = 65536 * kTick;
  wheel.arm(1, kStart + 3 * turn + 10 * kTick);
  wheel.arm(2, kStart + 10 * kTick);
  EXPECT_THAT(collect(wheel, kStart + 20 * kTick), ElementsAre(2));
  EXPECT_THAT(collect(wheel, kStart + 2 * turn), IsEmpty());
  EXPECT_THAT(collect(wheel, kStart + 3 * turn), IsEmpty());
  EXPECT_THAT(collect(wheel, kStart + 3 * turn + 12 * kTick), ElementsAre(1));
}

TEST(MockTimerWheel, DisarmAndRearmLeaveNoTraceOfTheOldTime) {
  TimerWheel wheel(kStart);
  wheel.arm(1, kStart + 5 * kTick);
  wheel.arm(2, kStart + 5 * kTick);
  wheel.arm(3, kStart + 5 * kTick);
  wheel.disarm(2);
  wheel.disarm(2);
  wheel.arm(3, kStart + 50 * kTick);
  EXPECT_FALSE(wheel.is_armed(2));
  EXPECT_THAT(collect(wheel, kStart + 10 * kTick), ElementsAre(1));
  EXPECT_THAT(collect(wheel, kStart + 60 * kTick), ElementsAre(3));
  EXPECT_EQ(wheel.armed_count(), 0U);
}

// Against a plain list of due times, over many random steps, jumps over whole turns included.
TEST(MockTimerWheel, AgreesWithAListOfDueTimes) {
  base::Mt19937 random(11);
  TimerWheel wheel(kStart);
  std::vector<std::int64_t> due_at(200, 0);
  std::int64_t now = kStart;
  std::size_t fired = 0;
  for (int step = 0; step < 20'000; ++step) {
    const auto id = static_cast<std::uint32_t>(random.below(due_at.size()));
    const std::uint64_t what = random.below(10);
    if (what < 6) {
      due_at[id] = now - 1'000'000 + static_cast<std::int64_t>(random.below(5'000'000'000));
      wheel.arm(id, due_at[id]);
    } else if (what == 6) {
      due_at[id] = 0;
      wheel.disarm(id);
    } else {
      now += static_cast<std::int64_t>(random.below(what == 9 ? 3'000'000'000 : 40'000'000));
      const std::vector<std::uint32_t> due = collect(wheel, now);
      for (const std::uint32_t i : due) {
        ASSERT_NE(due_at[i], 0) << "fired twice";
        ASSERT_LE(due_at[i], now) << "early";
        due_at[i] = 0;
        ++fired;
      }
      for (const std::int64_t at : due_at) {
        ASSERT_TRUE(at == 0 || at > now - 2 * kTick) << "late by " << now - at;
      }
      const std::int64_t wake = wheel.next_wake_ns();
      for (const std::int64_t at : due_at) {
        ASSERT_TRUE(at == 0 || wake <= at + kTick) << "sleeps through a timer";
      }
    }
  }
  EXPECT_GT(fired, 1000U);
}

}  // namespace
}  // namespace tutti::mock_llm
