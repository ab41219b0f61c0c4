// Every kind of data set, whole, with the real binaries: each row is asked and answered once.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/rust/abi.h"
#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kSource = TUTTI_SOURCE_DIR;

// Every row of the file is asked once.
void expect_whole(const std::string& name, const std::string& path, int rows) {
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const std::string folder = fresh_folder("kinds-" + name) + "/run";
  const Ran ran = run_program({"tutti", "benchmark", "offline", "--endpoints", mock.urls()[0],
                               "--model", "m", "--dataset", path, "--report-dir", folder});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const auto summary = read_json(folder + "/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_issued"], rows) << path;
  EXPECT_EQ(summary["n_samples_completed"], rows) << path;
}

TEST(DatasetKinds, APackedFileRunsWhole) {
  expect_whole("gzip", kSource + "/configs/data/minutes.jsonl.gz", 20);
}

TEST(DatasetKinds, ColumnFilesRunWhole) {
  if (!tutti_rust_present()) {
    GTEST_SKIP() << "built without cargo";
  }
  expect_whole("parquet", kSource + "/configs/data/minutes.parquet", 20);
  expect_whole("huggingface", kSource + "/configs/data/minutes_folder", 20);
}

// Public data beside a developer's checkout: a folder that the datasets library wrote.
TEST(DatasetKinds, ARealFolderOfHuggingFaceRunsWhole) {
  const std::string folder = kSource + "/../shared/data/squad_pruned";
  if (!tutti_rust_present() || !std::filesystem::exists(folder)) {
    GTEST_SKIP() << "NOT TESTED: built without cargo, or the data is not beside this checkout";
  }
  expect_whole("squad", folder, 50);  // its split train
  expect_whole("squad-validation", folder + "/validation", 50);
}

TEST(DatasetKinds, ColumnFilesAreRefusedByNameWithoutCargo) {
  if (tutti_rust_present()) {
    GTEST_SKIP() << "built with cargo";
  }
  const Ran ran =
      run_program({"tutti", "benchmark", "offline", "--endpoints", "http://127.0.0.1:1", "--model",
                   "m", "--dataset", kSource + "/configs/data/minutes.parquet", "--report-dir",
                   fresh_folder("kinds-refused") + "/run"});
  EXPECT_EQ(ran.exit_code, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("install cargo"));
}

TEST(DatasetKinds, APromptOfContentPartsIsAsked) {
  const std::string base = fresh_folder("kinds-parts");
  std::ofstream(base + "/parts.jsonl")
      << R"({"prompt":[{"type":"text","text":"Answer: B"},{"type":"image_url",)"
      << R"("image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}],"ground_truth":"choice2"})"
      << "\n";
  expect_whole("parts-run", base + "/parts.jsonl", 1);
}

std::vector<nlohmann::json> issued_prompts(const std::string& folder) {
  std::vector<nlohmann::json> out;
  for (const auto& event : read_jsonl(folder + "/events.jsonl")) {
    if (event["event_type"] == "sample.issued") {
      out.push_back(event["data"]);
    }
  }
  return out;
}

TEST(DatasetKinds, TokenIdsAreToldInTheEventFile) {
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("kinds-ids");
  std::ofstream(base + "/ids.jsonl") << "{\"input_tokens\":[5,6,7]}\n";
  for (const std::string api : {"sglang", "openai_completions"}) {
    const std::string folder = base + "/" + api;
    const Ran ran =
        run_program({"tutti", "benchmark", "offline", "--endpoints", mock.urls()[0], "--model", "m",
                     "--dataset", base + "/ids.jsonl", "--api-type", api, "--report-dir", folder});
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    const auto prompts = issued_prompts(folder);
    ASSERT_EQ(prompts.size(), 1U);
    EXPECT_EQ(prompts[0][0], "PromptData");
    EXPECT_TRUE(prompts[0][1].is_null());
    EXPECT_EQ(prompts[0][2], nlohmann::json({5, 6, 7}));
  }
}

TEST(DatasetKinds, RandomPromptsAreDrawnAndAsked) {
  if (!tutti_rust_present()) {
    GTEST_SKIP() << "built without cargo";
  }
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("kinds-random");
  std::ofstream(base + "/random.yaml") << fmt::format(
      "type: offline\n"
      "model_params: {{name: m}}\n"
      "datasets:\n"
      "- {{name: random, generate_params: {{tokenizer: {}/tests/support/tiny_model, num_sequences: "
      "5,\n   input_seq_length: 9}}}}\n"
      "endpoint_config: {{endpoints: ['{}']}}\n"
      "report_dir: {}/run\n",
      kSource, mock.urls()[0], base);
  const Ran ran = run_program({"tutti", "benchmark", "from-config", "-c", base + "/random.yaml"});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("5 prompts of 9 to 9 tokens are drawn, seed 42"));
  const auto cases = read_json(kSource + "/tests/conformance/random_prompts.json");
  std::vector<std::string> expected;
  for (const auto& row : cases[0]["rows"]) {
    expected.push_back(row["prompt"]);
  }
  std::vector<std::string> asked;
  for (const auto& prompt : issued_prompts(base + "/run")) {
    asked.push_back(prompt[1]);
  }
  EXPECT_THAT(asked, testing::UnorderedElementsAreArray(expected));
}

// A predefined set from its cache, in the folder where the run is started; rows as max_samples
// takes them.
TEST(DatasetKinds, APredefinedSetComesFromItsCacheOrIsSaidToBeMissing) {
  const std::string base = fresh_folder("kinds-predefined");
  const std::string cached = "dataset_cache/livecodebench/release_v6";
  std::filesystem::create_directories(base + "/" + cached);
  std::ofstream rows(base + "/" + cached + "/rows.jsonl");
  for (int i = 0; i < 9; ++i) {
    rows << fmt::format("{{\"question\":\"q{}\",\"starter_code\":\"\"}}\n", i);
  }
  rows.close();
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const auto run = [&](const std::string& name) {
    std::ofstream(base + "/c.yaml") << fmt::format(
        "type: offline\nmodel_params: {{name: m}}\ndatasets: [{{name: '{}', samples: 4}}]\n"
        "endpoint_config: {{endpoints: [{}]}}\nreport_dir: {}/run\n",
        name, mock.urls()[0], base);
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(base);
    Ran ran = run_program({"tutti", "benchmark", "from-config", "-c", base + "/c.yaml"}, 60'000,
                          {{"HF_HUB_CACHE", base + "/hub"}, {"HF_HUB_OFFLINE", "1"}});
    std::filesystem::current_path(before);
    return ran;
  };
  const Ran good = run("livecodebench");
  ASSERT_EQ(good.exit_code, 0) << good.output;
  EXPECT_THAT(good.output, HasSubstr("is read from " + cached + "/rows.jsonl"));
  EXPECT_EQ(read_json(base + "/run/performance/result_summary.json")["n_samples_completed"], 4);
  const Ran missing = run("gpqa");
  EXPECT_EQ(missing.exit_code, 3) << missing.output;  // as any file that cannot be had of the hub
  EXPECT_THAT(missing.output,
              AllOf(HasSubstr("dataset_cache/gpqa/diamond/gpqa_diamond.parquet"),
                    HasSubstr("Idavidrein/gpqa"), HasSubstr("HF_HUB_OFFLINE forbids")));
  const Ran other = run("swe_bench");
  EXPECT_EQ(other.exit_code, 2) << other.output;
  EXPECT_THAT(other.output, HasSubstr("princeton-nlp/SWE-bench_Verified"));
  const Ran texts = run("livecodebench::gptoss");
  EXPECT_EQ(texts.exit_code, 2) << texts.output;
  EXPECT_THAT(texts.output, HasSubstr("parser: {prompt: COLUMN}"));
}

// GPQA is made of its source on the way, and its answers are scored.
TEST(DatasetKinds, GpqaIsMadeOfItsSourceAndScored) {
  if (!tutti_rust_present()) {
    GTEST_SKIP() << "NOT TESTED: built without cargo";
  }
  const std::string base = fresh_folder("kinds-gpqa");
  std::ofstream source(base + "/gpqa_diamond.csv");
  source << "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n";
  for (int i = 0; i < 4; ++i) {
    source << "Answer: C,right,a,b,c\n";  // echoed
  }
  source.close();
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--text", "echo"});
  std::ofstream(base + "/c.yaml") << fmt::format(
      "type: offline\nmodel_params: {{name: m}}\ndatasets:\n"
      "- {{name: gpqa, type: accuracy, generate_params: {{source: {0}}},\n"
      "   accuracy_config: {{eval_method: pass_at_1, extractor: abcd_extractor}}}}\n"
      "endpoint_config: {{endpoints: ['{1}']}}\nreport_dir: {0}/run\n",
      base, mock.urls()[0]);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(base);
  const Ran ran =
      run_program({"tutti", "benchmark", "from-config", "-c", base + "/c.yaml", "--accuracy-only"});
  std::filesystem::current_path(before);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_TRUE(std::filesystem::exists(base + "/dataset_cache/gpqa/diamond/gpqa_diamond.parquet"));
  const auto entry = read_json(base + "/run/accuracy/accuracy_results.json")["accuracy_scores"][0];
  EXPECT_EQ(entry["dataset_name"], "gpqa");
  EXPECT_EQ(entry["score"], 0.5);  // right are choice3, choice4, choice3, choice2
}

}  // namespace
}  // namespace tutti::testing_support
