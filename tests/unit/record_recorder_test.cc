#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "agent/record/recorder.h"

namespace tutti::record {
namespace {

std::unique_ptr<wire::Record> numbered(base::Seq seq, std::uint16_t phase = 0) {
  auto record = std::make_unique<wire::Record>();
  record->seq = seq;
  record->phase = phase;
  record->output.content_rest = std::string(100, static_cast<char>('a' + seq % 26));
  return record;
}

TEST(Recorder, FullIsACountedLossPerPhase) {
  Recorder recorder(2);
  for (base::Seq seq = 0; seq < 2; ++seq) {
    auto record = numbered(seq);
    EXPECT_TRUE(recorder.add(record));
  }
  EXPECT_EQ(recorder.fill_percent(), 100U);
  auto late = numbered(2, 1);
  EXPECT_FALSE(recorder.add(late));
  ASSERT_TRUE(late);  // lost to the report, but still there to be reused
  auto beyond = numbered(3, 5000);
  EXPECT_FALSE(recorder.add(beyond));
  EXPECT_EQ(recorder.lost(), 2U);
  EXPECT_EQ(recorder.lost(0), 0U);
  EXPECT_EQ(recorder.lost(1), 1U);
  EXPECT_EQ(recorder.lost(9999), 1U);
  const auto out = recorder.take();
  ASSERT_TRUE(out);
  EXPECT_EQ(out->seq, 0U);
}

TEST(Recorder, EveryRecordCrossesThreadsOnceInOrderAndWhole) {
  constexpr base::Seq kRecords = 20'000;
  Recorder recorder(64);
  std::thread worker([&recorder] {
    for (base::Seq seq = 0; seq < kRecords; ++seq) {
      auto record = numbered(seq);
      while (recorder.size() >= 64) {
        std::this_thread::yield();
      }
      ASSERT_TRUE(recorder.add(record));
    }
  });
  for (base::Seq seq = 0; seq < kRecords;) {
    if (auto out = recorder.take()) {
      ASSERT_EQ(*out, *numbered(seq));
      recorder.give_back(std::move(out));
      ++seq;
    } else {
      std::this_thread::yield();
    }
  }
  worker.join();
  EXPECT_EQ(recorder.lost(), 0U);
}

TEST(Recorder, AReadRecordComesBackToTheWorkerAndAnOutsizedOneDoesNot) {
  Recorder recorder(8);
  auto record = std::make_unique<wire::Record>();
  record->output.content_rest.assign(1000, 'x');
  record->chunk_at.resize(10);
  const wire::Record* const first = record.get();
  ASSERT_TRUE(recorder.add(record));
  ASSERT_TRUE(record);
  EXPECT_NE(record.get(), first);
  auto out = recorder.take();
  ASSERT_EQ(out.get(), first);
  recorder.give_back(std::move(out));
  ASSERT_TRUE(recorder.add(record));
  EXPECT_EQ(record.get(), first);
  EXPECT_GE(record->output.content_rest.capacity(), 1000U);
  out = recorder.take();
  out->output.content_rest.assign(Recorder::kSpareBytesMax + 1, 'x');
  recorder.give_back(std::move(out));
  ASSERT_TRUE(recorder.add(record));
  EXPECT_LT(record->output.content_rest.capacity(), 1000U);
  EXPECT_FALSE(recorder.take() == nullptr);
  EXPECT_EQ(recorder.take(), nullptr);
}

}  // namespace
}  // namespace tutti::record
