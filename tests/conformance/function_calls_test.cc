// function_calls.json: replies, and the calls that Python (json, re and ast of 3.11) finds in them
// by the published rules. Where Python's run would fail, as json cannot write what was found, there
// is null.

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "coordinator/accuracy/extract.h"
#include "coordinator/accuracy/python_value.h"

namespace tutti::accuracy {
namespace {

TEST(FunctionCalls, EveryReplyHasTheCallsPythonFinds) {
  std::ifstream file(std::string(TUTTI_SOURCE_DIR) + "/tests/conformance/function_calls.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 900U);
  std::size_t calls = 0;
  for (const auto& each : cases) {
    const auto found = extract(Extractor::kFunctionCall, each["text"].get<std::string>());
    const auto expected =
        each["calls"].is_null() ? std::nullopt : std::optional(each["calls"].get<std::string>());
    EXPECT_EQ(found, expected) << each["text"];
    calls += expected ? 1U : 0U;
  }
  EXPECT_GT(calls, 500U);
}

// Each bracket is read once: a reply cannot make that take long, nor the stack deep.
TEST(FunctionCalls, DeepNestingEnds) {
  for (const std::string open : {"{", "[", "(", "-", "not ", "a[", "{1:"}) {
    std::string text = "f(a=";
    for (int i = 0; i < 20'000; ++i) {
      text += open;
    }
    EXPECT_EQ(extract(Extractor::kFunctionCall, text), std::nullopt);
    const auto closed =
        extract(Extractor::kFunctionCall, "f(a='x', b=" + text.substr(4, 300) + ")");
    EXPECT_TRUE(open == "(" ? !closed : closed && closed->find("_raw") != std::string::npos);
  }
}

TEST(FunctionCalls, FloatsAreToldAsPythonTellsThem) {
  EXPECT_EQ(float_text(1500), "1500.0");
  EXPECT_EQ(float_text(1e16), "1e+16");
  EXPECT_EQ(float_text(-1.5e-7), "-1.5e-07");
  EXPECT_EQ(float_text(0.0001), "0.0001");
  EXPECT_EQ(float_text(123456789012345.6), "123456789012345.6");
  EXPECT_EQ(float_text(0), "0.0");
}

}  // namespace
}  // namespace tutti::accuracy
