#include <gtest/gtest.h>

#include <set>
#include <unordered_set>

#include "common/base/id.h"

namespace tutti::base {
namespace {

TEST(Id, PrintsHighThenLowAsThirtyTwoLowerCaseDigitsWithLeadingZeros) {
  const Id id{0x0123456789ABCDEFULL, 0xF};
  EXPECT_EQ(id.hex(), "0123456789abcdef000000000000000f");
}

TEST(Id, IsUnsetOnlyWhenBothHalvesAreZero) {
  EXPECT_FALSE(Id{}.is_set());
  EXPECT_TRUE((Id{1, 0}).is_set());
  EXPECT_TRUE((Id{0, 1}).is_set());
}

TEST(Id, OrdersByHighThenLow) {
  EXPECT_LT((Id{1, 9}), (Id{2, 0}));
  EXPECT_LT((Id{1, 1}), (Id{1, 2}));
  EXPECT_EQ((Id{3, 4}), (Id{3, 4}));
}

TEST(FreshId, IsSetAndDoesNotRepeat) {
  std::unordered_set<Id> seen;
  for (int i = 0; i < 1000; ++i) {
    const Id id = fresh_id();
    EXPECT_TRUE(id.is_set());
    EXPECT_TRUE(seen.insert(id).second);
  }
}

TEST(DraftPath, LiesBesideTheFileAndIsNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string draft = draft_path("/some/folder/file");
    EXPECT_EQ(draft.rfind("/some/folder/file.", 0), 0U) << draft;
    EXPECT_EQ(draft.find('/', 14), std::string::npos) << draft;
    seen.insert(draft);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(QueryId, IsThirtyTwoLowerCaseHexDigitsAndAFunctionOfItsInputs) {
  const Id run{7, 8};
  const std::string id = query_id(run, 1, 42);
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(id, query_id(run, 1, 42));
}

TEST(QueryId, NoTwoQueriesOfARunShareOneAndEqualQueriesOfOtherRunsDiffer) {
  std::set<std::string> seen;
  std::size_t made = 0;
  for (const Id& run : {Id{7, 8}, Id{7, 9}, Id{8, 8}}) {
    for (std::uint32_t phase = 0; phase < 4; ++phase) {
      for (std::uint64_t seq = 0; seq < 2000; ++seq) {
        seen.insert(query_id(run, phase, seq));
        ++made;
      }
      // Far ends of the sequence, where a 32-bit slip would show.
      seen.insert(query_id(run, phase, std::uint64_t{1} << 32));
      seen.insert(query_id(run, phase, UINT64_MAX));
      made += 2;
    }
  }
  EXPECT_EQ(seen.size(), made);
}

}  // namespace
}  // namespace tutti::base
