#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/data/predefined.h"

namespace tutti::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using text::JsonValue;

TEST(PickedRowsTest, AreThoseOfCPythonsSample) {
  std::ifstream file(TUTTI_SOURCE_DIR "/tests/conformance/picked_rows.json");
  const std::string whole{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto cases = text::read_json(whole);
  ASSERT_TRUE(cases);
  ASSERT_GT(cases->items().size(), 40U);
  for (const JsonValue& each : cases->items()) {
    const RowPick pick{each.find("seed")->as_uint(), each.find("count")->as_uint()};
    std::vector<std::uint64_t> expected;
    for (const JsonValue& row : each.find("picked")->items()) {
      expected.push_back(row.as_uint());
    }
    EXPECT_EQ(picked_rows(pick, each.find("rows")->as_uint()), expected) << each.to_json();
  }
  EXPECT_THAT(picked_rows({0, 5}, 100), ElementsAre(49, 97, 53, 5, 33));
  EXPECT_THAT(picked_rows({0, 5}, 3), ElementsAre(0, 1, 2));
}

class PredefinedTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(cache_); }

  void put(const std::string& file) {
    const std::filesystem::path path = cache_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }

  // The path below the cache, or the error.
  std::string found(const std::string& name, const std::string& params = "null") {
    const auto set = find_predefined(name, *text::read_json(params), cache_.string());
    return set ? std::filesystem::relative(set->path, cache_).string() : set.error().message;
  }

  std::filesystem::path cache_ =
      std::filesystem::temp_directory_path() / ("tutti_cache_" + std::to_string(::getpid()));
};

TEST_F(PredefinedTest, NamesAreIdsWithOrWithoutAPreset) {
  EXPECT_TRUE(is_predefined("gpqa"));
  EXPECT_TRUE(is_predefined("gpqa::gptoss"));
  EXPECT_FALSE(is_predefined("GPQA"));
  EXPECT_FALSE(is_predefined("mine::gptoss"));
  EXPECT_FALSE(is_predefined(""));
  EXPECT_THAT(found("gpqa::a::b"), HasSubstr("Invalid dataset name"));
  EXPECT_THAT(predefined_ids(), HasSubstr("aime25, bfcl_v4, cnn_dailymail, gpqa"));
}

TEST_F(PredefinedTest, ParametersChooseTheFile) {
  for (const char* file :
       {"aime25/aime25.parquet", "gpqa/diamond/gpqa_diamond.parquet", "gpqa/main/gpqa_main.parquet",
        "swe_bench/lite/test/rows.parquet", "shopify_product_catalogue/train+test/a.parquet",
        "open_orca/mlperf-inference/open_orca_gpt4_tokenized_llama.sampled_24576.jsonl"}) {
    put(file);
  }
  EXPECT_EQ(found("aime25"), "aime25/aime25.parquet");
  EXPECT_EQ(found("gpqa"), "gpqa/diamond/gpqa_diamond.parquet");
  EXPECT_EQ(found("gpqa", R"({"variant":"main"})"), "gpqa/main/gpqa_main.parquet");
  EXPECT_EQ(found("swe_bench", R"({"subset":"lite"})"), "swe_bench/lite/test/rows.parquet");
  EXPECT_EQ(found("shopify_product_catalogue", R"({"split":["train","test"]})"),
            "shopify_product_catalogue/train+test/a.parquet");
  EXPECT_EQ(found("open_orca"),
            "open_orca/mlperf-inference/open_orca_gpt4_tokenized_llama.sampled_24576.jsonl");
  EXPECT_THAT(found("gpqa", R"({"variant":"../.."})"), HasSubstr("not the name of a folder"));
}

TEST_F(PredefinedTest, APresetThatNamesColumnsIsTakenAndOneWithTextsIsRefused) {
  put("open_orca/mlperf-inference/open_orca_gpt4_tokenized_llama.sampled_24576.jsonl");
  put("gpqa/diamond/gpqa_diamond.parquet");
  const auto set = find_predefined("open_orca::llama2_70b", JsonValue(), cache_.string());
  ASSERT_TRUE(set) << set.error().message;
  using Pair = std::pair<std::string, std::string>;
  EXPECT_THAT(*set->parser,
              ElementsAre(Pair("prompt", "question"), Pair("system", "system_prompt")));
  EXPECT_FALSE(find_predefined("open_orca", JsonValue(), cache_.string())->parser);
  EXPECT_THAT(found("gpqa::gptoss"), HasSubstr("prompt text"));
  EXPECT_THAT(found("gpqa::other"),
              HasSubstr("Dataset gpqa does not have a preset model transform for other"));
}

TEST_F(PredefinedTest, WhatIsNotThereIsSaidWithItsSource) {
  EXPECT_THAT(found("aime25"), HasSubstr("aime25/aime25.parquet does not exist. It comes from "
                                         "Hugging Face opencompass/AIME2025"));
  put("livecodebench/release_v6/a.parquet");
  put("livecodebench/release_v6/b.parquet");
  EXPECT_THAT(found("livecodebench"), HasSubstr("exactly one"));
  EXPECT_THAT(found("random::x"), HasSubstr("Dataset random does not have a preset"));
  EXPECT_THAT(found("agentic_inference_conversations"), HasSubstr("agentic_inference"));
}

TEST_F(PredefinedTest, SamplingIsReadAndUnknownParametersAreRefused) {
  put("aime25/aime25.parquet");
  const auto set =
      find_predefined("aime25", *text::read_json(R"({"max_samples":7,"seed":3})"), cache_.string());
  ASSERT_TRUE(set);
  EXPECT_EQ(set->pick->count, 7U);
  EXPECT_EQ(set->pick->seed, 3U);
  EXPECT_EQ(found("aime25", R"({"force_regenerate":false})"), "aime25/aime25.parquet");
  EXPECT_THAT(found("aime25", R"({"force_regenerate":true})"), HasSubstr("nothing is generated"));
  EXPECT_THAT(found("aime25", R"({"variant":"x"})"), HasSubstr("generate_params.variant"));
  EXPECT_THAT(found("aime25", R"({"max_samples":0})"), HasSubstr("at least 1"));
  EXPECT_THAT(found("aime25", R"({"max_samples":"5"})"), HasSubstr("whole number"));
}

}  // namespace
}  // namespace tutti::data
