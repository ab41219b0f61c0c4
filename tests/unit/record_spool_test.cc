#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "agent/record/spool.h"
#include "common/wire/spool_file.h"

namespace tutti::record {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const base::Id kRun{0x0123456789abcdef, 0xfedcba9876543210};

class SpoolTest : public testing::Test {
 protected:
  SpoolTest() {
    std::string name = (fs::temp_directory_path() / "tutti-spool-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~SpoolTest() override { fs::remove_all(directory_); }

  Spool make(SpoolLimits limits = {}) {
    auto spool = Spool::create(directory_, kRun, 7, limits);
    EXPECT_TRUE(spool.has_value());
    return std::move(*spool);
  }
  // Numbers of the batches in the directory; texts_ and scan_ have the rest.
  std::vector<std::uint64_t> read() {
    std::vector<std::uint64_t> numbers;
    texts_.clear();
    notes_.clear();
    auto scan = wire::read_spool(directory_, [&](const wire::SpoolFrame& batch) {
      EXPECT_EQ(batch.run, kRun);
      EXPECT_EQ(batch.agent, 7U);
      if (batch.number == wire::kSpoolNote) {
        notes_.emplace_back(batch.bytes);
        return;
      }
      numbers.push_back(batch.number);
      texts_.emplace_back(batch.bytes);
    });
    EXPECT_TRUE(scan.has_value());
    scan_ = std::move(*scan);
    return numbers;
  }
  fs::path only_file() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      files.push_back(entry.path());
    }
    EXPECT_EQ(files.size(), 1U);
    return files.at(0);
  }
  static std::string slurp(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void spill(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  fs::path directory_;
  std::vector<std::string> texts_;
  std::vector<std::string> notes_;
  wire::SpoolScan scan_;
};

TEST_F(SpoolTest, ReadsBackWhatWasAppended) {
  Spool spool = make();
  const std::string binary("\0TUTTISPL\xff\n", 11);
  ASSERT_TRUE(spool.append(1, "one"));
  ASSERT_TRUE(spool.append(2, ""));
  ASSERT_TRUE(spool.append(3, binary));
  EXPECT_THAT(read(), ElementsAre(1, 2, 3));
  EXPECT_THAT(texts_, ElementsAre("one", "", binary));
  EXPECT_TRUE(scan_.skipped.empty());
  EXPECT_EQ(scan_.bytes, 3 + binary.size());
}

TEST_F(SpoolTest, WhatIsStoredElsewhereStaysUntilTheReleaseAndThenGoesBySegments) {
  Spool spool = make({1 << 20, 100});
  for (std::uint64_t batch = 1; batch <= 6; ++batch) {
    ASSERT_TRUE(spool.append(batch, std::string(60, 'x')));  // 116 bytes a frame: one per segment
  }
  EXPECT_EQ(spool.segments(), 6U);
  const std::uint64_t full = spool.bytes_on_disk();
  spool.forget(4);
  EXPECT_THAT(read(), ElementsAre(1, 2, 3, 4, 5, 6));
  spool.release();
  EXPECT_THAT(read(), ElementsAre(5, 6));
  EXPECT_EQ(spool.bytes_on_disk(), full / 3);
  spool.forget(6);
  EXPECT_TRUE(read().empty());
  ASSERT_TRUE(spool.append(7, "again"));
  EXPECT_THAT(read(), ElementsAre(7));
  spool.discard();
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(SpoolTest, ABatchWhoseSegmentIsHalfStoredStays) {
  Spool spool = make();
  ASSERT_TRUE(spool.append(1, "one"));
  ASSERT_TRUE(spool.append(2, "two"));
  spool.forget(1);
  spool.release();
  EXPECT_THAT(read(), ElementsAre(1, 2));
}

TEST_F(SpoolTest, EverySegmentBeginsWithAllNotesSoFar) {
  Spool spool = make({1 << 20, 200});
  ASSERT_TRUE(spool.note("who"));
  EXPECT_TRUE(read().empty());
  EXPECT_THAT(notes_, ElementsAre("who"));
  ASSERT_TRUE(spool.append(1, std::string(150, 'x')));
  ASSERT_TRUE(spool.note("what"));
  ASSERT_TRUE(spool.append(2, std::string(150, 'x')));
  EXPECT_EQ(spool.segments(), 2U);
  EXPECT_THAT(read(), ElementsAre(1, 2));
  EXPECT_THAT(notes_, ElementsAre("who", "what", "who", "what"));
  spool.forget(2);
  spool.release();
  EXPECT_TRUE(fs::is_empty(directory_));
  ASSERT_TRUE(spool.note("nobody asks any more"));
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(SpoolTest, RoomIsMadeFromWhatIsStoredElsewhereAndOnlyFromThat) {
  Spool spool = make({400, 100});
  for (std::uint64_t batch = 1; batch <= 2; ++batch) {
    ASSERT_TRUE(spool.append(batch, std::string(100, 'x')));
  }
  spool.forget(1);
  ASSERT_TRUE(spool.append(3, std::string(100, 'x')));
  EXPECT_EQ(spool.given_up_to(), 1U);
  EXPECT_THAT(read(), ElementsAre(2, 3));
  EXPECT_FALSE(spool.append(4, std::string(100, 'x')));
  EXPECT_THAT(read(), ElementsAre(2, 3)) << "nobody else has these";
}

// However far behind the coordinator's word is: what is not stored there stays, whole and in order.
TEST_F(SpoolTest, OfTheOnlySegmentRoomIsMadeFromThePartThatIsStoredElsewhere) {
  const std::string text(100, 'x');
  const std::uint64_t frame = wire::kSpoolHeaderBytes + text.size();
  for (std::uint64_t behind = 1; behind <= 4; ++behind) {
    Spool spool = make({.bytes_max = 10 * frame, .segment_bytes = 1 << 20});
    ASSERT_TRUE(spool.note("whose"));
    std::uint64_t batch = 0;
    for (int i = 0; i < 100; ++i) {
      ++batch;
      ASSERT_TRUE(spool.append(batch, std::to_string(batch) + text.substr(3))) << batch;
      spool.forget(batch - std::min(batch, behind));
      EXPECT_LE(spool.bytes_on_disk(), 10 * frame);
    }
    const auto numbers = read();
    EXPECT_EQ(notes_, std::vector<std::string>{"whose"});
    EXPECT_TRUE(scan_.skipped.empty());
    ASSERT_FALSE(numbers.empty());
    EXPECT_EQ(numbers.front(), spool.given_up_to() + 1);
    EXPECT_LE(numbers.front(), batch - behind + 1);
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      EXPECT_EQ(numbers[k], numbers.front() + k);
      EXPECT_EQ(texts_[k], std::to_string(numbers[k]) + text.substr(3));
    }
    EXPECT_EQ(numbers.back(), batch);
    spool.discard();
  }
}

TEST_F(SpoolTest, APartThatIsSmallerThanWhatStaysIsNotGivenUp) {
  const std::string text(100, 'x');
  const std::uint64_t frame = wire::kSpoolHeaderBytes + text.size();
  Spool spool = make({.bytes_max = 10 * frame, .segment_bytes = 1 << 20});
  for (std::uint64_t batch = 1; batch <= 10; ++batch) {
    ASSERT_TRUE(spool.append(batch, text));
  }
  spool.forget(4);
  EXPECT_FALSE(spool.append(11, text));
  EXPECT_EQ(read().size(), 10U);
  spool.forget(5);
  EXPECT_TRUE(spool.append(11, text));
  EXPECT_THAT(read(), ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST_F(SpoolTest, DiskLimitIsAClearErrorAndFreedByForget) {
  Spool spool = make({400, 100});
  ASSERT_TRUE(spool.append(1, std::string(100, 'x')));
  ASSERT_TRUE(spool.append(2, std::string(100, 'x')));
  const auto refused = spool.append(3, std::string(100, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is full"));
  EXPECT_THAT(refused.error().message, HasSubstr("312 of 400 bytes"));
  EXPECT_THAT(read(), ElementsAre(1, 2));
  spool.forget(1);
  EXPECT_TRUE(spool.append(3, std::string(100, 'x')));
  EXPECT_THAT(read(), ElementsAre(2, 3));
}

TEST_F(SpoolTest, EveryTornTailLosesOnlyItsOwnBatchAndIsNamed) {
  {
    Spool spool = make();
    ASSERT_TRUE(spool.append(1, "first batch"));
    ASSERT_TRUE(spool.append(2, "second batch"));
  }
  const fs::path file = only_file();
  const std::string whole = slurp(file);
  const std::size_t second = 56 + 11;
  for (std::size_t cut = second + 1; cut < whole.size(); ++cut) {
    spill(file, whole.substr(0, cut));
    ASSERT_THAT(read(), ElementsAre(1)) << cut;
    ASSERT_EQ(scan_.skipped.size(), 1U) << cut;
    ASSERT_THAT(scan_.skipped[0], HasSubstr("offset 67"));
  }
  spill(file, whole.substr(0, second));
  EXPECT_THAT(read(), ElementsAre(1));
  EXPECT_TRUE(scan_.skipped.empty());
}

TEST_F(SpoolTest, AnyChangedByteLosesOneBatchAndTheNextIsFound) {
  {
    Spool spool = make();
    for (std::uint64_t batch = 1; batch <= 3; ++batch) {
      ASSERT_TRUE(spool.append(batch, "batch"));
    }
  }
  const fs::path file = only_file();
  const std::string whole = slurp(file);
  const std::size_t frame = 56 + 5;
  for (std::size_t at = frame; at < 2 * frame; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    spill(file, damaged);
    ASSERT_THAT(read(), ElementsAre(1, 3)) << at;
    ASSERT_EQ(scan_.skipped.size(), 1U);
    ASSERT_THAT(scan_.skipped[0], HasSubstr("61 bytes skipped"));
  }
}

TEST_F(SpoolTest, UnreadablePlacesAreErrors) {
  EXPECT_FALSE(wire::read_spool(directory_ / "missing.spool", [](const wire::SpoolFrame&) {}));
  EXPECT_FALSE(Spool::create("/proc/no-such-place", kRun, 1));
  const fs::path file = directory_ / "file";
  spill(file, "x");
  EXPECT_FALSE(Spool::create(file.string(), kRun, 1));
}

TEST_F(SpoolTest, NeverWritesOverAnOlderFile) {
  Spool first = make();
  ASSERT_TRUE(first.append(1, "one"));
  Spool second = make();
  const auto refused = second.append(1, "other");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("exists"));
  EXPECT_THAT(read(), ElementsAre(1));
  EXPECT_EQ(texts_[0], "one");
}

}  // namespace
}  // namespace tutti::record
