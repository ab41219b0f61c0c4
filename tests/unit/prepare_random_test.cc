// The data set `random` from its parameters to its rows. What the rows must be was made by the
// reference's rule with numpy and transformers on tests/support/tiny_model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "common/model/tokenizer.h"
#include "common/spec/read.h"
#include "coordinator/conduct/random_rows.h"

namespace tutti::conduct {
namespace {

using testing::HasSubstr;
using text::JsonValue;

constexpr const char* kTinyModel = TUTTI_SOURCE_DIR "/tests/support/tiny_model";

base::Result<data::Dataset> rows_of(const std::string& params, base::ApiType api,
                                    spec::DatasetSpec wanted = {}) {
  const auto read = text::read_json(params);
  EXPECT_TRUE(read);
  auto random = data::read_random_prompts(*read);
  if (!random) {
    return tl::unexpected(random.error());
  }
  RowChoice choice;
  choice.random = *random;
  if (wanted.samples) {
    choice.first = static_cast<std::uint64_t>(*wanted.samples);
  }
  return random_rows(wanted, choice, api);
}

// The parameters with the tokenizer and more put in.
std::string with(const JsonValue& params, const std::string& more) {
  std::string out = params.to_json();
  out.back() = ',';
  return out + more + ",\"tokenizer\":\"" + kTinyModel + "\"}";
}

class RandomRows : public testing::Test {
 protected:
  void SetUp() override {
    if (!model::has_tokenizers()) {
      GTEST_SKIP() << "a build without cargo cannot read tokenizers";
    }
    std::ifstream file(TUTTI_SOURCE_DIR "/tests/conformance/random_prompts.json");
    const std::string whole{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto cases = text::read_json(whole);
    ASSERT_TRUE(cases);
    ASSERT_EQ(cases->items().size(), 3U);
    cases_ = *cases;
  }

  JsonValue cases_;
};

TEST_F(RandomRows, PromptsAreThoseOfTheReference) {
  for (const JsonValue& each : cases_.items()) {
    const auto made = rows_of(with(*each.find("params"), "\"save_tokenized_data\":false"),
                              base::ApiType::kOpenAiChat);
    ASSERT_TRUE(made) << made.error().message;
    const auto& expected = each.find("rows")->items();
    ASSERT_EQ(made->rows.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(*made->rows[i].cells.find("prompt"), *expected[i].find("prompt")) << i;
      EXPECT_EQ(made->rows[i].cells.members().size(), 1U);
    }
  }
}

TEST_F(RandomRows, TokenIdsAreTheTextReadAgain) {
  for (const base::ApiType api : {base::ApiType::kSglang, base::ApiType::kOpenAiCompletions}) {
    for (const JsonValue& each : cases_.items()) {
      const auto made = rows_of(with(*each.find("params"), "\"save_tokenized_data\":true"), api);
      ASSERT_TRUE(made) << made.error().message;
      const auto& expected = each.find("rows")->items();
      ASSERT_EQ(made->rows.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(*made->rows[i].cells.find("input_tokens"), *expected[i].find("input_tokens"));
      }
    }
  }
}

TEST_F(RandomRows, SamplesTakesTheFirst) {
  spec::DatasetSpec wanted;
  wanted.samples = 2;
  const auto made = rows_of(with(*cases_.items()[0].find("params"), "\"force_regenerate\":true"),
                            base::ApiType::kOpenAiChat, wanted);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->rows.size(), 2U);
  EXPECT_EQ(*made->rows[1].cells.find("prompt"),
            *cases_.items()[0].find("rows")->items()[1].find("prompt"));
  EXPECT_TRUE(made->ended_by_samples);
}

std::string refused(const std::string& params, base::ApiType api = base::ApiType::kOpenAiChat,
                    spec::DatasetSpec wanted = {}) {
  const auto made = rows_of(params, api, std::move(wanted));
  return made ? std::string("not refused") : made.error().message;
}

TEST(RandomParameters, AllThatIsWrongIsSaidAtOnce) {
  const std::string told = refused(
      R"({"num_sequences":0,"range_ratio":1.5,"random_seed":-1,"save_tokenized_data":"yes","lengths":3})");
  EXPECT_THAT(told, HasSubstr("generate_params.num_sequences: 0 must be a whole number from 1"));
  EXPECT_THAT(told, HasSubstr("generate_params.range_ratio: 1.5 must be"));
  EXPECT_THAT(told, HasSubstr("generate_params.random_seed: -1 must be"));
  EXPECT_THAT(told, HasSubstr("generate_params.save_tokenized_data: \"yes\" must be true or"));
  EXPECT_THAT(told, HasSubstr("generate_params.lengths: data set 'random' has no such parameter"));
  EXPECT_THAT(told, HasSubstr("generate_params.tokenizer: data set 'random' needs the tokenizer"));
}

TEST(RandomParameters, WhatCannotBeAskedIsRefusedWithTheRemedy) {
  EXPECT_THAT(refused(R"({"tokenizer":"/not/there"})"), HasSubstr("generate_params.tokenizer"));
  EXPECT_THAT(refused(R"({"tokenizer":"/not/there"})", base::ApiType::kSglang),
              HasSubstr("save_tokenized_data: true"));
  spec::DatasetSpec accuracy;
  accuracy.type = spec::DatasetType::kAccuracy;
  EXPECT_THAT(refused(R"({"tokenizer":"/not/there"})", base::ApiType::kOpenAiChat, accuracy),
              HasSubstr("type: performance"));
}

}  // namespace
}  // namespace tutti::conduct
