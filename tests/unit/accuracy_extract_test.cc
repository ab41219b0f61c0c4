// Each extractor finds what the reference's finds, its quirks included.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/accuracy/extract.h"
#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

using Case = std::pair<std::string, std::optional<std::string>>;

void expect_all(Extractor extractor, const std::vector<Case>& cases) {
  for (const auto& [text, wanted] : cases) {
    EXPECT_EQ(extract(extractor, text), wanted) << "of: " << text;
  }
}

TEST(AccuracyExtract, IdentityChangesNothing) {
  expect_all(Extractor::kIdentity, {{" a\n", " a\n"}, {"", ""}, {"{\"x\": 1}", "{\"x\": 1}"}});
}

TEST(AccuracyExtract, BoxedMathTakesTheLastBoxThenTheLastNumber) {
  expect_all(Extractor::kBoxedMath, {{"\\boxed{42}", "42"},
                                     {"\\boxed{\\frac{1}{2}}", "\\frac{1"},
                                     {"\\boxed{x, y, 25 }", "25"},
                                     {"\\boxed{1,234}", "234"},
                                     {"\\framebox{7} then \\boxed{8}", "8"},
                                     {"\\boxed{8} and \\framebox{9}", "9"},
                                     {"boxed{\n5\n}", "5"},
                                     {"-17", "17"},
                                     {"3.14", "14"},
                                     {"\\boxed{} 99", "99"},
                                     {"\\boxed{6} \\boxed{}", "6"},
                                     {"\\boxed{,}", ""},
                                     {"\\boxed{12", "12"},
                                     {"\\boxed{a \\boxed{b}", "a \\boxed{b"},
                                     {"\\boxed{\xC2\xA0"
                                      "4\xE2\x80\x83}",
                                      "4"},
                                     {"12 then \xD9\xA3\xD9\xA4.", "\xD9\xA3\xD9\xA4"},
                                     {"\xC2\xB2", std::nullopt},
                                     {"none", std::nullopt},
                                     {"", std::nullopt}});
}

TEST(AccuracyExtract, LettersFollowTheReferencesOrderOfForms) {
  expect_all(Extractor::kAbcd, {{"The answer is B", ""},
                                {"The answer is (D).", "choice4"},
                                {"**Answer:** C", "choice3"},
                                {"**Answer: A**", "choice1"},
                                {"answer: c", "choice3"},
                                {"Answers \xE2\x80\x93 d", "choice4"},
                                {"the Answer:(b)", "choice2"},
                                {"Option B", "choice2"},
                                {"\\boxed{Answer is B}", "choice1"},
                                {"Final: \\boxed{\\text{B }}", "choice2"},
                                {"[ C ]", "choice3"},
                                {"\\textbf{D}", "choice4"},
                                {"I think\nC.", "choice3"},
                                {"I pick C because", ""},
                                {"Because of X", "choice2"},
                                {"dog", "choice4"},
                                {"**Dog", "choice4"},
                                {"Answer is: A", "choice1"},
                                {"Answer:\nB", "choice2"},
                                {"option 2, choice A", "choice1"},
                                {"A or B? Answer: B", "choice2"},
                                {"x (B) and (C)", "choice2"},
                                {"**D) because**", "choice4"},
                                {"zzz", ""},
                                {"", ""},
                                {"an\xC5\xBFwer: d", "choice4"},
                                {"answer: b\xC3\xA9", "choice2"},
                                {"the answer: b\xC3\xA9", ""},
                                {"cho\xC4\xB1"
                                 "ce a",
                                 "choice1"},
                                {"see\n\n\n \n  __B__ it", "choice2"}});
}

TEST(AccuracyExtract, PythonCodeTakesTheLastBlock) {
  expect_all(Extractor::kPythonCode, {{"```python\na=1\n```", "a=1"},
                                      {"```\nb\n```", "b"},
                                      {"```py\nc\n```", "c"},
                                      {"```Python\nq\n```", "q"},
                                      {"```python3\nx\n```", "3\nx"},
                                      {"```python```", ""},
                                      {"```python\nx", std::nullopt},
                                      {"```python\n1\n``` and ```python\n2\n```", "2"},
                                      {"```\n1\n``` and ```js\n2\n```", "js\n2"},
                                      {"no code", std::nullopt}});
}

TEST(AccuracyExtract, ALongBrokenReplyIsReadInOneGo) {
  // Each would take minutes if a form were tried again from every line or brace.
  const std::string newlines(400'000, '\n');
  EXPECT_EQ(extract(Extractor::kAbcd, newlines), "");
  std::string open = "\\boxed{";
  open.append(400'000, 'A');
  EXPECT_EQ(extract(Extractor::kAbcd, "x" + open), "");
  EXPECT_EQ(extract(Extractor::kBoxedMath, open), std::nullopt);
}

TEST(AccuracyExtract, BytesThatAreNoUtf8AreReplacedNotFatal) {
  EXPECT_EQ(extract(Extractor::kAbcd, "\xFF\xFE (B)"), "choice2");
  EXPECT_EQ(extract(Extractor::kBoxedMath, "\\boxed{\xFF}"), "\xEF\xBF\xBD");
  EXPECT_EQ(encoded(decoded("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80")),
            "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(AccuracyExtract, NamesAreTheConfigsAndTheFiles) {
  EXPECT_EQ(extractor_named("abcd_extractor"), Extractor::kAbcd);
  EXPECT_EQ(extractor_named("function_call_extractor"), Extractor::kFunctionCall);
  EXPECT_STREQ(class_name(Extractor::kFunctionCall), "FunctionCallExtractor");
  EXPECT_STREQ(class_name(Extractor::kAbcd), "ABCDExtractor");
  EXPECT_STREQ(class_name(Extractor::kBoxedMath), "BoxedMathExtractor");
  EXPECT_STREQ(class_name(Extractor::kIdentity), "IdentityExtractor");
  EXPECT_STREQ(class_name(Extractor::kPythonCode), "PythonCodeExtractor");
}

}  // namespace
}  // namespace tutti::accuracy
