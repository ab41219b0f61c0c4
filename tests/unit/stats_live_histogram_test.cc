#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/stats/live_histogram.h"

namespace tutti::stats {
namespace {

TEST(LiveHistogramCells, AreContiguousAndAscendingOverTheWholeRange) {
  std::size_t last = LiveHistogram::cell_of(0);
  EXPECT_EQ(last, 0U);
  for (std::int64_t value = 1; value <= LiveHistogram::kValueMax; value += value / 200 + 1) {
    const std::size_t cell = LiveHistogram::cell_of(value);
    EXPECT_GE(cell, last) << value;
    EXPECT_LE(cell, last + 1) << value;
    last = cell;
  }
  EXPECT_LT(LiveHistogram::cell_of(LiveHistogram::kValueMax), LiveHistogram::kCells);
  EXPECT_LE(LiveHistogram::kCells, std::size_t{1} << 16) << "cells travel as 16-bit numbers";
}

TEST(LiveHistogramCells, ChangeExactlyAtOctaveEdges) {
  for (int bit = 6; bit <= 41; ++bit) {
    const std::int64_t edge = std::int64_t{1} << bit;
    EXPECT_EQ(LiveHistogram::cell_of(edge), LiveHistogram::cell_of(edge - 1) + 1) << bit;
  }
}

TEST(LiveHistogramCells, TheLowestValueOfACellIsItsFirst) {
  for (std::size_t cell = 0; cell < LiveHistogram::kCells; ++cell) {
    const std::int64_t low = LiveHistogram::low_of(cell);
    if (low > LiveHistogram::kValueMax) {
      break;
    }
    ASSERT_EQ(LiveHistogram::cell_of(low), cell);
    ASSERT_TRUE(cell == 0 || LiveHistogram::cell_of(low - 1) == cell - 1) << cell;
  }
}

TEST(LiveHistogramCells, TheMiddleIsWithinThePromisedErrorOfEveryValueAndInItsOwnCell) {
  for (std::int64_t value = 0; value <= LiveHistogram::kValueMax; value += value / 777 + 1) {
    const std::size_t cell = LiveHistogram::cell_of(value);
    const double middle = LiveHistogram::middle_of(cell);
    const double exact = static_cast<double>(value);
    ASSERT_LE(std::fabs(middle - exact), exact * LiveHistogram::kRelativeError) << value;
    ASSERT_EQ(LiveHistogram::cell_of(static_cast<std::int64_t>(middle)), cell);
  }
  EXPECT_LE(LiveHistogram::kRelativeError, 0.01);
}

TEST(LiveHistogram, ClampsWhatLiesOutsideIntoTheOutermostCells) {
  LiveHistogram histogram;
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                                   std::int64_t{0}, std::int64_t{1}}) {
    histogram.add(value);
  }
  for (const std::int64_t value :
       {LiveHistogram::kValueMax, std::numeric_limits<std::int64_t>::max()}) {
    histogram.add(value);
  }
  const auto cells = histogram.cells();
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[0], (LiveHistogram::Cell{0, 3}));
  EXPECT_EQ(cells[1], (LiveHistogram::Cell{1, 1}));
  EXPECT_EQ(cells[2].second, 2U);
  EXPECT_EQ(histogram.count(), 6U);
}

TEST(LiveHistogram, AnswersWithTheLowerOrderStatistic) {
  LiveHistogram histogram;
  EXPECT_FALSE(histogram.percentile(50).has_value());
  for (std::int64_t value = 1; value <= 60; ++value) {
    histogram.add(value);  // below 64 every value is exact
  }
  EXPECT_EQ(histogram.percentile(0), 1.0);
  EXPECT_EQ(histogram.percentile(50), 30.0);  // index trunc(0.5 · 59) = 29
  EXPECT_EQ(histogram.percentile(99), 59.0);
  EXPECT_EQ(histogram.percentile(100), 60.0);
}

TEST(LiveHistogram, ClearForgetsEverything) {
  LiveHistogram histogram;
  histogram.add(5);
  histogram.clear();
  EXPECT_EQ(histogram, LiveHistogram());
  EXPECT_TRUE(histogram.cells().empty());
}

TEST(LiveHistogram, ExportedCellsRebuildItElsewhere) {
  LiveHistogram histogram;
  for (std::int64_t value = 1; value < 5'000'000'000; value = value * 3 / 2 + 1) {
    histogram.add(value);
  }
  LiveHistogram copy;
  EXPECT_TRUE(copy.add_cells(histogram.cells()));
  EXPECT_EQ(copy, histogram);
}

TEST(LiveHistogram, ACountBeyond32BitsTravelsInPieces) {
  LiveHistogram histogram;
  const std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  ASSERT_TRUE(histogram.add_cells(std::vector<LiveHistogram::Cell>{{7, most}, {7, most}, {7, 5}}));
  EXPECT_EQ(histogram.count(), 2 * std::uint64_t{most} + 5);
  const auto cells = histogram.cells();
  EXPECT_EQ(cells.size(), 3U);
  LiveHistogram copy;
  ASSERT_TRUE(copy.add_cells(cells));
  EXPECT_EQ(copy, histogram);
}

TEST(LiveHistogram, RefusesForeignCellsWhole) {
  LiveHistogram histogram;
  const std::vector<LiveHistogram::Cell> foreign = {
      {5, 1}, {static_cast<std::uint16_t>(LiveHistogram::kCells), 1}};
  EXPECT_FALSE(histogram.add_cells(foreign));
  EXPECT_EQ(histogram, LiveHistogram()) << "not even the good cells of a bad message count";
}

}  // namespace
}  // namespace tutti::stats
