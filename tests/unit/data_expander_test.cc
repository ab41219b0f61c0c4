#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "common/data/dataset.h"
#include "common/data/expander.h"
#include "tests/support/expanded.h"

namespace tutti::data {
namespace {

using test::expand;
using ::testing::HasSubstr;

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 19));
  return out;
}

// Lines that differ, so that they expand to more than one block.
std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "{\"prompt\":\"p" + std::to_string(i * 7919 % 100003) + "\"}\n";
  }
  return text;
}

TEST(ExpanderTest, GivesTheTextOfEveryPackingHoweverItIsCut) {
  const std::string text = lines(15'000);
  const std::string longer = text + text;
  const std::string gz = gzip(text);
  const std::string zst = zstd(text);
  for (const std::size_t piece : {1UL, 3UL, 4096UL, 10'000'000UL}) {
    EXPECT_EQ(expand(text, piece).text, text);
    EXPECT_EQ(expand(gz, piece).text, text);
    EXPECT_EQ(expand(zst, piece).text, text);
    EXPECT_EQ(expand(gz + gz, piece).text, longer) << "members follow each other";
    EXPECT_EQ(expand(zst + zst, piece).text, longer) << "frames follow each other";
    EXPECT_EQ(expand(gz + std::string(1000, '\0'), piece).error, "") << "padding";
  }
  EXPECT_EQ(expand("", 1).text, "");
  EXPECT_EQ(expand("ab", 1).text, "ab") << "shorter than what tells packings apart";
  EXPECT_EQ(expand(gzip(""), 1).error, "");
}

TEST(ExpanderTest, AFileCutAnywhereIsAnError) {
  for (const std::string& whole : {gzip(lines(20)), zstd(lines(20))}) {
    for (std::size_t size = 4; size < whole.size(); ++size) {
      EXPECT_THAT(expand(whole.substr(0, size), 1000).error, HasSubstr("cut")) << size;
    }
  }
}

TEST(ExpanderTest, DamageIsAnError) {
  std::string bad = gzip(lines(20));
  bad[bad.size() - 6] = static_cast<char>(bad[bad.size() - 6] ^ 1);  // in the checksum
  EXPECT_THAT(expand(bad, 1000).error, HasSubstr("not valid gzip data"));
  EXPECT_THAT(expand(gzip("a") + "garbage", 1000).error, HasSubstr("not valid gzip data"));
  EXPECT_THAT(expand(gzip("a") + std::string(3, '\0') + "x", 1000).error, HasSubstr("padding"));
  EXPECT_THAT(expand(zstd("a") + "garbage", 1000).error, HasSubstr("not valid zstd data"));
}

// The library itself overlooks it in a frame that comes in pieces.
TEST(Expander, AZstdFrameThatHoldsLessThanItSaysIsDamagedHoweverItComes) {
  // Says 9,076 bytes; a run of 1,095 zeros and two empty blocks.
  const std::string_view frame("\x28\xB5\x2F\xFD\x70\x74\x22\x3A\x22\0\0\0\0\0\1\0\0", 17);
  for (const std::size_t piece : {1U, 2U, 5U, 7U, 16U, 17U, 100U}) {
    EXPECT_THAT(expand(frame, piece).error, HasSubstr("not valid zstd data")) << piece;
    EXPECT_THAT(expand(zstd("whole") + std::string(frame), piece).error,
                HasSubstr("1095 bytes says that it has 9076"))
        << piece;
  }
}

TEST(ExpanderTest, AWindowThatNeedsTooMuchMemoryIsRefused) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, kWindowLogMax + 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string out(1 << 20, '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  const std::string text = lines(20);
  ZSTD_inBuffer from{text.data(), text.size(), 0};
  ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush);
  from = {text.data(), text.size(), 0};
  ZSTD_compressStream2(context, &to, &from, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  EXPECT_THAT(expand(std::string_view(out).substr(0, to.pos), 1000).error, HasSubstr("--long"));
}

TEST(ExpanderTest, ABombIsRefusedAndASmallFileIsNot) {
  const std::string zeros(32 << 20, ' ');
  const std::string packed = zstd(zeros);
  ASSERT_GT(zeros.size() / packed.size(), kRatioMax);
  const auto bomb = expand(packed, 100, 1 << 20);
  EXPECT_THAT(bomb.error, HasSubstr("expands to more than 2000 times its size"));
  EXPECT_LT(bomb.text.size(), 16U << 20);
  EXPECT_EQ(expand(packed, 100).error, "");
}

TEST(ExpanderTest, StopsWhenTheSinkHasEnough) {
  Expander expander;
  EXPECT_FALSE(expander.feed(gzip(lines(20)), [](std::string_view) { return false; }));
  EXPECT_EQ(expander.error(), "");
}

class PackedDatasetTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  DatasetRequest file(const std::string& name, std::string_view bytes) {
    DatasetRequest request;
    request.path = (folder_ / name).string();
    std::ofstream(request.path, std::ios::binary) << bytes;
    return request;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("tutti_packed_" + std::to_string(::getpid()));
};

TEST_F(PackedDatasetTest, TextFormatsAreReadPackedOrNot) {
  const std::string csv = "prompt,n\na,1\n";
  const std::string json = R"([{"prompt":"a","n":1}])";
  const std::string jsonl = R"({"prompt":"a","n":1})";
  for (const auto& request :
       {file("a.csv.gz", gzip(csv)), file("a.csv.zst", zstd(csv)), file("a.json.gz", gzip(json)),
        file("a.json.zst", zstd(json)), file("a.jsonl.gz", gzip(jsonl)),
        file("a.jsonl.zst", zstd(jsonl)), file("named_as_text.jsonl", gzip(jsonl))}) {
    const auto loaded = load_dataset(request);
    ASSERT_TRUE(loaded) << request.path << loaded.error()[0].remedy;
    EXPECT_EQ(loaded->rows.at(0).cells.to_json(), R"({"prompt":"a","n":1})");
  }
}

TEST_F(PackedDatasetTest, ACutFileIsAnErrorAtItsLine) {
  const std::string whole = gzip(lines(50'000));
  const auto request = file("a.jsonl.gz", std::string_view(whole).substr(0, whole.size() / 2));
  const auto loaded = load_dataset(request);
  ASSERT_FALSE(loaded);
  ASSERT_EQ(loaded.error().size(), 1U);
  EXPECT_THAT(loaded.error()[0].remedy, HasSubstr("the file was cut"));
  const std::string where = loaded.error()[0].where;
  const int line = std::stoi(where.substr(where.rfind(':') + 1));
  EXPECT_GT(line, 10'000);
  EXPECT_LT(line, 40'000);
}

TEST_F(PackedDatasetTest, SamplesStopBeforeWhatIsCut) {
  const std::string whole = zstd(lines(500));
  auto request = file("a.jsonl.zst", whole + "what follows is not read");
  request.samples = 3;
  const auto loaded = load_dataset(request);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->rows.size(), 3U);
}

TEST_F(PackedDatasetTest, ANameThatLiesIsRefused) {
  const auto loaded = load_dataset(file("a.jsonl.gz", R"({"prompt":"a"})"));
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error()[0].remedy, HasSubstr("named .gz"));
  EXPECT_FALSE(load_dataset(file("b.jsonl.zst", gzip(R"({"prompt":"a"})"))));
}

}  // namespace
}  // namespace tutti::data
