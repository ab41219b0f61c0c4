// Kernel stamps on the monotonic clock, and what a step of wall time does to them: nothing.

#include "agent/target/stamp_map.h"

#include <gtest/gtest.h>

namespace tutti::target {
namespace {

using base::Duration;
using base::Instant;

constexpr std::int64_t kWall = 1'700'000'000'000'000'000;  // wall time at the monotonic instant 0

Instant at_us(std::int64_t us) { return Instant{us * 1000}; }
std::int64_t wall_at(Instant mono, Duration step = {}) { return kWall + mono.ns + step.ns; }

void learn(StampMap& map, Instant now, Duration step = {}) {
  map.learn(now - Duration::nanos(50), wall_at(now, step), now + Duration::nanos(50));
}

TEST(StampMap, AStampIsTheInstantItWasMadeAt) {
  StampMap map;
  EXPECT_FALSE(map.map(wall_at(at_us(900)), at_us(1000)).is_set());  // nothing known yet
  EXPECT_FALSE(map.agrees(at_us(1000), wall_at(at_us(1000))));
  learn(map, at_us(1000));
  EXPECT_TRUE(map.agrees(at_us(2000), wall_at(at_us(2000)) + 60));
  EXPECT_EQ(map.map(wall_at(at_us(900)), at_us(1000)), at_us(900));
  EXPECT_EQ(map.map(wall_at(at_us(1000)), at_us(1000)), at_us(1000));
}

TEST(StampMap, TheFutureAndTheDistantPastAreNotBelieved) {
  StampMap map;
  learn(map, at_us(5'000'000));
  EXPECT_FALSE(map.map(wall_at(at_us(5'000'001)), at_us(5'000'000)).is_set());
  EXPECT_TRUE(map.map(wall_at(at_us(4'000'000)), at_us(5'000'000)).is_set());
  EXPECT_FALSE(map.map(wall_at(at_us(3'999'999)), at_us(5'000'000)).is_set());
}

TEST(StampMap, SlewIsFollowedAndIsNoStep) {
  StampMap map;
  learn(map, at_us(10'000));
  const Duration slewed = Duration::micros(500);
  EXPECT_FALSE(map.agrees(at_us(20'000), wall_at(at_us(20'000), slewed)));
  learn(map, at_us(20'000), slewed);
  EXPECT_EQ(map.map(wall_at(at_us(19'990), slewed), at_us(20'000)), at_us(19'990));
}

TEST(StampMap, AReaderThatWasHeldUpForALittleKnowsItsOffset) {
  StampMap map;
  learn(map, at_us(1000));
  const std::int64_t wall = wall_at(at_us(2010));
  EXPECT_FALSE(map.agrees(at_us(2000), wall));
  EXPECT_TRUE(map.agrees(at_us(2000), wall, at_us(2011)));
  EXPECT_FALSE(map.agrees(at_us(2000), wall, at_us(2005)));  // clocks moved apart
  EXPECT_FALSE(map.agrees(at_us(2000), wall_at(at_us(1990)), at_us(2011)));
  EXPECT_FALSE(map.agrees(at_us(2000), wall, at_us(2021)));  // too wide to tell
}

// Every stamp made before or after a step, read any time later: right to the nanosecond, or unset.
TEST(StampMap, AStepNeverBendsAStamp) {
  for (const std::int64_t step_us : {-3'600'000'000LL, -500'000LL, -20'000LL, -1'001LL, 1'001LL,
                                     20'000LL, 500'000LL, 3'600'000'000LL}) {
    StampMap map;
    const Duration step = Duration::micros(step_us);
    const Instant stepped = at_us(10'000'000);
    learn(map, stepped - Duration::millis(5));
    int used = 0;
    for (std::int64_t read_us = 10'000'050; read_us < 10'060'000; read_us += 250) {
      const Instant read_at = at_us(read_us);
      // What a reader does: compare, and learn when the offset moved.
      if (!map.agrees(read_at, wall_at(read_at, step))) {
        learn(map, read_at, step);
      }
      for (std::int64_t age_us = 0; age_us <= 40'000; age_us += 500) {
        const Instant made = read_at - Duration::micros(age_us);
        const Instant mapped = map.map(wall_at(made, made < stepped ? Duration{} : step), read_at);
        if (mapped.is_set()) {
          EXPECT_EQ(mapped, made) << "step " << step_us << " read " << read_us << " age " << age_us;
          ++used;
        }
      }
    }
    if (step_us > -20'001) {
      EXPECT_GT(used, 1000) << "stamps are used again after a step of " << step_us;
    }
  }
}

TEST(StampMap, AfterALongStepBackStampsAreUsedAgainWithinASecond) {
  StampMap map;
  const Duration step = Duration::seconds(-3600);
  learn(map, at_us(1'000'000));
  learn(map, at_us(2'000'000), step);
  EXPECT_FALSE(map.map(wall_at(at_us(2'500'000), step), at_us(2'500'010)).is_set());
  EXPECT_EQ(map.map(wall_at(at_us(3'000'100), step), at_us(3'000'110)), at_us(3'000'100));
}

// A clock whose first readings are torn apart, as by a preemption in between.
class TornClock final : public base::Clock {
 public:
  Instant mono() const override {
    reads_ += 1;
    now_ns_ += reads_ <= 2 ? 700'000 : 40;
    return Instant{now_ns_};
  }
  std::int64_t wall_unix_ns() const override {
    now_ns_ += 40;
    return kWall + now_ns_;
  }

 private:
  mutable std::int64_t now_ns_ = 1'000'000;
  mutable int reads_ = 0;
};

TEST(StampMap, TheClosestOfAFewReadingsIsTaken) {
  const TornClock clock;
  StampMap map;
  learn_offset(map, Instant{1'000'000}, clock.wall_unix_ns(), clock);
  const Instant now{10'000'000};
  EXPECT_EQ(map.map(kWall + now.ns - 500, now), Instant{now.ns - 500});
}

}  // namespace
}  // namespace tutti::target
