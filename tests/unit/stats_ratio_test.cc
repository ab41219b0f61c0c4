#include <gtest/gtest.h>

#include <cmath>

#include "common/stats/ratio.h"

namespace tutti::stats {
namespace {

TEST(Ratio, IsExactWhereADoubleIs) {
  EXPECT_EQ(ratio(0, 7), 0.0);
  EXPECT_EQ(ratio(1, 1), 1.0);
  EXPECT_EQ(ratio(-6, 4), -1.5);
  EXPECT_EQ(ratio(Wide{1} << 100, 1), std::ldexp(1.0, 100));
  EXPECT_EQ(ratio(1, UINT64_MAX), std::ldexp(1.0, -64));
}

TEST(Ratio, AgreesWithHardwareWhereBothOperandsFitADouble) {
  std::int64_t x = 1;
  for (std::uint64_t n = 1; n < 2000; ++n) {
    x = x * 31 % ((std::int64_t{1} << 53) - 111);
    EXPECT_EQ(ratio(x, n), static_cast<double>(x) / static_cast<double>(n)) << x << " / " << n;
  }
}

// Computed by an unbounded-integer language whose division rounds once.
TEST(Ratio, RoundsOnceWhereTheOperandAloneWouldRoundFirst) {
  const Wide odd = (Wide{1} << 53) + 1;                  // no double
  EXPECT_EQ(ratio(odd * 3, 3), 9007199254740992.0);      // tie, to even
  EXPECT_EQ(ratio(odd * 3 + 1, 3), 9007199254740994.0);  // just above the tie
  // A tie but for something smaller than the 128 leading bits can show.
  EXPECT_EQ(ratio((odd << 64) * 3, 3), std::ldexp(9007199254740992.0, 64));
  EXPECT_EQ(ratio((odd << 64) * 3 + 1, 3), std::ldexp(9007199254740994.0, 64));
  EXPECT_EQ(ratio((Wide{1} << 90) + 12345, 7), 1.768485770407686e+26);
  EXPECT_EQ(ratio(9'223'372'036'854'775'807, 1'000'003), 9223344366821.676);
}

TEST(SquareRatio, MatchesDirectSquaresAndTakesTheWholeWidth) {
  EXPECT_EQ(square_ratio(0, 5), 0.0);
  EXPECT_EQ(square_ratio(-3, 2), 4.5);
  EXPECT_EQ(square_ratio(320'000'000, 64), 1.6e15);
  EXPECT_EQ(square_ratio(Wide{1} << 120, 1), std::ldexp(1.0, 240));
  EXPECT_EQ(square_ratio((Wide{1} << 64) - 1, 1), 3.402823669209385e+38);
  // All three limbs of the product in play: (2^100 + 2^50 + 1)² / 3.
  EXPECT_EQ(square_ratio((Wide{1} << 100) + (Wide{1} << 50) + 1, 3), 5.356460147529977e+59);
}

}  // namespace
}  // namespace tutti::stats
