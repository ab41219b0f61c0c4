// Sentences against NLTK's sent_tokenize, ROUGE-Lsum against rouge_score: with a small model made
// by hand, and with NLTK's own where this host has it (NLTK_DATA). The vectors are of
// punkt_expected.py; TUTTI_PUNKT_CASES may name more of them, for the model of this host.

#include "coordinator/accuracy/punkt.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/accuracy/rouge.h"
#include "coordinator/accuracy/unicode.h"
#include "coordinator/conduct/punkt_files.h"

namespace tutti::accuracy {
namespace {

// Lines of [text, [sentence, …], Lsum against the line before].
void expect_all(const PunktModel& model, const std::string& path, int least) {
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  int cases = 0;
  int wrong = 0;
  std::string before;
  for (std::string line; std::getline(file, line) && wrong < 10; ++cases) {
    const auto each = nlohmann::json::parse(line);
    const std::u32string text = decoded(each[0].get<std::string>());
    std::vector<std::string> found;
    for (const std::u32string_view sentence : sentences(model, text)) {
      found.push_back(encoded(sentence));
    }
    const auto expected = each[1].get<std::vector<std::string>>();
    wrong += found == expected ? 0 : 1;
    EXPECT_EQ(found, expected) << "line " << cases + 1 << ": " << each[0];
    const std::string lines = encoded(by_lines(model, text));
    if (lines.size() < 20'000) {  // the script leaves longer ones out
      EXPECT_NEAR(rouge_lsum(before, lines), each[2].get<double>(), 1e-12) << "line " << cases + 1;
      before = lines;
    } else {
      before.clear();
    }
  }
  EXPECT_GE(cases, least) << path;
}

TEST(PunktVectors, ASmallModelSplitsAsNltkDoes) {
  const auto model = conduct::load_punkt([](const char* name) {
    return std::string(
        std::string(name) == "NLTK_DATA" ? TUTTI_SOURCE_DIR "/tests/support/nltk_small" : "");
  });
  ASSERT_TRUE(model) << model.error().message;
  expect_all(**model, TUTTI_SOURCE_DIR "/tests/conformance/punkt_small.jsonl", 400);
}

TEST(PunktVectors, NltksOwnModelSplitsAsNltkDoes) {
  const auto model = conduct::load_punkt();
  if (!model) {
    GTEST_SKIP() << "NOT TESTED: " << model.error().message;
  }
  expect_all(**model, TUTTI_SOURCE_DIR "/tests/conformance/punkt_english.jsonl", 300);
  if (const char* const more = std::getenv("TUTTI_PUNKT_CASES"); more != nullptr) {
    expect_all(**model, more, 1);
  }
}

}  // namespace
}  // namespace tutti::accuracy
