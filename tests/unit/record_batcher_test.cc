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
  batcher.flush(base::Instant{1}, true, commands);
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
  batcher.flush(base::Instant{1}, true, commands);
  const auto batches = spooled(commands);
  ASSERT_EQ(batches.size(), 3U);
  const auto encoded = wire::encode(wire::Message(batches[0]));
  EXPECT_TRUE(wire::decode(encoded.plane, encoded.bytes));
}

TEST(RecordBatcher, AFullBatchGoesAtOnceAndTheRestWaitsItsTime) {
  RecordBatcher batcher;
  batcher.add(records(RecordBatcher::kBatchMax + 1, 10), base::Instant{1});
  std::vector<Command> commands;
  batcher.flush(base::Instant{1}, false, commands);
  EXPECT_EQ(spooled(commands).size(), 1U);
  commands.clear();
  batcher.flush(base::Instant{1} + RecordBatcher::kWaitMax, false, commands);
  ASSERT_EQ(spooled(commands).size(), 1U);
  EXPECT_EQ(spooled(commands)[0].records.size(), 1U);
}

}  // namespace
}  // namespace tutti::session
