// A body set arrives whole or not at all: what is sent in slices is the same set under the same
// hash, and damage, disorder and excess are refused without leaving a file behind.

#include "common/data/body_transfer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

class BodyTransfer : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        fmt::format("bodies-{}", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    auto writer = BodySetWriter::create(folder_ / "made.bodies");
    for (int i = 0; i < 20000; ++i) {
      const std::string filler(static_cast<std::size_t>(i % 200), 'x');
      const auto body = fmt::format(R"({{"prompt":"row {} {}"}})", i, filler);
      ASSERT_TRUE(writer->add(body, 11));
    }
    info_ = *writer->finish();
    set_ = *BodySet::open(folder_ / "made.bodies", info_.hash);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t cached_files() const {
    std::size_t n = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache")) {
      static_cast<void>(entry);
      ++n;
    }
    return n;
  }

  fs::path folder_;
  BodySetInfo info_;
  BodySet set_;
};

TEST_F(BodyTransfer, SlicesMakeTheSameSetAndTheNextRunFindsIt) {
  ASSERT_GT(info_.file_bytes, 2 * kSliceBytes) << "the set must need several slices";
  BodyCache cache(folder_ / "cache");
  EXPECT_FALSE(cache.find(info_.hash));
  ASSERT_TRUE(cache.begin(info_.hash, info_.file_bytes));
  for (std::size_t at = 0; at < set_.file().size(); at += kSliceBytes) {
    ASSERT_TRUE(cache.add(at, compress_slice(set_.file().substr(at, kSliceBytes))));
  }
  const auto got = cache.finish();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->file(), set_.file());
  BodyCache later(folder_ / "cache");
  ASSERT_TRUE(later.find(info_.hash));
  EXPECT_EQ(cached_files(), 1U);
}

// Two agents on hosts that share their home folder, and in containers also their process id.
TEST_F(BodyTransfer, TwoReceiversOfOneSetInOneFolderDoNotMeet) {
  BodyCache one(folder_ / "cache");
  BodyCache two(folder_ / "cache");
  ASSERT_TRUE(one.begin(info_.hash, info_.file_bytes));
  ASSERT_TRUE(two.begin(info_.hash, info_.file_bytes));
  for (std::size_t at = 0; at < set_.file().size(); at += kSliceBytes) {
    const std::string slice = compress_slice(set_.file().substr(at, kSliceBytes));
    ASSERT_TRUE(one.add(at, slice));
    ASSERT_TRUE(two.add(at, slice));
  }
  const auto first = one.finish();
  ASSERT_TRUE(first) << first.error().message;
  const auto second = two.finish();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(first->file(), set_.file()) << "the first set stays readable under the second's rename";
  EXPECT_EQ(second->file(), set_.file());
  EXPECT_EQ(cached_files(), 1U);
}

TEST_F(BodyTransfer, WhatAKilledReceiverLeftGoesAfterADayAndNothingElse) {
  fs::create_directories(folder_ / "cache");
  const auto age = [](const fs::path& path, int hours) {
    std::ofstream(path) << "x";
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  age(folder_ / "cache/a.bodies.0.draft", 25);
  age(folder_ / "cache/b.bodies.1.draft", 23);
  age(folder_ / "cache/c.bodies", 1000);
  BodyCache cache(folder_ / "cache");
  ASSERT_TRUE(cache.begin(info_.hash, info_.file_bytes));
  EXPECT_FALSE(fs::exists(folder_ / "cache/a.bodies.0.draft"));
  EXPECT_TRUE(fs::exists(folder_ / "cache/b.bodies.1.draft")) << "somebody may be writing it";
  EXPECT_TRUE(fs::exists(folder_ / "cache/c.bodies"));
}

TEST_F(BodyTransfer, DisorderExcessAndShortnessAreRefused) {
  BodyCache cache(folder_ / "cache");
  ASSERT_TRUE(cache.begin(info_.hash, info_.file_bytes));
  const auto slice = compress_slice(set_.file().substr(0, kSliceBytes));
  EXPECT_FALSE(cache.add(5, slice));
  ASSERT_TRUE(cache.add(0, slice));
  EXPECT_FALSE(cache.add(0, slice));
  EXPECT_FALSE(cache.finish());
  ASSERT_TRUE(cache.begin(info_.hash, 10));
  EXPECT_FALSE(cache.add(0, slice));
}

TEST_F(BodyTransfer, AWrongHashIsFoundAtTheEnd) {
  BodyCache cache(folder_ / "cache");
  const std::string other(32, 'a');
  ASSERT_TRUE(cache.begin(other, info_.file_bytes));
  for (std::size_t at = 0; at < set_.file().size(); at += kSliceBytes) {
    ASSERT_TRUE(cache.add(at, compress_slice(set_.file().substr(at, kSliceBytes))));
  }
  EXPECT_FALSE(cache.finish());
  EXPECT_FALSE(cache.find(other));
  EXPECT_FALSE(cache.begin("../../etc/passwd", 10)) << "a name is never a path";
}

TEST_F(BodyTransfer, DamagedSlicesNeverExpand) {
  std::string slice = compress_slice(set_.file().substr(0, kSliceBytes));
  for (std::size_t at = 0; at < slice.size(); at += 997) {
    std::string damaged = slice;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    BodyCache cache(folder_ / "cache");
    ASSERT_TRUE(cache.begin(info_.hash, kSliceBytes));
    // zstd frames carry no checksum here: a flip may expand to other bytes, which the hash finds.
    if (cache.add(0, damaged)) {
      EXPECT_FALSE(cache.finish());
    }
  }
  EXPECT_FALSE(expand_slice(""));
  EXPECT_FALSE(expand_slice(std::string(100, '\0')));
  EXPECT_FALSE(expand_slice(compress_slice(std::string(kSliceBytes + 1, 'x'))));
}

}  // namespace
}  // namespace tutti::data
