// Text prompts for APIs that take token ids: told in Harmony for gpt-oss models, and for those
// only.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/data/request_body.h"
#include "common/model/harmony.h"
#include "common/spec/read.h"
#include "coordinator/conduct/prepare.h"
#include "tests/support/harmony_model.h"
#include "tests/support/report_run.h"

namespace tutti::conduct {
namespace {

using testing::HasSubstr;

struct Rig {
  report_run::TempFolder folder;

  base::Result<RunInput> prepare(const std::string& api, const std::string& model,
                                 const std::string& rows, const std::string& more = "") {
    std::ofstream(folder / "tokenizer.json") << test::harmony_tokenizer_json();
    std::ofstream(folder / "rows.jsonl") << rows;
    const auto read = spec::read_config_text(
        fmt::format("type: offline\n"
                    "model_params: {{name: {1}, tokenizer_name: {0}/tokenizer.json}}\n"
                    "datasets: [{{path: {0}/rows.jsonl}}]\n"
                    "settings: {{load_pattern: {{type: max_throughput}}{3}}}\n"
                    "endpoint_config: {{endpoints: ['http://h:1'], api_type: {2}}}\n",
                    folder.path(), model, api, more),
        "run.yaml", [](const std::string&) { return std::nullopt; });
    EXPECT_TRUE(read) << (read ? "" : spec::to_text(read.error().problems));
    return conduct::prepare(spec::Order{read->config, spec::RunMode::kPerf, {}}, folder.path(), 0);
  }

  // As a JSON array.
  std::string ids(const std::string& prompt) const {
    const auto files = model::read_model_files(folder / "tokenizer.json");
    const auto harmony = model::HarmonyPrompt::open(*files, 0);
    return fmt::format("[{}]", fmt::join(*harmony->ids(prompt), ","));
  }
};

class PrepareHarmony : public testing::Test {
 protected:
  void SetUp() override {
    if (!model::has_tokenizers()) {
      GTEST_SKIP() << "NOT TESTED: this build has no Rust part; install cargo";
    }
  }
  Rig rig_;
};

TEST_F(PrepareHarmony, TextBecomesTokenIdsAndGivenOnesStay) {
  for (const char* api : {"sglang", "openai_completions"}) {
    const auto input = rig_.prepare(api, "my/gpt-oss-9b", R"({"question":"Hi"}
{"question":"there","input_tokens":[7,8]}
)");
    ASSERT_TRUE(input) << input.error().message;
    ASSERT_EQ(input->dataset.rows.size(), 2U);
    EXPECT_EQ(data::prompt_of(*input->row(0)).text, rig_.ids("Hi"));
    EXPECT_EQ(data::prompt_of(*input->row(0)).kind, data::PromptKind::kTokenIds);
    EXPECT_EQ(input->row(0)->cells.find("prompt"), nullptr);
    EXPECT_EQ(data::prompt_of(*input->row(1)).text, "[7,8]");
    EXPECT_THAT(input->notes, testing::Contains(HasSubstr("1 text prompts are sent as token ids")));
  }
}

TEST_F(PrepareHarmony, OtherModelsAreSentTheTextOrRefused) {
  const auto completions = rig_.prepare("openai_completions", "llama", R"({"prompt":"Hi"})");
  ASSERT_TRUE(completions) << completions.error().message;
  EXPECT_EQ(data::prompt_of(*completions->row(0)).text, "Hi");
  const auto sglang = rig_.prepare("sglang", "llama", R"({"prompt":"Hi"})");
  ASSERT_FALSE(sglang);
  EXPECT_THAT(sglang.error().message, HasSubstr("gpt-oss models only"));
}

TEST_F(PrepareHarmony, TokenIdsCannotBeSalted) {
  const auto salted = rig_.prepare("openai_completions", "gpt-oss", R"({"prompt":"Hi"})",
                                   ", warmup: {enabled: true, salt: true}");
  ASSERT_FALSE(salted);
  EXPECT_THAT(salted.error().message, HasSubstr("token ids"));
}

}  // namespace
}  // namespace tutti::conduct
