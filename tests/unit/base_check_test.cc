#include <gtest/gtest.h>

#include "common/base/check.h"

namespace tutti::base {
namespace {

TEST(Check, AKeptPromiseEvaluatesItsExpressionOnceAndGoesOn) {
  int evaluations = 0;
  TUTTI_CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

TEST(Check, ABrokenPromiseEndsTheProcessNamingFileAndPromise) {
  const int slots = 3;
  EXPECT_DEATH(TUTTI_CHECK(slots == 4), "base_check_test.cc:[0-9]+: promise broken: slots == 4");
}

TEST(Check, WorksAsTheBodyOfAnIfWithoutSwallowingTheElse) {
  bool took_else = false;
  if (took_else)
    TUTTI_CHECK(true);
  else
    took_else = true;
  EXPECT_TRUE(took_else);
}

}  // namespace
}  // namespace tutti::base
