// extractors.json holds random texts made of what extractors look for, each with what Python 3.11's
// regular expressions (Unicode 14) find in it by the published forms: ours must find the same.

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "coordinator/accuracy/extract.h"

namespace tutti::accuracy {
namespace {

std::optional<std::string> text_or_null(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
}

TEST(ExtractorsConformance, EveryTextGivesWhatPythonFinds) {
  std::ifstream file(std::string(TUTTI_SOURCE_DIR) + "/tests/conformance/extractors.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 500U);
  for (const auto& each : cases) {
    const auto text = each["text"].get<std::string>();
    EXPECT_EQ(extract(Extractor::kAbcd, text), text_or_null(each["abcd"])) << each["text"];
    EXPECT_EQ(extract(Extractor::kBoxedMath, text), text_or_null(each["boxed_math"]))
        << each["text"];
    EXPECT_EQ(extract(Extractor::kPythonCode, text), text_or_null(each["python_code"]))
        << each["text"];
  }
}

}  // namespace
}  // namespace tutti::accuracy
