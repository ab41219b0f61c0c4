// The rows and the choices of GPQA against those that CPython's random.Random draws.

#include "common/data/gpqa.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/random.h"
#include "common/data/predefined.h"
#include "tests/conformance/random_vectors.h"

namespace tutti::data {
namespace {

using ::testing::ElementsAre;

// Row i: question "qi", answers "i.0" (right) to "i.3".
std::vector<GpqaRow> numbered(int count) {
  std::vector<GpqaRow> out;
  for (int i = 0; i < count; ++i) {
    GpqaRow& row = out.emplace_back();
    row.question = fmt::format("q{}", i);
    for (int k = 0; k < 4; ++k) {
      row.answers[static_cast<std::size_t>(k)] = fmt::format("{}.{}", i, k);
    }
  }
  return out;
}

TEST(GpqaVectors, FirstFourPermutationsOfSeed0AndTheirRightChoices) {
  base::Mt19937 random(0);
  EXPECT_THAT(sampled(random, 4, 4), ElementsAre(3, 1, 0, 2));
  EXPECT_THAT(sampled(random, 4, 4), ElementsAre(3, 1, 2, 0));
  EXPECT_THAT(sampled(random, 4, 4), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(sampled(random, 4, 4), ElementsAre(2, 0, 3, 1));
  std::vector<std::string> truths;
  for (const GpqaQuestion& each : draw_gpqa(numbered(4), {0, std::nullopt})) {
    truths.push_back(each.ground_truth);
  }
  EXPECT_THAT(truths, ElementsAre("choice3", "choice4", "choice3", "choice2"));
}

TEST(GpqaVectors, FiveOfAHundredWithSeed0) {
  base::Mt19937 random(0);
  EXPECT_THAT(sampled(random, 100, 5), ElementsAre(49, 97, 53, 5, 33));
}

TEST(GpqaVectors, MaxSamplesDrawsRowsFirstAndTheChoicesFromAFreshGenerator) {
  const auto cases = conformance::load_vectors("gpqa.json");
  ASSERT_EQ(cases.size(), 6U);
  for (const auto& each : cases) {
    GpqaOrder order{each["seed"].get<std::uint64_t>(), std::nullopt};
    if (!each["count"].is_null()) {
      order.count = each["count"].get<std::uint64_t>();
    }
    const auto questions = draw_gpqa(numbered(each["rows"].get<int>()), order);
    ASSERT_EQ(questions.size(), each["drawn"].size());
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const auto drawn = each["drawn"][i].get<std::vector<int>>();
      EXPECT_EQ(questions[i].question, fmt::format("q{}", drawn[0]));
      for (std::size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(questions[i].choices[k], fmt::format("{}.{}", drawn[0], drawn[k + 1]));
        if (drawn[k + 1] == 0) {
          EXPECT_EQ(questions[i].ground_truth, fmt::format("choice{}", k + 1));
        }
      }
    }
  }
}

TEST(GpqaVectors, AWrongAnswerThatReadsLikeTheRightOneIsAsGood) {
  GpqaRow row;
  row.answers = {"same", "same", "same", "same"};
  EXPECT_EQ(draw_gpqa({row}, {0, std::nullopt})[0].ground_truth, "choice1");
}

}  // namespace
}  // namespace tutti::data
