// Batches stay within what one frame carries, whatever the texts: none is lost, order is kept.

#include "agent/session/record_batcher.h"

#include <gtest/gtest.h>

#include "common/wire/codec.h"

namespace tutti::session {
namespace {

std::vector<wire::Record> records(std::size_t count, std::size_t text_bytes) {
  std::vector<wire::Record> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i].seq = i;
    out[i].output.content_rest.assign(text_bytes, 'x');
  }
  return out;
}

std::vector<wire::RecordBatch> spooled(const std::vector<Command>& commands) {
  std::vector<wire::RecordBatch> out;
  for (const auto& command : commands) {
    if (const auto* spool = std::get_if<SpoolAppend>(&command)) {
      out.push_back(spool->batch);
    }
  }
  return out;
}

TEST(RecordBatcher, LongTextsMakeBatchesShorterAndLoseNothing) {
  RecordBatcher batcher;
  batcher.add(records(50, std::size_t{1} << 20), base::Instant{1});
  std::vector<Command> commands;
  batcher.flush(base::Instant{1}, RecordBatcher::Cut::kAll, commands);
  const auto batches = spooled(commands);
  EXPECT_GE(batches.size(), 3U);
  base::Seq next = 0;
  for (const auto& batch : batches) {
    EXPECT_LE(wire::encode(wire::Message(batch)).bytes.size(), RecordBatcher::kBatchBytesMax);
    for (const auto& record : batch.records) {
      EXPECT_EQ(record.seq, next++);
    }
  }
  EXPECT_EQ(next, 50U);
}

TEST(RecordBatcher, ARecordOfTheGreatestTextTravelsAlone) {
  RecordBatcher batcher;
  batcher.add(records(3, std::size_t{16} << 20), base::Instant{1});
  std::vector<Command> commands;
  batcher.flush(base::Instant{1}, RecordBatcher::Cut::kAll, commands);
  const auto batches = spooled(commands);
  ASSERT_EQ(batches.size(), 3U);
  const auto encoded = wire::encode(wire::Message(batches[0]));
  EXPECT_TRUE(wire::decode(encoded.plane, encoded.bytes));
}

TEST(RecordBatcher, ABatchFullOfTextGoesAtOnceToo) {
  RecordBatcher batcher;
  std::vector<Command> commands;
  std::size_t added = 0;
  for (; commands.empty() && added < 100; ++added) {
    batcher.add(records(1, std::size_t{1} << 20), base::Instant{1});
    batcher.flush(base::Instant{1}, RecordBatcher::Cut::kDue, commands);
  }
  ASSERT_EQ(spooled(commands).size(), 1U);
  EXPECT_EQ(spooled(commands)[0].records.size(), added - 1) << "the one too many waits";
  EXPECT_EQ(added, 16U);
  commands.clear();
  for (std::size_t i = 0; commands.empty() && i < 100; ++i, ++added) {
    batcher.add(records(1, std::size_t{1} << 20), base::Instant{2});
    batcher.flush(base::Instant{2}, RecordBatcher::Cut::kDue, commands);
  }
  EXPECT_EQ(spooled(commands).size(), 1U);
  EXPECT_EQ(added, 31U);
}

TEST(RecordBatcher, AFullBatchGoesAtOnceAndTheRestWaitsItsTime) {
  RecordBatcher batcher;
  batcher.add(records(RecordBatcher::kBatchMax + 1, 10), base::Instant{1});
  std::vector<Command> commands;
  batcher.flush(base::Instant{1}, RecordBatcher::Cut::kDue, commands);
  EXPECT_EQ(spooled(commands).size(), 1U);
  commands.clear();
  batcher.flush(base::Instant{1} + RecordBatcher::kWaitMax, RecordBatcher::Cut::kDue, commands);
  ASSERT_EQ(spooled(commands).size(), 1U);
  EXPECT_EQ(spooled(commands)[0].records.size(), 1U);
}

// The wait in the worker's ring counts too: what a session finds late goes out at once.
TEST(RecordBatcher, TheWaitCountsFromTheEndOfTheOldestQuery) {
  const base::Instant start{1'000'000'000};
  const auto after = [start](std::int64_t ms) { return start + base::Duration::millis(ms); };
  const auto ended = [](base::Instant at) {
    auto one = records(1, 10);
    one[0].done_at = at;
    return one;
  };
  RecordBatcher batcher;
  std::vector<Command> commands;
  batcher.add(ended(after(6)), after(8));
  batcher.add(ended(after(3)), after(9));  // of another worker
  EXPECT_EQ(batcher.due_at(), after(3) + RecordBatcher::kWaitMax);
  batcher.flush(after(22), RecordBatcher::Cut::kDue, commands);
  EXPECT_TRUE(commands.empty());
  batcher.flush(after(23), RecordBatcher::Cut::kDue, commands);
  EXPECT_EQ(spooled(commands).size(), 1U);
  commands.clear();
  batcher.add(ended(after(40)), after(70));
  batcher.flush(after(70), RecordBatcher::Cut::kDue, commands);
  EXPECT_EQ(spooled(commands).size(), 1U) << "it has waited long enough";
  EXPECT_EQ(batcher.due_at(), base::kFarFuture);
}

// The queries of a full batch do not hurry those after it.
TEST(RecordBatcher, AFullBatchTakesItsAgeAlong) {
  const base::Instant start{1'000'000'000};
  auto some = records(RecordBatcher::kBatchMax + 1, 10);
  for (auto& record : some) {
    record.done_at = start;
  }
  some.back().done_at = start + base::Duration::millis(15);
  RecordBatcher batcher;
  batcher.add(std::move(some), start + base::Duration::millis(16));
  std::vector<Command> commands;
  batcher.flush(start + base::Duration::millis(16), RecordBatcher::Cut::kDue, commands);
  EXPECT_EQ(spooled(commands).size(), 1U);
  EXPECT_EQ(batcher.due_at(), start + base::Duration::millis(15) + RecordBatcher::kWaitMax);
}

TEST(RecordBatcher, ABatchCarriesTheSumOfItsRecordsGapsByPhase) {
  RecordBatcher batcher;
  auto some = records(5, 3);
  some[0].phase = 2;
  some[0].gaps = {{10, 1}, {70, 5}};
  some[1].phase = 1;
  some[1].gaps = {{70, 4'000'000'000}};
  some[2].phase = 2;
  some[2].gaps = {{3, 2}, {70, 7}};
  some[3].phase = 1;
  some[3].gaps = {{70, 4'000'000'000}};
  some[4].phase = 3;  // without a gap
  batcher.add(std::move(some), base::Instant{1});
  std::vector<Command> commands;
  batcher.flush(base::Instant{1}, RecordBatcher::Cut::kAll, commands);
  const auto batches = spooled(commands);
  ASSERT_EQ(batches.size(), 1U);
  ASSERT_EQ(batches[0].gaps.size(), 2U);
  EXPECT_EQ(batches[0].gaps[0], (wire::PhaseGaps{2, {{3, 2}, {10, 1}, {70, 12}}}));
  EXPECT_EQ(batches[0].gaps[1].phase, 1U);
  std::uint64_t sum = 0;
  for (const auto& [cell, count] : batches[0].gaps[1].cells) {
    EXPECT_EQ(cell, 70U);
    sum += count;  // in pieces, as it is beyond 32 bits
  }
  EXPECT_EQ(sum, 8'000'000'000U);
  for (const wire::Record& record : batches[0].records) {
    EXPECT_TRUE(record.gaps.empty());
  }
}

TEST(RecordBatcher, EveryGapIsInTheBatchOfItsRecord) {
  RecordBatcher batcher;
  auto some = records(600, 1);
  for (std::size_t i = 0; i < some.size(); ++i) {
    some[i].gaps = {{static_cast<std::uint16_t>(i), static_cast<std::uint32_t>(i + 1)}};
  }
  batcher.add(std::move(some), base::Instant{1});
  std::vector<Command> commands;
  batcher.flush(base::Instant{1}, RecordBatcher::Cut::kAll, commands);
  std::size_t next = 0;
  for (const auto& batch : spooled(commands)) {
    ASSERT_EQ(batch.gaps.size(), 1U);
    ASSERT_EQ(batch.gaps[0].cells.size(), batch.records.size());
    for (const auto& cell : batch.gaps[0].cells) {
      EXPECT_EQ(cell, (wire::CountedCell{next, next + 1}));
      ++next;
    }
  }
  EXPECT_EQ(next, 600U);
}

}  // namespace
}  // namespace tutti::session
