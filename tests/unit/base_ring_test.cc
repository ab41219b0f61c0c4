#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "common/base/ring.h"

namespace tutti::base {
namespace {

TEST(SpscRing, CapacityIsRoundedUpToAPowerOfTwoAndNeverBelowTwo) {
  EXPECT_EQ(SpscRing<int>(0).capacity(), 2U);
  EXPECT_EQ(SpscRing<int>(2).capacity(), 2U);
  EXPECT_EQ(SpscRing<int>(3).capacity(), 4U);
  EXPECT_EQ(SpscRing<int>(1024).capacity(), 1024U);
}

TEST(SpscRing, HoldsExactlyItsCapacityAndGivesItBackInOrder) {
  SpscRing<int> ring(4);
  int out = 0;
  EXPECT_FALSE(ring.pop(out));
  for (int round = 0; round < 10; ++round) {  // so that the indices wrap
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(ring.push(round * 4 + i));
    }
    EXPECT_FALSE(ring.push(-1));
    EXPECT_EQ(ring.size(), 4U);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(ring.pop(out));
      EXPECT_EQ(out, round * 4 + i);
    }
    EXPECT_FALSE(ring.pop(out));
    EXPECT_EQ(ring.size(), 0U);
  }
}

TEST(SpscRing, ARefusedValueStaysWithTheProducer) {
  SpscRing<std::unique_ptr<int>> ring(2);
  EXPECT_TRUE(ring.push(std::make_unique<int>(1)));
  EXPECT_TRUE(ring.push(std::make_unique<int>(2)));
  auto refused = std::make_unique<int>(3);
  EXPECT_FALSE(ring.push(std::move(refused)));
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(*refused, 3);
}

// One producer and one consumer at full speed over a small ring: nothing lost, doubled or
// reordered. Under the thread sanitizer this is also the proof that the two indices order the
// slots' contents.
TEST(SpscRing, TwoThreadsPassEveryValueOnceAndInOrder) {
  constexpr std::uint64_t kValues = 200'000;
  struct Item {
    std::uint64_t number = 0;
    std::string text;  // not atomic: a race on a slot would be seen
  };
  SpscRing<Item> ring(64);
  std::thread producer([&ring] {
    for (std::uint64_t i = 0; i < kValues;) {
      Item item;
      item.number = i;
      item.text = std::to_string(i);
      if (ring.push(std::move(item))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  int wrong = 0;
  Item item;
  for (std::uint64_t expected = 0; expected < kValues;) {
    if (!ring.pop(item)) {
      std::this_thread::yield();
      continue;
    }
    wrong += item.number != expected || item.text != std::to_string(expected) ? 1 : 0;
    ++expected;
  }
  producer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ring.size(), 0U);
  EXPECT_FALSE(ring.pop(item));
}

}  // namespace
}  // namespace tutti::base
