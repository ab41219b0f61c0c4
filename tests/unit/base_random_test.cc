#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/random.h"

namespace tutti::base {
namespace {

TEST(Mt19937, EqualSeedsGiveEqualStreamsAndEveryBitOfTheSeedCounts) {
  for (int bit = 0; bit < 64; ++bit) {
    Mt19937 random(42);
    Mt19937 again(42);
    Mt19937 other(42 ^ (std::uint64_t{1} << bit));
    bool differs = false;
    for (int i = 0; i < 700; ++i) {
      const std::uint32_t word = random.next_u32();
      ASSERT_EQ(word, again.next_u32());
      differs = differs || word != other.next_u32();
    }
    EXPECT_TRUE(differs) << "bit " << bit;
  }
}

TEST(Mt19937, ACopyContinuesFromWhereItWasTaken) {
  Mt19937 random(5);
  for (int i = 0; i < 1000; ++i) {
    random.next_u32();
  }
  Mt19937 copy = random;
  EXPECT_EQ(random.next_bits(64), copy.next_bits(64));
}

TEST(Mt19937, DoublesStayInTheHalfOpenUnitInterval) {
  Mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double u = random.next_double();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
  }
}

TEST(Mt19937, BitDrawsNeverExceedTheirWidth) {
  for (int bits = 1; bits <= 64; ++bits) {
    Mt19937 random(static_cast<std::uint64_t>(bits));
    std::uint64_t all = 0;
    for (int i = 0; i < 200; ++i) {
      all |= random.next_bits(bits);
    }
    // 200 draws set every bit of the width, with a chance of failure below 64 · 2^-200.
    EXPECT_EQ(all, bits == 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1) << bits;
  }
}

TEST(Mt19937, BoundedDrawsReachBothEndsAndNothingBeyond) {
  for (const std::uint64_t n : {1ULL, 2ULL, 3ULL, 7ULL, 8ULL, 9ULL}) {
    Mt19937 random(n);
    std::vector<int> counts(n, 0);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t draw = random.below(n);
      ASSERT_LT(draw, n);
      ++counts[draw];
    }
    EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 0) << n;
  }
}

TEST(Mt19937, BoundedDrawsTakeBoundsBeyond63Bits) {
  Mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LT(random.below(UINT64_MAX), UINT64_MAX);
  }
}

TEST(Mt19937, ByteStringsOfOddLengthsAreWholeWordsCutFromTheTopOfTheLast) {
  for (std::size_t n = 0; n <= 9; ++n) {
    Mt19937 random(77);
    Mt19937 words(77);
    const auto bytes = random.bytes(n);
    ASSERT_EQ(bytes.size(), n);
    for (std::size_t from = 0; from < n; from += 4) {
      const std::size_t take = std::min<std::size_t>(4, n - from);
      const std::uint32_t word = words.next_u32() >> (32 - 8 * take);
      for (std::size_t k = 0; k < take; ++k) {
        EXPECT_EQ(bytes[from + k], static_cast<std::uint8_t>(word >> (8 * k))) << n;
      }
    }
    EXPECT_EQ(random.next_u32(), words.next_u32()) << "not one word more than needed, n = " << n;
  }
}

TEST(Mt19937, ShuffleKeepsEveryElementAndLeavesShortListsAlone) {
  Mt19937 random(9);
  std::vector<int> list(1000);
  std::iota(list.begin(), list.end(), 0);
  random.shuffle(list);
  EXPECT_FALSE(std::is_sorted(list.begin(), list.end()));
  std::sort(list.begin(), list.end());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(list[static_cast<std::size_t>(i)], i);
  }
  std::vector<int> none;
  std::vector<int> one = {5};
  Mt19937 untouched(11);
  Mt19937 used(11);
  used.shuffle(none);
  used.shuffle(one);
  EXPECT_EQ(one, std::vector<int>{5});
  EXPECT_EQ(used.next_u32(), untouched.next_u32()) << "short lists draw nothing";
}

TEST(Mt19937, ExponentialDrawsAreThePublishedFormulaOfOneUniformDraw) {
  Mt19937 random(13);
  Mt19937 uniform(13);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(random.exponential(0.25), -std::log(1.0 - uniform.next_double()) / 0.25);
  }
}

TEST(Mt19937, NonsenseIsAProgrammersError) {
  Mt19937 random(1);
  EXPECT_DEATH(random.below(0), "promise broken");
  EXPECT_DEATH(random.next_bits(0), "promise broken");
  EXPECT_DEATH(random.next_bits(65), "promise broken");
}

}  // namespace
}  // namespace tutti::base
