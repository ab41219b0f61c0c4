#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "agent/record/recorder.h"

namespace tutti::record {
namespace {

wire::Record numbered(base::Seq seq, std::uint16_t phase = 0) {
  wire::Record record;
  record.seq = seq;
  record.phase = phase;
  record.output.content_rest = std::string(100, static_cast<char>('a' + seq % 26));
  return record;
}

TEST(Recorder, FullIsACountedLossPerPhase) {
  Recorder recorder(2);
  for (base::Seq seq = 0; seq < 2; ++seq) {
    wire::Record record = numbered(seq);
    EXPECT_TRUE(recorder.add(record));
  }
  EXPECT_EQ(recorder.fill_percent(), 100U);
  wire::Record late = numbered(2, 1);
  EXPECT_FALSE(recorder.add(late));
  wire::Record beyond = numbered(3, 5000);
  EXPECT_FALSE(recorder.add(beyond));
  EXPECT_EQ(recorder.lost(), 2U);
  EXPECT_EQ(recorder.lost(0), 0U);
  EXPECT_EQ(recorder.lost(1), 1U);
  EXPECT_EQ(recorder.lost(9999), 1U);
  wire::Record out;
  ASSERT_TRUE(recorder.take(out));
  EXPECT_EQ(out.seq, 0U);
}

TEST(Recorder, EveryRecordCrossesThreadsOnceInOrderAndWhole) {
  constexpr base::Seq kRecords = 20'000;
  Recorder recorder(64);
  std::thread worker([&recorder] {
    for (base::Seq seq = 0; seq < kRecords; ++seq) {
      wire::Record record = numbered(seq);
      while (recorder.size() >= 64) {
        std::this_thread::yield();
      }
      ASSERT_TRUE(recorder.add(record));
    }
  });
  wire::Record out;
  for (base::Seq seq = 0; seq < kRecords;) {
    if (recorder.take(out)) {
      ASSERT_EQ(out.seq, seq);
      ASSERT_EQ(out.output.content_rest, numbered(seq).output.content_rest);
      ++seq;
    } else {
      std::this_thread::yield();
    }
  }
  worker.join();
  EXPECT_EQ(recorder.lost(), 0U);
}

TEST(Recorder, BuffersGivenBackComeToTheNextRecordAndOutsizedOnesDoNot) {
  Recorder recorder(8);
  wire::Record record;
  record.output.content_rest.assign(1000, 'x');
  record.chunk_at.resize(10);
  ASSERT_TRUE(recorder.add(record));
  EXPECT_LT(record.output.content_rest.capacity(), 1000U);
  wire::Record out;
  ASSERT_TRUE(recorder.take(out));
  recorder.give_back(out);
  ASSERT_TRUE(recorder.add(record));
  EXPECT_GE(record.output.content_rest.capacity(), 1000U);
  EXPECT_GE(record.chunk_at.capacity(), 10U);
  ASSERT_TRUE(recorder.take(out));
  out.output.content_rest.assign(Recorder::kSpareBytesMax + 1, 'x');
  recorder.give_back(out);
  ASSERT_TRUE(recorder.add(record));
  EXPECT_LT(record.output.content_rest.capacity(), 1000U);
}

}  // namespace
}  // namespace tutti::record
