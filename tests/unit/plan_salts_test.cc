#include <gtest/gtest.h>

#include "common/plan/salts.h"

namespace tutti::plan {
namespace {

TEST(SaltText, IsABracketedSixteenDigitLowerCaseWordAndASpace) {
  EXPECT_EQ(view(salt_text(0)), "[0000000000000000] ");
  EXPECT_EQ(view(salt_text(0xA8CE956811102085ULL)), "[a8ce956811102085] ");
  EXPECT_EQ(salt_hex(0x0123456789ABCDEFULL), "0123456789abcdef");
}

TEST(SaltText, ReadsBackWhateverWasPrinted) {
  Salts salts(3);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t salt = salts.next();
    EXPECT_EQ(salt_at_front(std::string(view(salt_text(salt))) + "prompt"), salt);
  }
  EXPECT_EQ(salt_at_front("[ffffffffffffffff] "), UINT64_MAX);
}

TEST(SaltText, AnythingElseAtTheFrontIsNoSalt) {
  for (const char* text :
       {"", "Hello", "[a8ce956811102085]", "[a8ce956811102085]x", "[A8CE956811102085] Hello",
        "[a8ce95681110208] Hello", "[a8ce9568111020855] Hello", "(a8ce956811102085) Hello",
        "[a8ce95681110208g] Hello", " [a8ce956811102085] Hello"}) {
    EXPECT_FALSE(salt_at_front(text).has_value()) << text;
  }
}

TEST(WarmupSeeds, AreThreeInARow) {
  const auto seeds = warmup_seeds(42);
  ASSERT_TRUE(seeds.has_value());
  EXPECT_EQ(seeds->gaps, 42U);
  EXPECT_EQ(seeds->order, 43U);
  EXPECT_EQ(seeds->salts, 44U);
}

TEST(WarmupSeeds, RefuseASeedWhoseSuccessorsDoNotFit) {
  const auto last = warmup_seeds(kWarmupSeedMax);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->salts, UINT64_MAX);
  const auto refused = warmup_seeds(kWarmupSeedMax + 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ExitCode::kInput);
  EXPECT_NE(refused.error().message.find("warmup_random_seed: 18446744073709551614"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::plan
