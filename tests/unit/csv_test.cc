#include "common/text/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tutti::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Outcome {
  std::vector<std::string> records;  // "line:field¦field"
  CsvError error;
};

Outcome read(const std::vector<std::string_view>& pieces, CsvLimits limits = {}) {
  CsvReader reader(limits);
  Outcome out;
  const auto sink = [&out](std::vector<std::string>& fields, std::size_t line) {
    std::string record = std::to_string(line) + ":";
    for (std::size_t i = 0; i < fields.size(); ++i) {
      record += (i == 0 ? "" : "|") + fields[i];
    }
    out.records.push_back(record);
    return true;
  };
  bool going = true;
  for (const std::string_view piece : pieces) {
    going = going && reader.feed(piece, sink);
  }
  if (going) {
    reader.finish(sink);
  }
  out.error = reader.error();
  return out;
}

TEST(Csv, ReadsPlainAndQuotedFields) {
  EXPECT_THAT(read({"a,b\n1,\"x, \"\"y\"\"\"\n"}).records, ElementsAre("1:a|b", "2:1|x, \"y\""));
  EXPECT_THAT(read({"a,b\n,\n\"\",\n"}).records, ElementsAre("1:a|b", "2:|", "3:|"));
  EXPECT_THAT(read({"a"}).records, ElementsAre("1:a"));
  EXPECT_THAT(read({"a,"}).records, ElementsAre("1:a|"));
  EXPECT_THAT(read({""}).records, IsEmpty());
  EXPECT_THAT(read({"5\" disk,b\"c\"\n"}).records, ElementsAre("1:5\" disk|b\"c\""));
}

TEST(Csv, CountsLinesThroughQuotedLineEnds) {
  EXPECT_THAT(read({"h\r\n\"one\r\ntwo\"\r\n\r\n\nlast\r\n"}).records,
              ElementsAre("1:h", "2:one\r\ntwo", "6:last"));
  EXPECT_THAT(read({"a\rb\r"}).records, ElementsAre("1:a", "2:b"));
}

TEST(Csv, SkipsABomAndKeepsWhatOnlyLooksLikeOne) {
  EXPECT_THAT(read({"\xEF\xBB\xBF"
                    "a\n"})
                  .records,
              ElementsAre("1:a"));
  EXPECT_THAT(read({"\xEF\xBB"
                    "a\n"})
                  .records,
              ElementsAre("1:\xEF\xBB"
                          "a"));
  EXPECT_THAT(read({"\xEF"}).records, ElementsAre("1:\xEF"));
}

TEST(Csv, NamesTheLineOfAnError) {
  const Outcome unclosed = read({"a\nb\n\"open\nnever"});
  EXPECT_EQ(unclosed.error.line, 3U);
  EXPECT_THAT(unclosed.error.reason, HasSubstr("never closed"));
  EXPECT_THAT(unclosed.records, ElementsAre("1:a", "2:b"));
  const Outcome after = read({"a\n\"b\"c\nd\n"});
  EXPECT_EQ(after.error.line, 2U);
  EXPECT_THAT(after.records, ElementsAre("1:a"));
  EXPECT_EQ(read({"abcd\n"}, {3, 10}).error.line, 1U);
  EXPECT_EQ(read({"a,b,c\n"}, {10, 2}).error.line, 1U);
  EXPECT_EQ(read({"a,b\n"}, {10, 2}).error.line, 0U);
}

TEST(Csv, GivesTheSameRecordsForEverySplit) {
  const std::string_view text = "\xEF\xBB\xBFx,y\r\n\"a\"\"\r\n,\",\xC3\xA9\n\n\"\",z\rlast,\"q\"";
  const Outcome whole = read({text});
  ASSERT_EQ(whole.error.line, 0U) << whole.error.reason;
  ASSERT_EQ(whole.records.size(), 4U);
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      EXPECT_EQ(read({text.substr(0, i), text.substr(i, j - i), text.substr(j)}).records,
                whole.records)
          << i << ' ' << j;
    }
  }
}

TEST(Csv, StopsWhenTheSinkSaysSo) {
  CsvReader reader;
  int n = 0;
  const auto sink = [&n](std::vector<std::string>&, std::size_t) { return ++n < 2; };
  EXPECT_FALSE(reader.feed("a\nb\nc\nd\n", sink));
  EXPECT_FALSE(reader.finish(sink));
  EXPECT_EQ(n, 2);
  EXPECT_TRUE(reader.stopped_by_sink());
}

}  // namespace
}  // namespace tutti::text
