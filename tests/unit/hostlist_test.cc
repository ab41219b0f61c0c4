// Host lists give the names that Slurm's own tool gives, accept a text after the last bracket that
// it refuses, and refuse what it lets through.

#include "common/text/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tutti::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names(const std::string& list) {
  auto out = expand_hostlist(list);
  EXPECT_TRUE(out.has_value()) << list << ": " << (out ? "" : out.error().message);
  return out.value_or(std::vector<std::string>{});
}

TEST(Hostlist, ExpandsNumbersRangesAndSeveralGroups) {
  EXPECT_THAT(names("gpu[01-03,7],login1"),
              ElementsAre("gpu01", "gpu02", "gpu03", "gpu7", "login1"));
  EXPECT_THAT(names("rack[1-2]node[01-02]"),
              ElementsAre("rack1node01", "rack1node02", "rack2node01", "rack2node02"));
  EXPECT_THAT(names("x[1-2]-y[3-4],z"), ElementsAre("x1-y3", "x1-y4", "x2-y3", "x2-y4", "z"));
  EXPECT_THAT(names("e[1-2,5]f[3-4]"), ElementsAre("e1f3", "e1f4", "e2f3", "e2f4", "e5f3", "e5f4"));
}

TEST(Hostlist, WidthIsThatOfTheFirstNumberWhenItBeginsWithZero) {
  EXPECT_THAT(names("a[09-11]"), ElementsAre("a09", "a10", "a11"));
  EXPECT_THAT(names("b[1-03]"), ElementsAre("b1", "b2", "b3"));
  EXPECT_THAT(names("c[007-10]"), ElementsAre("c007", "c008", "c009", "c010"));
  EXPECT_THAT(names("d[08,9-10]"), ElementsAre("d08", "d9", "d10"));
  EXPECT_THAT(names("e[098-101]"), ElementsAre("e098", "e099", "e100", "e101"));
}

TEST(Hostlist, TakesATextAfterTheLastBracketBlanksAndEmptyItems) {
  EXPECT_THAT(names("n-[001-003]x"), ElementsAre("n-001x", "n-002x", "n-003x"));
  EXPECT_THAT(names(" a , b"), ElementsAre("a", "b"));
  EXPECT_THAT(names("a1,,b"), ElementsAre("a1", "b"));
  EXPECT_THAT(names(""), IsEmpty());
  EXPECT_THAT(names("host[3]"), ElementsAre("host3"));
  EXPECT_THAT(names("10.77.0.[11-12]"), ElementsAre("10.77.0.11", "10.77.0.12"));
}

TEST(Hostlist, RefusesWhatIsNoListAndNamesTheItem) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"g[10-8]", "backwards"},  {"i[]", "no number"},
      {"h[1", "does not close"}, {"h1]", "did not open"},
      {"h[[1]]", "no number"},   {"h[a-b]", "no number"},
      {"h[1-]", "no number"},    {"h[1-2-3]", "no number"},
      {"h[-3]", "no number"},    {"h[1,]", "no number"},
      {"a b", "blank"},          {"h[99999999999999999999]", "no number"}};
  for (const auto& [list, why] : wrong) {
    const auto out = expand_hostlist("first," + list);
    ASSERT_FALSE(out.has_value()) << list;
    EXPECT_EQ(out.error().code, base::ExitCode::kInput);
    EXPECT_THAT(out.error().message, HasSubstr(why)) << list;
    EXPECT_THAT(out.error().message, HasSubstr(list.substr(0, 2))) << list;
  }
}

TEST(Hostlist, IsBounded) {
  EXPECT_THAT(names("a[1][2][3][4][5][6][7][8]"), ElementsAre("a12345678"));
  EXPECT_FALSE(expand_hostlist("a[1-9][1][1][1][1][1][1][1][1]").has_value());
  EXPECT_EQ(names(std::string(255, 'a')).size(), 1U);
  EXPECT_FALSE(expand_hostlist(std::string(256, 'a').append("[1-65536]")).has_value());
  EXPECT_EQ(names("n[1-65536]").size(), kHostsMax);
  for (const std::string list : {"n[1-65537]", "n[0-999999999999999999]", "n[1-65536],m",
                                 "a[1-300]b[1-300]", "n[1-65536,5]"}) {
    const auto out = expand_hostlist(list);
    ASSERT_FALSE(out.has_value()) << list;
    EXPECT_THAT(out.error().message, HasSubstr("more than 65536")) << list;
  }
}

}  // namespace
}  // namespace tutti::text
