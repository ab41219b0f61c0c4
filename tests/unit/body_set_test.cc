#include "common/data/body_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/random.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

class BodySetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("tutti_bodies_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "bodies").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  BodySetInfo write(const std::vector<BodyRow>& rows) {
    auto writer = BodySetWriter::create(path_);
    EXPECT_TRUE(writer);
    for (const BodyRow& row : rows) {
      EXPECT_TRUE(writer->add(row.body, row.splice));
    }
    auto info = writer->finish();
    EXPECT_TRUE(info);
    return *info;
  }

  std::string bytes() const {
    std::ostringstream out;
    out << std::ifstream(path_, std::ios::binary).rdbuf();
    return out.str();
  }

  std::filesystem::path folder_;
  std::string path_;
};

const std::vector<BodyRow> kRows{{R"({"p":"Hi"})", 6}, {R"({"p":[1]})", -1}, {"x", -1}};

TEST_F(BodySetTest, GivesBackWhatWasWritten) {
  const BodySetInfo info = write(kRows);
  EXPECT_EQ(info.rows, 3U);
  EXPECT_EQ(info.hash.size(), 32U);
  EXPECT_EQ(info.file_bytes, std::filesystem::file_size(path_));
  const auto set = BodySet::open(path_, info.hash);
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_EQ(set->rows(), 3U);
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    EXPECT_EQ(set->row(i).body, kRows[i].body);
    EXPECT_EQ(set->row(i).splice, kRows[i].splice);
  }
  EXPECT_EQ(set->hash(), info.hash);
  EXPECT_EQ(set->file(), bytes());
}

TEST_F(BodySetTest, TheHashNamesTheContent) {
  const BodySetInfo first = write(kRows);
  const std::string first_bytes = bytes();
  EXPECT_EQ(write(kRows).hash, first.hash);
  EXPECT_EQ(bytes(), first_bytes);
  EXPECT_NE(write({kRows[1], kRows[0], kRows[2]}).hash, first.hash);
  EXPECT_NE(write({{kRows[0].body, -1}, kRows[1], kRows[2]}).hash, first.hash);
  const auto other = BodySet::open(path_, first.hash);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("other content"));
}

TEST_F(BodySetTest, HoldsNoRowsAndManyRows) {
  write({});
  const auto none = BodySet::open(path_);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->rows(), 0U);
  auto writer = BodySetWriter::create(path_);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(writer->add("body " + std::to_string(i), -1));
  }
  ASSERT_TRUE(writer->finish());
  const auto many = BodySet::open(path_);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->row(4999).body, "body 4999");
}

TEST_F(BodySetTest, SurvivesAMove) {
  write(kRows);
  BodySet moved;
  {
    auto set = BodySet::open(path_);
    ASSERT_TRUE(set);
    moved = std::move(*set);
  }
  EXPECT_EQ(moved.row(0).body, kRows[0].body);
}

TEST_F(BodySetTest, LeavesNothingBehindWhenNotFinished) {
  {
    auto writer = BodySetWriter::create(path_);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add("x", -1));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_FALSE(BodySetWriter::create((folder_ / "no" / "such").string()));
}

TEST_F(BodySetTest, RefusesImpossibleRows) {
  auto writer = BodySetWriter::create(path_);
  EXPECT_FALSE(writer->add("", -1));
  EXPECT_FALSE(writer->add("\"a\"", 0));
  EXPECT_FALSE(writer->add("\"a\"", 2));  // not behind a quote
  EXPECT_FALSE(writer->add("\"a\"", 3));  // behind the last byte
  EXPECT_FALSE(writer->add("\"a\"", -2));
  EXPECT_TRUE(writer->add("\"a\"", 1));
}

TEST_F(BodySetTest, RefusesEveryDamagedFile) {
  write(kRows);
  const std::string good = bytes();
  ASSERT_TRUE(BodySet::over(good));
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(BodySet::over(std::string_view(good).substr(0, i))) << "cut at " << i;
    for (const char flip : {'\x01', '\x80', '\xFF'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      ASSERT_FALSE(BodySet::over(bad)) << "byte " << i;
    }
  }
  EXPECT_FALSE(BodySet::over(good + "x"));
  EXPECT_FALSE(BodySet::over(good + std::string(16, '\0')));
}

// Damage whose author also put the right hash in: the checks behind the hash stand alone.
TEST_F(BodySetTest, RefusesHostileIndexesWithTheRightHash) {
  write(kRows);
  const std::string good = bytes();
  constexpr std::size_t kHeader = 64;
  const std::size_t body_bytes = kRows[0].body.size() + kRows[1].body.size() + 1;
  const std::size_t index = good.size() - 3 * 16;
  const auto rehashed = [&](std::string file) {
    const std::string content = file.substr(kHeader, body_bytes) + file.substr(index);
    const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
    std::memcpy(file.data() + 40, &hash.high64, 8);
    std::memcpy(file.data() + 48, &hash.low64, 8);
    return file;
  };
  const auto with = [&](std::size_t row, std::size_t field, std::uint32_t value) {
    std::string file = good;
    std::memcpy(file.data() + index + row * 16 + field, &value, 4);
    return rehashed(file);
  };
  constexpr std::size_t kOffset = 0;
  constexpr std::size_t kLength = 8;
  constexpr std::size_t kSplice = 12;
  ASSERT_TRUE(BodySet::over(rehashed(good)));
  EXPECT_TRUE(BodySet::over(with(0, kSplice, 2)));  // behind another quote: harmless
  EXPECT_FALSE(BodySet::over(with(0, kSplice, 3)));
  EXPECT_FALSE(BodySet::over(with(0, kSplice, 100000)));
  EXPECT_FALSE(BodySet::over(with(0, kSplice, 0x80000000U)));
  EXPECT_FALSE(BodySet::over(with(2, kLength, 2)));  // beyond the bodies
  EXPECT_FALSE(BodySet::over(with(2, kLength, 0xFFFFFFFFU)));
  EXPECT_FALSE(BodySet::over(with(2, kLength, 0)));
  EXPECT_FALSE(BodySet::over(with(1, kOffset, kHeader)));  // overlaps row 0
  EXPECT_FALSE(BodySet::over(with(2, kOffset, 0xFFFFFFF0U)));
  EXPECT_FALSE(BodySet::over(with(1, kOffset + 4, 1)));  // the offset's upper half
}

TEST_F(BodySetTest, RefusesFilesThatAreNone) {
  EXPECT_FALSE(BodySet::open(path_));
  std::ofstream(path_) << "";
  EXPECT_FALSE(BodySet::open(path_));
  std::ofstream(path_) << std::string(200, 'x');
  const auto set = BodySet::open(path_);
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr(path_));
  EXPECT_FALSE(BodySet::open(folder_.string()));
}

}  // namespace
}  // namespace tutti::data
