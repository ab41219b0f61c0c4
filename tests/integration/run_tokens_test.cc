// Tokens counted by the model's tokenizer, through whole runs: the numbers are those of counting
// the run's own event file afterwards; what cannot be counted is refused or said, never guessed.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/model/model_pack.h"
#include "common/model/token_counter.h"
#include "coordinator/report/event_fold.h"
#include "coordinator/report/report.h"
#include "tests/support/stage.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kModel = std::string(TUTTI_SOURCE_DIR) + "/tests/support/tiny_model";

json summary_in(const std::string& folder) {
  return read_json(folder + "/performance/result_summary.json");
}

struct Done {
  Ran ran;
  std::string folder;
};

Done run_with(const Mock& mock, const std::string& name, std::vector<std::string> more) {
  const std::string base = fresh_folder(name);
  OnlineRun run{write_prompts(base, 40), base + "/run", mock.urls(), 12, 300, std::move(more)};
  return {run_program(words_of(run)), base + "/run"};
}

// A run with an accuracy data set of 12 rows, each asked twice.
Done run_with_accuracy(const Mock& mock, const std::string& name, const std::string& where) {
  const std::string base = fresh_folder(name);
  std::ofstream rows(base + "/letters.jsonl");
  for (int i = 0; i < 12; ++i) {
    rows << json{{"prompt", fmt::format("question {}", i)}, {"ground_truth", "choice1"}}.dump()
         << "\n";
  }
  rows.close();
  std::ofstream(base + "/run.yaml") << fmt::format(
      "type: online\n"
      "model_params:\n"
      "  {{name: mock-model, max_new_tokens: 64, streaming: 'on', tokenizer_name: {3}}}\n"
      "datasets:\n"
      "- path: {0}\n"
      "- name: letters\n"
      "  path: {1}/letters.jsonl\n"
      "  type: accuracy\n"
      "  accuracy_config: {{eval_method: pass_at_1, extractor: abcd_extractor, num_repeats: 2}}\n"
      "settings:\n"
      "  runtime: {{n_samples_to_issue: 20}}\n"
      "  load_pattern: {{type: concurrency, target_concurrency: 4}}\n"
      "endpoint_config: {{endpoints: ['{2}']}}\n"
      "distributed: {{token_counting: {4}}}\n"
      "report_dir: {1}/run\n",
      write_prompts(base, 10), base, mock.urls().at(0), kModel, where);
  return {run_program(
              {"tutti", "benchmark", "from-config", "-c", base + "/run.yaml", "--mode", "both"}),
          base + "/run"};
}

// Tokens of the accuracy replies in the run's own event file, in all, and how many there were.
std::pair<std::int64_t, std::int64_t> accuracy_tokens(const std::string& folder) {
  const auto files = model::read_model_files(kModel);
  const auto opened = model::TokenCounter::open(*files);
  const json of_letters = read_json(folder + "/sample_idx_map.json")["letters"];
  std::int64_t tokens = 0;
  std::int64_t replies = 0;
  std::ifstream events(folder + "/events.jsonl");
  for (std::string line; std::getline(events, line);) {
    const json event = json::parse(line);
    if (event["event_type"] == "sample.complete" &&
        of_letters.contains(event["sample_uuid"].get<std::string>())) {
      std::string text;
      for (const json& part : event["data"][1]) {  // of ["TextModelOutput", chunks, …]
        text += part.get<std::string>();
      }
      tokens += static_cast<std::int64_t>(opened->text(text).value());
      ++replies;
    }
  }
  return {tokens, replies};
}

TEST(Tokens, WithoutATokenizerNothingIsCountedAndTheReportSaysHowToCount) {
  const Mock mock(1, {"--tokens", "5"});
  const Done run = run_with(mock, "tokens-auto", {});
  ASSERT_EQ(run.ran.exit_code, 0) << run.ran.output;
  EXPECT_THAT(run.ran.output, HasSubstr("Tokens will not be counted"));
  EXPECT_THAT(run.ran.output, HasSubstr("--tokenizer names the model's"));
  const json summary = summary_in(run.folder);
  EXPECT_EQ(summary["tokens"]["source"], "none");
  EXPECT_TRUE(summary["tps"].is_null());
}

TEST(Tokens, ATokenizerThatWasNamedAndIsNotThereEndsTheRunBeforeItBegins) {
  const Mock mock(1);
  const Done run = run_with(mock, "tokens-missing", {"--tokenizer", "/no/such/model"});
  EXPECT_EQ(run.ran.exit_code, 3) << run.ran.output;
  EXPECT_THAT(run.ran.output, HasSubstr("/no/such/model: there is no such path"));
  EXPECT_EQ(mock.metric("tutti_mock_completions_total"), 0);
}

TEST(Tokens, RepliesOfAnAccuracyDataSetAreCountedToo) {
  if (!model::has_tokenizers()) {
    GTEST_SKIP() << "this build has no tokenizers";
  }
  const Mock mock(1, {"--tokens", "uniform:3:30", "--text", "words"});
  for (const std::string where : {"agents", "coordinator"}) {
    const Done run = run_with_accuracy(mock, "tokens-accuracy-" + where, where);
    ASSERT_EQ(run.ran.exit_code, 0) << run.ran.output;
    const json results = read_json(run.folder + "/accuracy/accuracy_results.json");
    const json& lengths = results["accuracy_scores"][0]["output_sequence_lengths"];
    const auto [tokens, replies] = accuracy_tokens(run.folder);
    EXPECT_EQ(replies, 24);
    EXPECT_EQ(lengths["total"], tokens) << where;
    EXPECT_NEAR(lengths["avg"].get<double>(), static_cast<double>(tokens) / 24, 1e-9);
    EXPECT_EQ(lengths["percentiles"].size(),
              summary_in(run.folder)["output_sequence_lengths"]["percentiles"].size());
    EXPECT_GE(results["accuracy_scores"][0]["osl_tokenize_s"].get<double>(), 0);
    EXPECT_EQ(results["osl_tokenization_s"], results["accuracy_scores"][0]["osl_tokenize_s"]);
    EXPECT_THAT(read_text(run.folder + "/report.txt"),
                HasSubstr(fmt::format("output tokens (avg/min/max): {:.1f}/",
                                      static_cast<double>(tokens) / 24)));
  }
}

TEST(Tokens, ABuildWithoutCargoSaysThatItCannotCount) {
  if (model::has_tokenizers()) {
    GTEST_SKIP() << "this build has its Rust part";
  }
  const Mock mock(1);
  const Done run = run_with(mock, "tokens-no-cargo", {"--tokenizer", kModel});
  EXPECT_EQ(run.ran.exit_code, 3) << run.ran.output;
  EXPECT_THAT(run.ran.output, HasSubstr("install cargo"));
}

class Counted : public testing::Test {
 protected:
  void SetUp() override {
    if (!model::has_tokenizers()) {
      GTEST_SKIP() << "NOT TESTED: this build has no Rust part; install cargo";
    }
  }
};

// A series of metrics/final_snapshot.json.
json series(const json& snapshot, const std::string& name) {
  for (const json& metric : snapshot["metrics"]) {
    if (metric["name"] == name) {
      return metric;
    }
  }
  return {};
}

// The run's own event file, counted over again.
json recount(const std::string& folder) {
  const auto files = model::read_model_files(kModel);
  const auto opened = model::TokenCounter::open(*files);
  report::TokenCounter counter;
  counter.text = [&](std::string_view text) {
    return static_cast<std::int64_t>(opened->text(text).value());
  };
  auto snapshot = report::fold_events(folder + "/events.jsonl", counter, {});
  EXPECT_TRUE(snapshot.has_value());
  return snapshot ? json::parse(report::snapshot_json(*snapshot)) : json();
}

// `where` replies are counted: the numbers are the same.
void expect_counts(const Mock& mock, const std::string& agents, const std::string& where) {
  const Done run =
      run_with(mock, fmt::format("tokens-{}-{}", where, agents),
               {"--tokenizer", kModel, "--local-agents", agents, "--token-counting", where});
  ASSERT_EQ(run.ran.exit_code, 0) << run.ran.output;
  const json metrics = read_json(run.folder + "/metrics/final_snapshot.json");
  const json summary = summary_in(run.folder);
  const json again = recount(run.folder);
  EXPECT_EQ(summary["tokens"]["source"], "tokenizer");
  EXPECT_EQ(summary["tokens"]["prompts"], 40);
  EXPECT_EQ(summary["tokens"]["replies"], 300);
  EXPECT_EQ(summary["tokens"]["replies_by_agents"], where == "agents" ? 300 : 0);
  EXPECT_EQ(summary["tokens"]["pending"], 0);
  const auto files = model::read_model_files(kModel);
  EXPECT_EQ(summary["tokens"]["model_hash"], model::content_hash(model::pack(*files)));
  for (const char* name : {"isl", "osl"}) {
    EXPECT_EQ(series(metrics, name)["count"], 300) << name;
    EXPECT_GT(series(metrics, name)["total"], 300) << name;
    EXPECT_EQ(series(metrics, name)["total"], series(again, name)["total"]) << name;
    EXPECT_EQ(series(metrics, name)["sum_sq"], series(again, name)["sum_sq"]) << name;
  }
  EXPECT_EQ(series(metrics, "tpot_ns")["count"], series(again, "tpot_ns")["count"]);
  EXPECT_NEAR(series(metrics, "tpot_ns")["total"].get<double>(),
              series(again, "tpot_ns")["total"].get<double>(), 100'000);
  EXPECT_GT(summary["tps"].get<double>(), 0);
  const std::string text = read_text(run.folder + "/report.txt");
  EXPECT_THAT(text, HasSubstr("Token counts: by the tokenizer of " + kModel));
  const auto by_agents = HasSubstr("300 replies were counted by the agents while they ran, 0 on");
  if (where == "agents") {
    EXPECT_THAT(text, by_agents);
  } else {
    EXPECT_THAT(text, testing::Not(by_agents));
  }
}

TEST_F(Counted, AsTheRunsEventsSayWithOneAgentAndWithThreeWhereverTheyAreCounted) {
  const Mock mock(2, {"--ttft", "uniform:2ms:10ms", "--gap", "1ms", "--tokens", "uniform:2:30"});
  for (const char* agents : {"1", "3"}) {
    for (const char* where : {"agents", "coordinator"}) {
      expect_counts(mock, agents, where);
    }
  }
}

// A reply is counted once, by its agent or here, however the run ends.
TEST_F(Counted, WhatALostAgentHadNotCountedIsCountedHere) {
  StageSettings settings;
  settings.name = "tokens-lost-agent";
  settings.more = {"--tokenizer", kModel, "--token-counting", "agents"};
  const Stage stage(settings);
  ASSERT_TRUE(stage.runs(200));
  stage.agents[1]->signal(SIGKILL);
  EXPECT_EQ(stage.coordinator->wait(60'000), 4) << stage.coordinator->output();
  const json summary = stage.summary();
  EXPECT_FALSE(summary["verdict"]["valid"].get<bool>());
  EXPECT_GT(summary["tokens"]["replies_by_agents"], 100);
  EXPECT_EQ(summary["tokens"]["replies"], summary["tokens"]["succeeded"]);
  EXPECT_EQ(summary["tokens"]["pending"], 0);
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(stage.base + "/cache")) {
    models += entry.path().extension() == ".model" ? 1U : 0U;
  }
  EXPECT_EQ(models, 1U) << "one file for all agents of a cache";
}

// Nothing but the agents' own counts is left.
TEST_F(Counted, FromSpoolsByTheAgentsWhereTheTokenizerIsNot) {
  const std::string model = fresh_folder("tokens-gone-model") + "/model";
  std::filesystem::copy(kModel, model);
  StageSettings settings;
  settings.name = "tokens-spooled-counts";
  settings.more = {"--tokenizer", model, "--token-counting", "agents"};
  const Stage stage(settings);
  ASSERT_TRUE(stage.runs(200));
  stage.coordinator->signal(SIGKILL);
  stage.coordinator->wait(5'000);
  ASSERT_TRUE(stage.is_quiet_10_s_after(SteadyClock::now()));
  std::filesystem::remove_all(model);
  const RebuiltRun rebuilt = rebuild(stage.spools(), stage.base + "/rebuilt");
  EXPECT_EQ(rebuilt.ran.exit_code, 4) << rebuilt.ran.output;
  EXPECT_THAT(rebuilt.ran.output, HasSubstr("tokens are not counted here"));
  EXPECT_EQ(rebuilt.summary["tokens"]["source"], "tokenizer");
  EXPECT_GT(rebuilt.summary["tokens"]["replies_by_agents"], 100);
  EXPECT_EQ(rebuilt.summary["tokens"]["replies"], rebuilt.summary["tokens"]["succeeded"]);
  EXPECT_EQ(rebuilt.summary["tokens"]["pending"], 0);
}

// Another model under the same name would give other counts: it is not taken.
TEST_F(Counted, FromSpoolsNotWithOtherFilesThanTheRuns) {
  const std::string model = fresh_folder("tokens-other-model") + "/model";
  std::filesystem::copy(kModel, model);
  StageSettings settings;
  settings.name = "tokens-other-files";
  settings.more = {"--tokenizer", model, "--token-counting", "coordinator"};
  const Stage stage(settings);
  ASSERT_TRUE(stage.runs(200));
  stage.coordinator->signal(SIGKILL);
  stage.coordinator->wait(5'000);
  ASSERT_TRUE(stage.is_quiet_10_s_after(SteadyClock::now()));
  std::ofstream(model + "/special_tokens_map.json") << "{}\n";
  const RebuiltRun rebuilt = rebuild(stage.spools(), stage.base + "/rebuilt");
  EXPECT_EQ(rebuilt.ran.exit_code, 4) << rebuilt.ran.output;
  EXPECT_THAT(rebuilt.ran.output, HasSubstr("are not those of the run"));
  EXPECT_EQ(rebuilt.summary["tokens"]["source"], "none");
}

// No time to drain: each reply is in one of the two numbers all the same, and the run is whole.
TEST_F(Counted, ADrainWithoutTimeLosesNoRecordAndTellsWhatIsOpen) {
  const Mock mock(1, {"--ttft", "1ms", "--gap", "0", "--tokens", "600"});
  const Done run = run_with(
      mock, "tokens-no-time",
      {"--tokenizer", kModel, "--token-counting", "agents", "--metrics-drain-timeout", "0.001"});
  ASSERT_EQ(run.ran.exit_code, 0) << run.ran.output;
  const json summary = summary_in(run.folder);
  EXPECT_EQ(summary["tokens"]["succeeded"], 300);
  EXPECT_EQ(summary["tokens"]["replies"].get<int>() + summary["tokens"]["pending"].get<int>(), 300);
  int decided = 0;
  for (const json& agent : summary["distributed"]["agents"]) {
    decided += agent["replies_counted"].get<int>() + agent["replies_left_uncounted"].get<int>();
  }
  EXPECT_EQ(decided, 300);
}

TEST_F(Counted, AgentsWithNothingToCountWithAreRefusedByName) {
  const Mock mock(1);
  const Done usage = run_with(mock, "tokens-agents-usage",
                              {"--token-counting", "agents", "--token-source", "usage"});
  EXPECT_NE(usage.ran.exit_code, 0);
  EXPECT_THAT(usage.ran.output, HasSubstr("distributed.token_counting"));
  const Done none = run_with(mock, "tokens-agents-none", {"--token-counting", "agents"});
  EXPECT_EQ(none.ran.exit_code, 3) << none.ran.output;
  EXPECT_THAT(none.ran.output, HasSubstr("agents have nothing to count with"));
  EXPECT_EQ(mock.metric("tutti_mock_completions_total"), 0);
}

TEST_F(Counted, UsageIsAnotherSourceAndNeverMixedIn) {
  const Mock mock(1, {"--tokens", "7"});
  const Done run = run_with(mock, "tokens-usage", {"--token-source", "usage"});
  ASSERT_EQ(run.ran.exit_code, 0) << run.ran.output;
  EXPECT_EQ(summary_in(run.folder)["tokens"]["source"], "usage");
  const Done none = run_with(mock, "tokens-none", {"--token-source", "none"});
  EXPECT_EQ(summary_in(none.folder)["tokens"]["source"], "none");
}

TEST_F(Counted, FromSpoolsToo) {
  StageSettings settings;
  settings.name = "tokens-spools";
  settings.more = {"--tokenizer", kModel};
  const Stage stage(settings);
  ASSERT_TRUE(stage.runs(200));
  stage.coordinator->signal(SIGKILL);
  stage.coordinator->wait(5'000);
  ASSERT_TRUE(stage.is_quiet_10_s_after(SteadyClock::now()));
  const RebuiltRun rebuilt = rebuild(stage.spools(), stage.base + "/rebuilt");
  EXPECT_EQ(rebuilt.ran.exit_code, 4) << rebuilt.ran.output;
  EXPECT_EQ(rebuilt.summary["tokens"]["source"], "tokenizer");
  EXPECT_GT(rebuilt.summary["tokens"]["replies"], 100);
  EXPECT_EQ(rebuilt.summary["tokens"]["pending"], 0);
}

}  // namespace
}  // namespace tutti::testing_support
