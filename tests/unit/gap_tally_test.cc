// Every gap is counted in exactly one cell, whatever came before in the same pooled tally.

#include "agent/target/gap_tally.h"

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace tutti::target {
namespace {

using stats::LiveHistogram;

std::vector<wire::CountedCell> cells_of(const GapTally& tally) {
  std::vector<wire::CountedCell> out{{7, 7}};  // what was there before does not matter
  tally.write(out);
  return out;
}

TEST(GapTally, CountsWhatTheHistogramCounts) {
  base::Mt19937 random(1);
  GapTally tally;
  for (int reply = 0; reply < 50; ++reply) {
    tally.clear();
    LiveHistogram expected;
    for (std::uint64_t left = random.below(3000); left > 0; --left) {
      const auto gap = static_cast<std::int64_t>(
          random.next_bits(static_cast<int>(1 + random.below(reply % 2 == 0 ? 44 : 24))));
      tally.add(base::Duration{gap});
      expected.add(gap);
    }
    EXPECT_EQ(cells_of(tally), expected.cells()) << reply;
  }
}

TEST(GapTally, AnEmptyOneHasNoCells) {
  GapTally tally;
  EXPECT_TRUE(cells_of(tally).empty());
  tally.add(base::Duration::millis(20));
  tally.clear();
  EXPECT_TRUE(cells_of(tally).empty());
}

TEST(GapTally, EventsOfOneReadAndStampsThatWentBackAreGapsOfNothing) {
  GapTally tally;
  tally.add(base::Duration{0});
  tally.add(base::Duration{-5});
  EXPECT_EQ(cells_of(tally), (std::vector<wire::CountedCell>{{0, 2}}));
}

TEST(GapTally, ALongStreamsCountsDoNotWrap) {
  GapTally tally;
  constexpr std::uint32_t kMany = 3 * 65'536 + 5;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    tally.add(base::Duration::millis(20));
    tally.add(base::Duration{i % 65'536 == 0 ? 1 : 2});
  }
  EXPECT_EQ(cells_of(tally),
            (std::vector<wire::CountedCell>{
                {1, 4},
                {2, kMany - 4},
                {static_cast<std::uint16_t>(LiveHistogram::cell_of(20'000'000)), kMany}}));
  tally.clear();
  tally.add(base::Duration{2});
  EXPECT_EQ(cells_of(tally), (std::vector<wire::CountedCell>{{2, 1}}));
}

}  // namespace
}  // namespace tutti::target
