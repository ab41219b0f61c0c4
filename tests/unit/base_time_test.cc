#include <gtest/gtest.h>

#include <ctime>

#include "common/base/time.h"

namespace tutti::base {
namespace {

TEST(Duration, UnitsAreNanosecondsInside) {
  EXPECT_EQ(Duration::nanos(7).ns, 7);
  EXPECT_EQ(Duration::micros(7).ns, 7'000);
  EXPECT_EQ(Duration::millis(7).ns, 7'000'000);
  EXPECT_EQ(Duration::seconds(7).ns, 7'000'000'000);
  EXPECT_EQ(Duration::from_seconds(1.5), Duration::millis(1500));
  EXPECT_DOUBLE_EQ(Duration::millis(250).to_seconds(), 0.25);
}

TEST(Duration, AddsSubtractsScalesAndOrders) {
  EXPECT_EQ(Duration::seconds(1) + Duration::millis(1), Duration::millis(1001));
  EXPECT_EQ(Duration::seconds(1) - Duration::seconds(3), Duration::seconds(-2));
  EXPECT_EQ(Duration::millis(3) * 4, Duration::millis(12));
  EXPECT_LT(Duration::seconds(-1), Duration{});
}

TEST(Instant, DifferencesAreDurationsAndZeroMeansNotThere) {
  const Instant start{1'000};
  EXPECT_EQ((start + Duration::nanos(5)) - start, Duration::nanos(5));
  EXPECT_EQ(start - Duration::nanos(1), Instant{999});
  EXPECT_TRUE(start.is_set());
  EXPECT_FALSE(Instant{}.is_set());
  EXPECT_LT(start, kFarFuture);
}

TEST(SystemClock, MonoIsTheKernelsMonotonicClockAndNeverGoesBack) {
  const SystemClock clock;
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_MONOTONIC, &before);
  Instant last = clock.mono();
  const Instant first = last;
  for (int i = 0; i < 1000; ++i) {
    const Instant now = clock.mono();
    ASSERT_GE(now, last);
    last = now;
  }
  clock_gettime(CLOCK_MONOTONIC, &after);
  const auto ns = [](const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; };
  EXPECT_GE(first.ns, ns(before));
  EXPECT_LE(last.ns, ns(after));
}

TEST(SystemClock, WallIsUnixTime) {
  const std::int64_t seconds = std::time(nullptr);
  const std::int64_t wall = SystemClock().wall_unix_ns() / 1'000'000'000;
  EXPECT_GE(wall, seconds - 1);
  EXPECT_LE(wall, seconds + 2);
}

}  // namespace
}  // namespace tutti::base
