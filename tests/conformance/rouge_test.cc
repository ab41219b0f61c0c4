// Stems and F-measures against NLTK's PorterStemmer and rouge_score with use_stemmer.

#include "coordinator/accuracy/rouge.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "coordinator/accuracy/porter.h"
#include "tests/conformance/random_vectors.h"

namespace tutti::accuracy {
namespace {

TEST(PorterVectors, EveryWordHasNltksStem) {
  const auto pairs = conformance::load_vectors("porter.json");
  ASSERT_GT(pairs.size(), 7000U);
  for (const auto& pair : pairs) {
    EXPECT_EQ(stemmed(pair[0].get<std::string>()), pair[1].get<std::string>()) << pair[0];
  }
}

TEST(RougeVectors, EveryPairHasTheSameFMeasures) {
  const auto cases = conformance::load_vectors("rouge.json");
  ASSERT_GT(cases.size(), 300U);
  for (const auto& each : cases) {
    const RougeF found = rouge(each[0].get<std::string>(), each[1].get<std::string>());
    EXPECT_DOUBLE_EQ(found.rouge1, each[2].get<double>()) << each;
    EXPECT_DOUBLE_EQ(found.rouge2, each[3].get<double>()) << each;
    EXPECT_DOUBLE_EQ(found.rouge_l, each[4].get<double>()) << each;
  }
}

}  // namespace
}  // namespace tutti::accuracy
