#include <gtest/gtest.h>

#include <limits>

#include "common/plan/schedule.h"

namespace tutti::plan {
namespace {

PhaseSpec burst(base::Seq total, std::uint32_t rows) {
  PhaseSpec spec;
  spec.total = total;
  spec.dataset_rows = rows;
  spec.order_seed = 42;
  return spec;
}

std::vector<base::IssueCommand> all(const PhaseSpec& spec) {
  Schedule schedule(spec);
  std::vector<base::IssueCommand> out;
  schedule.take(SIZE_MAX, out);
  return out;
}

TEST(Order, SequentialGoesRoundAndRound) {
  SampleOrder order(OrderKind::kSequential, 3, 1);
  for (const std::uint32_t row : {0U, 1U, 2U, 0U, 1U, 2U, 0U}) {
    EXPECT_EQ(order.next(), row);
  }
}

TEST(Order, SingleNeverLeavesItsRow) {
  SampleOrder order(OrderKind::kSingle, 3, 1, 2);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(order.next(), 2U);
  }
}

TEST(Order, ReshufflesTheShuffledListNotTheIdentity) {
  SampleOrder order(OrderKind::kWithoutReplacement, 10, 42);
  const std::vector<std::uint32_t> expected = {7, 3, 2, 8, 5, 6, 9, 4, 0, 1,
                                               8, 6, 2, 5, 3, 0, 4, 7, 9, 1};
  for (const std::uint32_t row : expected) {
    EXPECT_EQ(order.next(), row);
  }
}

TEST(Order, TheLargestDataSetIsDrawnFromWithoutOverflow) {
  SampleOrder with(OrderKind::kWithReplacement, UINT32_MAX, 42);
  SampleOrder sequential(OrderKind::kSequential, UINT32_MAX, 42);
  bool high = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t row = with.next();
    EXPECT_LT(row, UINT32_MAX);
    high = high || row > UINT32_MAX / 2;
    EXPECT_EQ(sequential.next(), static_cast<std::uint32_t>(i));
  }
  EXPECT_TRUE(high);
}

TEST(Arrivals, EveryGapIsAtLeastOneNanosecondAtRatesBeyondTheClock) {
  PoissonArrivals arrivals(1e12, 42);
  for (int i = 1; i <= 1000; ++i) {
    EXPECT_GE(arrivals.next_gap_ns(), 1);
  }
  EXPECT_GE(arrivals.due_offset().ns, 1000);
}

TEST(Arrivals, ScheduleOfAbsurdlySmallRatesSaturatesInsteadOfOverflowing) {
  for (const double qps : {1e-9, 1e-300, std::numeric_limits<double>::denorm_min()}) {
    PoissonArrivals arrivals(qps, 42);
    std::int64_t last = 0;
    for (int i = 0; i < 10; ++i) {
      EXPECT_GE(arrivals.next_gap_ns(), 1);
      EXPECT_GE(arrivals.due_offset().ns, last);
      EXPECT_LE(arrivals.due_offset().ns, PoissonArrivals::kOffsetMaxNs);
      last = arrivals.due_offset().ns;
    }
    EXPECT_EQ(last, PoissonArrivals::kOffsetMaxNs) << qps;
  }
}

TEST(Schedule, NumbersItsCommandsFromZeroAndEndsForGood) {
  Schedule schedule(burst(3, 2));
  for (base::Seq seq = 0; seq < 3; ++seq) {
    EXPECT_FALSE(schedule.done());
    EXPECT_EQ(schedule.drawn(), seq);
    const auto command = schedule.next();
    ASSERT_TRUE(command.has_value());
    EXPECT_EQ(command->seq, seq);
  }
  EXPECT_TRUE(schedule.done());
  EXPECT_FALSE(schedule.next().has_value());
  EXPECT_FALSE(schedule.next().has_value());
  EXPECT_EQ(schedule.drawn(), 3U);
}

TEST(Schedule, RowsOfALaterDataSetBeginWhereItsBodiesDo) {
  PhaseSpec spec = burst(20, 10);
  const auto plain = all(spec);
  spec.first_row = 1000;
  const auto moved = all(spec);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(moved[i].sample, plain[i].sample + 1000);
  }
  spec.first_row = UINT32_MAX - 9;
  ASSERT_EQ(check(spec).size(), 1U);
  EXPECT_EQ(check(spec)[0].field, "first_row");
}

TEST(Schedule, OnlyTimedCommandsHaveADueOffsetAndOnlySaltedOnesASalt) {
  PhaseSpec spec = burst(100, 10);
  for (const auto& command : all(spec)) {
    EXPECT_EQ(command.due_offset.ns, 0);
    EXPECT_FALSE(command.salted);
    EXPECT_EQ(command.salt, 0U);
  }
  spec.pacing = base::Pacing::kClosedLoop;
  spec.concurrency = 4;
  for (const auto& command : all(spec)) {
    EXPECT_EQ(command.due_offset.ns, 0);
  }
  spec.pacing = base::Pacing::kTimed;
  spec.target_qps = 100;
  spec.gap_seed = 42;
  spec.salted = true;
  spec.salt_seed = 44;
  const auto commands = all(spec);
  EXPECT_EQ(commands[0].due_offset.ns, 10'200'602);
  EXPECT_EQ(commands[1].due_offset.ns, 10'200'602 + 253'288);
  EXPECT_TRUE(commands[0].salted);
  EXPECT_EQ(commands[0].salt, 0xA8CE956811102085ULL);
}

TEST(Schedule, RowsGapsAndSaltsComeFromSeparateGenerators) {
  PhaseSpec plain = burst(50, 10);
  PhaseSpec full = plain;
  full.pacing = base::Pacing::kTimed;
  full.target_qps = 100;
  full.salted = true;
  const auto a = all(plain);
  const auto b = all(full);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].sample, b[i].sample);
  }
}

TEST(Schedule, TakingInPiecesGivesTheSameCommandsAsTakingAll) {
  PhaseSpec spec = burst(1000, 7);
  spec.pacing = base::Pacing::kTimed;
  spec.target_qps = 3;
  spec.gap_seed = 9;
  Schedule schedule(spec);
  std::vector<base::IssueCommand> pieces;
  std::size_t piece = 1;
  while (schedule.take(piece, pieces) == piece) {
    piece = piece * 2 % 97 + 1;
  }
  EXPECT_EQ(schedule.take(5, pieces), 0U);
  EXPECT_EQ(pieces, all(spec));
}

// Accuracy phases share the performance phase's gap generator, which has moved by one gap more than
// was issued. Three phases in a row must read one uninterrupted stream.
TEST(Schedule, PhasesThatShareAGapGeneratorReadOneStream) {
  PhaseSpec first = burst(10, 10);
  first.pacing = base::Pacing::kTimed;
  first.target_qps = 100;
  first.gap_seed = 42;
  PhaseSpec second = first;
  second.kind = base::PhaseKind::kAccuracy;
  second.order = OrderKind::kSequential;
  second.total = 5;
  second.gaps_before = gaps_drawn(first, 10);
  PhaseSpec third = second;
  third.gaps_before = second.gaps_before + gaps_drawn(second, 5);

  PoissonArrivals stream(100, 42);
  const auto expect_gaps = [&stream](const std::vector<base::IssueCommand>& commands) {
    std::int64_t before = 0;
    for (const auto& command : commands) {
      EXPECT_EQ(command.due_offset.ns - before, stream.next_gap_ns());
      before = command.due_offset.ns;
    }
    stream.next_gap_ns();  // the one drawn for the refused attempt
  };
  expect_gaps(all(first));
  expect_gaps(all(second));
  expect_gaps(all(third));
}

TEST(Schedule, PhasesThatDrawNoGapsDoNotMoveTheGenerator) {
  PhaseSpec spec = burst(10, 10);
  EXPECT_EQ(gaps_drawn(spec, 10), 0U);
  spec.pacing = base::Pacing::kTimed;
  spec.target_qps = 1;
  EXPECT_EQ(gaps_drawn(spec, 10), 11U);
  EXPECT_EQ(gaps_drawn(spec, 0), 1U);
}

TEST(PhaseSpecCheck, NamesEverythingThatIsWrongAtOnce) {
  PhaseSpec spec;
  spec.order = OrderKind::kSingle;
  spec.pacing = base::Pacing::kTimed;
  const auto problems = check(spec);
  std::vector<std::string> fields;
  for (const auto& problem : problems) {
    fields.push_back(problem.field);
    EXPECT_FALSE(problem.remedy.empty());
  }
  EXPECT_EQ(fields,
            (std::vector<std::string>{"total", "dataset_rows", "single_row", "target_qps"}));

  PhaseSpec loop = burst(1, 1);
  loop.pacing = base::Pacing::kClosedLoop;
  ASSERT_EQ(check(loop).size(), 1U);
  EXPECT_EQ(check(loop)[0].field, "concurrency");
  EXPECT_TRUE(check(burst(1, 1)).empty());
  EXPECT_DEATH(Schedule{loop}, "promise broken");
}

TEST(PhaseSpecCheck, RefusesRatesThatAreNoRates) {
  PhaseSpec spec = burst(1, 1);
  spec.pacing = base::Pacing::kTimed;
  for (const double qps : {0.0, -5.0, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    spec.target_qps = qps;
    EXPECT_EQ(check(spec).size(), 1U) << qps;
  }
}

}  // namespace
}  // namespace tutti::plan
