// ReplyCounter: what goes in comes out once, counted as the tokenizer counts it; a dropped queue is
// silent afterwards; what finds no room is said at once.

#include "agent/session/reply_counter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "common/model/model_files.h"
#include "common/model/reply_tokens.h"

namespace tutti::session {
namespace {

class Counting : public testing::Test {
 protected:
  void SetUp() override {
    if (!model::has_tokenizers()) {
      GTEST_SKIP() << "NOT TESTED: this build has no Rust part; install cargo";
    }
  }
  static model::TokenCounter tiny() {
    const auto files =
        model::read_model_files(std::string(TUTTI_SOURCE_DIR) + "/tests/support/tiny_model");
    return model::TokenCounter::open(files.value()).value();
  }
  static ReplyTask reply(base::Seq seq) {
    ReplyTask task;
    task.phase = 3;
    task.seq = seq;
    task.text.content_first = "Hello";
    for (base::Seq i = 0; i < seq % 40; ++i) {
      task.text.content_rest += fmt::format(" and word {}", i);
    }
    if (seq % 3 == 0) {
      task.text.reasoning_first = "Hm";
      task.text.reasoning_rest = ", let me think";
    }
    return task;
  }
  // Until so many are answered.
  static RepliesCounted all_of(ReplyCounter& counter, std::size_t replies) {
    RepliesCounted all;
    while (all.counts.size() + all.uncounted < replies) {
      RepliesCounted some;
      if (!counter.take(some)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      all.counts.insert(all.counts.end(), some.counts.begin(), some.counts.end());
      all.uncounted += some.uncounted;
    }
    return all;
  }
};

TEST_F(Counting, EachReplyComesBackOnceWithWhatTheTokenizerSays) {
  constexpr std::size_t kReplies = 600;
  const model::TokenCounter alone = tiny();
  for (const std::size_t threads : {std::size_t{1}, std::size_t{3}}) {
    ReplyCounter counter(tiny(), threads);
    for (base::Seq seq = 0; seq < kReplies; ++seq) {
      std::vector<ReplyTask> one;
      one.push_back(reply(seq));
      counter.add(std::move(one));
    }
    const RepliesCounted all = all_of(counter, kReplies);
    EXPECT_EQ(all.uncounted, 0U);
    std::map<base::Seq, wire::TokenCount> by_seq;
    for (const auto& count : all.counts) {
      by_seq.emplace(count.seq, count);
    }
    ASSERT_EQ(by_seq.size(), kReplies);
    for (base::Seq seq = 0; seq < kReplies; ++seq) {
      const ReplyTask task = reply(seq);
      const auto expected = model::count_reply(
          alone, {task.text.content_first, task.text.content_rest, task.text.reasoning_first,
                  task.text.reasoning_rest, task.text.tool_calls});
      EXPECT_EQ(by_seq[seq].phase, 3U);
      EXPECT_EQ(by_seq[seq].output, expected->output) << seq;
      EXPECT_EQ(by_seq[seq].after_first, expected->after_first) << seq;
      EXPECT_EQ(by_seq[seq].without_template, expected->without_template) << seq;
    }
    EXPECT_EQ(counter.counted(), kReplies);
    EXPECT_GT(counter.cpu().ns, 0);
    const auto peak = counter.take_peak();
    EXPECT_GT(peak.replies, 0U);
    EXPECT_GT(peak.bytes, 0U);
    EXPECT_EQ(counter.take_peak().replies, 0U) << "all are back";
    RepliesCounted more;
    EXPECT_FALSE(counter.take(more));
  }
}

TEST_F(Counting, ADroppedQueueIsNotSpokenOfAndLaterRepliesAre) {
  ReplyCounter counter(tiny(), 1);
  std::vector<ReplyTask> many;
  for (base::Seq seq = 0; seq < 20'000; ++seq) {
    many.push_back(reply(seq));
  }
  counter.add(std::move(many));
  RepliesCounted before;
  counter.take(before);
  counter.drop();
  const std::uint64_t told = before.counts.size();
  EXPECT_EQ(counter.counted(), told);
  EXPECT_EQ(counter.uncounted(), 20'000 - told);
  std::vector<ReplyTask> one;
  one.push_back(reply(77'777));
  counter.add(std::move(one));
  const RepliesCounted after = all_of(counter, 1);
  ASSERT_EQ(after.counts.size(), 1U);
  EXPECT_EQ(after.counts[0].seq, 77'777U);
}

// Under load the first threads may get no time at all for long; whoever comes after them has the
// whole queue.
TEST_F(Counting, AHurryInTheMiddleLosesAndDoublesNothing) {
  constexpr std::size_t kReplies = 3000;
  ReplyCounter counter(tiny(), 2);
  base::Duration cpu{};
  for (base::Seq seq = 0; seq < kReplies; ++seq) {
    std::vector<ReplyTask> one;
    one.push_back(reply(seq));
    counter.add(std::move(one));
    if (seq == kReplies / 2) {
      counter.hurry();
      counter.hurry();  // twice is once
    }
    const base::Duration now = counter.cpu();
    EXPECT_GE(now, cpu) << "a clock that only grows";
    cpu = now;
  }
  std::map<base::Seq, int> seen;
  for (const auto& count : all_of(counter, kReplies).counts) {
    ++seen[count.seq];
  }
  EXPECT_EQ(seen.size(), kReplies);
  EXPECT_EQ(counter.counted(), kReplies);
}

TEST_F(Counting, WhatFindsNoRoomIsGivenBackUncounted) {
  ReplyCounter counter(tiny(), 1);
  std::vector<ReplyTask> large(1);
  large[0].text.content_first.assign(ReplyCounter::kBytesMax + 1, 'x');
  counter.add(std::move(large));
  RepliesCounted none;
  ASSERT_TRUE(counter.take(none));
  EXPECT_EQ(none.uncounted, 1U);
  EXPECT_TRUE(none.counts.empty());
  EXPECT_EQ(counter.uncounted(), 1U);
}

TEST(ReplyCounter, TakesTheCoresThatWorkersAndSessionLeave) {
  EXPECT_EQ(ReplyCounter::threads_for(2, 1), 1U);
  EXPECT_EQ(ReplyCounter::threads_for(1, 8), 1U);
  EXPECT_EQ(ReplyCounter::threads_for(4, 1), 2U);
  EXPECT_EQ(ReplyCounter::threads_for(64, 8), 4U);
}

}  // namespace
}  // namespace tutti::session
