// Accuracy runs with the real binaries: a mock that echoes prompts knows the right answers, so the
// scores are known. What a driver script reads afterwards is there in every mode, with one and with
// three frontends, and the scores do not depend on the number of agents.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// 8 questions of which an echo answers 6, and 5 sums of which it answers 3.
std::string write_letters(const std::string& folder) {
  const std::string path = folder + "/letters.jsonl";
  std::ofstream file(path);
  for (int i = 0; i < 8; ++i) {
    const json row{{"question", fmt::format("{}) Answer: {}", i, "ABCD"[i % 4])},
                   {"ground_truth", i < 6 ? fmt::format("choice{}", i % 4 + 1) : "choice9"}};
    file << row.dump() << "\n";
  }
  return path;
}

std::string write_sums(const std::string& folder) {
  const std::string path = folder + "/sums.jsonl";
  std::ofstream file(path);
  for (int i = 0; i < 5; ++i) {
    const json row{{"prompt", fmt::format("it is \\boxed{{{}}}", 7 * i)},
                   {"answer", i % 2 == 0 ? fmt::format(" {} ", 7 * i) : "none"}};
    file << row.dump() << "\n";
  }
  return path;
}

// As PyYAML's default emitter leaves a client's config, endpoints and report_dir put in: an alias,
// a scalar folded at 80 columns, escapes, dashes at their key's column.
struct Client {
  std::string folder;
  std::string report;
  std::string config;
};

Client client(const std::string& name, const std::vector<std::string>& urls,
              const std::string& load = "type: concurrency\n    target_concurrency: 6") {
  Client out;
  out.folder = fresh_folder(name);
  out.report = out.folder + "/mlperf";
  out.config = out.folder + "/client_config_resolved.yaml";
  std::string endpoints;
  for (const auto& url : urls) {
    endpoints += "  - " + url + "\n";
  }
  std::ofstream(out.config) << fmt::format(
      "name: \"a name with \\u4E2D\\u6587 \\xE9 and many words, so that it has to be folded\\\n"
      "  \\ somewhere after the eightieth column\"\n"
      "type: online\n"
      "model_params:\n"
      "  name: mock-model\n"
      "  temperature: 1.0e-05\n"
      "  max_new_tokens: 4\n"
      "  streaming: 'on'\n"
      "  chat_template_kwargs: &id001\n"
      "    enable_thinking: false\n"
      "datasets:\n"
      "- path: {}\n"
      "  type: performance\n"
      "- path: {}\n"
      "  type: accuracy\n"
      "  accuracy_config:\n"
      "    eval_method: pass_at_1\n"
      "    extractor: abcd_extractor\n"
      "    num_repeats: 3\n"
      "  generation_config_override: &id002\n"
      "    max_new_tokens: 64\n"
      "    chat_template_kwargs: *id001\n"
      "- name: \"sums \\xE9\"\n"
      "  path: {}\n"
      "  type: accuracy\n"
      "  accuracy_config:\n"
      "    eval_method: string_match\n"
      "    extractor: boxed_math_extractor\n"
      "    ground_truth: answer\n"
      "  generation_config_override: *id002\n"
      "settings:\n"
      "  runtime:\n"
      "    n_samples_to_issue: 60\n"
      "  load_pattern:\n"
      "    {}\n"
      "endpoint_config:\n"
      "  endpoints:\n{}"
      "  api_key: sk-very-secret\n"
      "report_dir: {}\n",
      write_prompts(out.folder, 20), write_letters(out.folder), write_sums(out.folder), load,
      endpoints, out.report);
  return out;
}

Ran run(const Client& at, const std::string& mode, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"tutti",   "benchmark", "from-config", "-c",
                                 at.config, "--mode",    mode};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words);
}

json results_of(const Client& at) {
  return read_json(at.report + "/accuracy/accuracy_results.json");
}

json counts(int issued, int scored, int empty, int missing) {
  return {{"issued", issued}, {"scored", scored}, {"empty", empty}, {"missing", missing}};
}

void expect_full_scores(const Client& at) {
  const json results = results_of(at);
  EXPECT_DOUBLE_EQ(results["average_accuracy"].get<double>(), (0.75 + 0.6) / 2);
  ASSERT_EQ(results["accuracy_scores"].size(), 2U);
  const json letters = results["accuracy_scores"][0];
  EXPECT_EQ(letters["dataset_name"], "letters");
  EXPECT_EQ(letters["extractor"], "ABCDExtractor");
  EXPECT_TRUE(letters["ground_truth_column"].is_null());
  EXPECT_EQ(letters["score"], 0.75);
  EXPECT_EQ(letters["unit_samples"], 8);
  EXPECT_EQ(letters["num_repeats"], 3);
  EXPECT_EQ(letters["total_samples"], 24);
  EXPECT_GT(letters["duration_s"].get<double>(), 0);
  EXPECT_EQ(letters["complete"], true);
  EXPECT_EQ(letters["dataset_type"], "accuracy");
  EXPECT_EQ(letters["response_counts"], counts(24, 24, 0, 0));
  const json sums = results["accuracy_scores"][1];
  EXPECT_EQ(sums["dataset_name"], "sums \xC3\xA9");
  EXPECT_EQ(sums["ground_truth_column"], "answer");
  EXPECT_EQ(sums["score"], 0.6);
  EXPECT_EQ(sums["response_counts"], counts(5, 5, 0, 0));
  EXPECT_THAT(read_text(at.report + "/report.txt"),
              AllOf(HasSubstr("Accuracy:\n  letters: 0.75 (unit=8, repeats=3, total=24, duration="),
                    HasSubstr("    responses: 24/24 scored (0 empty, 0 missing)\n"),
                    HasSubstr("  Average: 0.675\n")));
}

// What the driver script of a benchmark reads of a performance run.
void expect_summary(const Client& at) {
  const json summary = read_json(at.report + "/performance/result_summary.json");
  for (const char* key : {"qps", "tps", "n_samples_issued", "n_samples_completed",
                          "n_samples_failed", "state", "complete", "duration_ns"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  for (const char* series : {"ttft", "tpot", "latency"}) {
    for (const char* key : {"min", "max", "avg", "median"}) {
      EXPECT_TRUE(summary[series].contains(key)) << series << "." << key;
    }
    for (const char* key : {"50.0", "90.0", "95.0", "99.0"}) {
      EXPECT_TRUE(summary[series]["percentiles"].contains(key)) << series << "." << key;
    }
    EXPECT_GT(summary[series]["max"].get<double>(), 1e4) << series << ": not in nanoseconds";
  }
  EXPECT_EQ(summary["n_samples_completed"], 60);
  EXPECT_EQ(summary["complete"], true);
}

// How the queries of each phase were issued: their rows, in order, and the most in flight at once.
struct Issued {
  std::map<std::string, std::vector<int>> rows;
  std::map<std::string, int> in_flight;
  std::vector<std::string> order;  // of phases, as their first queries come
};

Issued issued_of(const Client& at) {
  const json map = read_json(at.report + "/sample_idx_map.json");
  Issued out;
  std::map<std::string, int> flying;
  for (const json& event : read_jsonl(at.report + "/events.jsonl")) {
    const auto id = event["sample_uuid"].get<std::string>();
    for (const auto& [phase, samples] : map.items()) {
      if (!samples.contains(id)) {
        continue;
      }
      if (event["event_type"] == "sample.issued") {
        if (out.rows[phase].empty()) {
          out.order.push_back(phase);
        }
        out.rows[phase].push_back(samples[id].get<int>());
        out.in_flight[phase] = std::max(out.in_flight[phase], ++flying[phase]);
      } else if (event["event_type"] == "sample.complete") {
        --flying[phase];
      }
    }
  }
  return out;
}

std::vector<int> cyclic(int rows, int repeats) {
  std::vector<int> out;
  for (int i = 0; i < rows * repeats; ++i) {
    out.push_back(i % rows);
  }
  return out;
}

TEST(RunAccuracy, EachModeLeavesWhatTheDriverReadsWithOneAndThreeFrontends) {
  for (const std::size_t frontends : {std::size_t{1}, std::size_t{3}}) {
    const Mock mock(frontends, {"--text", "echo", "--ttft", "2ms", "--gap", "1ms"});
    for (const std::string mode : {"perf", "acc", "both"}) {
      SCOPED_TRACE(fmt::format("{} with {} frontends", mode, frontends));
      const Client at = client("accuracy-" + mode, mock.urls());
      const Ran ran = run(at, mode, {"--token-source", "usage"});
      ASSERT_EQ(ran.exit_code, 0) << ran.output;
      if (mode != "acc") {
        expect_summary(at);
      } else {
        EXPECT_FALSE(std::filesystem::exists(at.report + "/performance/result_summary.json"));
      }
      if (mode != "perf") {
        expect_full_scores(at);
        EXPECT_THAT(ran.output, HasSubstr("Score for letters: 0.75 (3 repeats, complete=True)"));
      } else {
        EXPECT_FALSE(std::filesystem::exists(at.report + "/accuracy"));
        EXPECT_THAT(ran.output, HasSubstr("not issued in perf mode"));
      }
      EXPECT_THAT(read_text(at.report + "/config.yaml"), Not(HasSubstr("sk-very-secret")));
    }
  }
}

TEST(RunAccuracy, PhasesFollowEachOtherDrainedAndInTheFilesOrder) {
  const Mock mock(1, {"--text", "echo", "--ttft", "5ms", "--gap", "1ms"});
  const Client at = client("accuracy-order", mock.urls());
  ASSERT_EQ(run(at, "both").exit_code, 0);
  const Issued issued = issued_of(at);
  EXPECT_THAT(issued.order, testing::ElementsAre("performance", "letters", "sums \xC3\xA9"));
  EXPECT_EQ(issued.rows.at("performance").size(), 60U);
  EXPECT_EQ(issued.rows.at("letters"), cyclic(8, 3));
  EXPECT_EQ(issued.rows.at("sums \xC3\xA9"), cyclic(5, 1));
  EXPECT_LE(issued.in_flight.at("letters"), 6);
  // The barrier: no query of a later phase is issued before the last of an earlier one is done.
  std::string now;
  std::map<std::string, std::string> phase_of;
  std::map<std::string, int> open;
  const json map = read_json(at.report + "/sample_idx_map.json");
  for (const auto& [phase, samples] : map.items()) {
    for (const auto& [id, row] : samples.items()) {
      phase_of[id] = phase;
    }
  }
  for (const json& event : read_jsonl(at.report + "/events.jsonl")) {
    const auto found = phase_of.find(event["sample_uuid"].get<std::string>());
    if (found == phase_of.end()) {
      continue;
    }
    if (event["event_type"] == "sample.issued") {
      ++open[found->second];
      for (const auto& [phase, count] : open) {
        EXPECT_TRUE(phase == found->second || count == 0) << phase << " is not drained";
      }
    } else if (event["event_type"] == "sample.complete") {
      --open[found->second];
    }
  }
  // A data set's override is sent with its queries only: the performance phase's cap would have cut
  // the letters off.
  EXPECT_EQ(results_of(at)["accuracy_scores"][0]["score"], 0.75);
}

TEST(RunAccuracy, AccuracyOnlyAsksOneQueryAtATimeAndSaysSo) {
  const Mock mock(3, {"--text", "echo", "--ttft", "1ms", "--gap", "1ms"});
  const Client at = client("accuracy-single", mock.urls());
  std::filesystem::remove(at.folder + "/prompts.jsonl");  // not even read
  const Ran ran = run(at, "acc", {"--local-agents", "3"});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("target_concurrency is 1 instead of 6"),
                                HasSubstr("neither read nor issued in acc mode")));
  EXPECT_THAT(read_text(at.report + "/config.yaml"),
              AllOf(HasSubstr("num_workers: 1\n"), HasSubstr("max_connections: 1\n"),
                    HasSubstr("target_concurrency: 1\n")));
  const Issued issued = issued_of(at);
  EXPECT_EQ(issued.in_flight.at("letters"), 1);
  EXPECT_EQ(issued.rows.at("letters"), cyclic(8, 3));
  EXPECT_EQ(issued.rows.count("performance"), 0U);
  expect_full_scores(at);
}

TEST(RunAccuracy, ScoresAndOrderDoNotDependOnTheAgentsNorOnThePattern) {
  const Mock mock(1, {"--text", "echo", "--ttft", "1ms", "--gap", "1ms"});
  for (const std::string load :
       {"type: concurrency\n    target_concurrency: 6", "type: poisson\n    target_qps: 400.0"}) {
    for (const std::string agents : {"1", "3"}) {
      SCOPED_TRACE(load + " with " + agents);
      const Client at = client("accuracy-agents", mock.urls(), load);
      const Ran ran = run(at, "both", {"--local-agents", agents});
      ASSERT_EQ(ran.exit_code, 0) << ran.output;
      expect_full_scores(at);
      std::vector<int> rows = issued_of(at).rows.at("letters");
      std::vector<int> wanted = cyclic(8, 3);
      std::sort(rows.begin(), rows.end());
      std::sort(wanted.begin(), wanted.end());
      EXPECT_EQ(rows, wanted);
    }
  }
}

TEST(RunAccuracy, ReasoningIsPartOfWhatIsScored) {
  // All three words of a letters reply come as reasoning, and there is no other output.
  const Mock mock(1,
                  {"--text", "echo", "--ttft", "1ms", "--gap", "1ms", "--reasoning-tokens", "3"});
  const Client at = client("accuracy-reasoning", mock.urls());
  ASSERT_EQ(run(at, "acc").exit_code, 0);
  const json letters = results_of(at)["accuracy_scores"][0];
  EXPECT_EQ(letters["score"], 0.75);
  EXPECT_EQ(letters["response_counts"], counts(24, 24, 0, 0));
}

// The coordinator is killed in the phase of the letters. What the agent's spool holds is scored by
// the lost run's own config; which replies are right is known from their rows.
TEST(RunAccuracy, ALostRunsSpoolsAreScored) {
  const Mock mock(1, {"--text", "echo", "--ttft", "60ms", "--gap", "1ms"});
  const Client at = client("accuracy-spools", mock.urls());
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  const std::string spool = at.folder + "/spool";
  Program coordinator({"tutti", "benchmark", "from-config", "-c", at.config, "--mode", "both",
                       "--listen", address, "--expect-agents", "1"});
  Program agent({"tutti-agent", "--connect", address, "--cache-dir", at.folder + "/cache",
                 "--spool-dir", spool});
  for (int i = 0; i < 1500 && mock.metric("tutti_mock_finished_total") < 70; ++i) {
    poll(nullptr, 0, 5);
  }
  coordinator.signal(SIGKILL);
  coordinator.wait(5'000);
  ASSERT_EQ(agent.wait(20'000), 4) << agent.output();

  std::filesystem::copy(at.report + "/config.yaml", at.folder + "/kept.yaml");
  const auto rebuild = [&](const std::string& folder, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"tutti", "report",       "--from-spools",
                                   spool,   "--report-dir", folder};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const Ran ran = rebuild(at.report);
  ASSERT_EQ(ran.exit_code, 4) << ran.output;
  const json rows = read_json(at.report + "/sample_idx_map.json")["letters"];
  int right = 0;
  for (const auto& [id, row] : rows.items()) {
    right += row.get<int>() < 6 ? 1 : 0;
  }
  const json results = results_of(at);
  const json letters = results["accuracy_scores"][0];
  const json seen = letters["response_counts"];
  ASSERT_GT(seen["scored"], 0);
  EXPECT_EQ(seen["scored"], rows.size());
  EXPECT_DOUBLE_EQ(letters["score"].get<double>(), right / seen["issued"].get<double>());
  EXPECT_EQ(letters["complete"], false);
  EXPECT_TRUE(results["accuracy_scores"][1]["score"].is_null());
  EXPECT_THAT(read_text(at.report + "/report.txt"),
              AllOf(HasSubstr("what nobody recorded is not counted"),
                    HasSubstr("not asked: the run ended before its phase")));

  const Ran bare = rebuild(at.folder + "/bare");
  EXPECT_EQ(bare.exit_code, 4) << bare.output;
  EXPECT_THAT(bare.output, HasSubstr("give the run's config.yaml with --config"));
  EXPECT_FALSE(std::filesystem::exists(at.folder + "/bare/accuracy"));
  std::filesystem::remove(at.folder + "/letters.jsonl");
  const Ran gone = rebuild(at.folder + "/gone", {"--config", at.folder + "/kept.yaml"});
  EXPECT_EQ(gone.exit_code, 4) << gone.output;
  EXPECT_THAT(gone.output, HasSubstr("letters: its right answers cannot be read"));
  EXPECT_EQ(rebuild(at.folder + "/none", {"--config", "/not/there.yaml"}).exit_code, 2);
}

// An echo repeats the prompt, so that ROUGE is that of prompt and right text.
TEST(RunAccuracy, RougeAndCallsAreScored) {
  const Mock mock(1, {"--text", "echo", "--ttft", "1ms", "--gap", "1ms"});
  const std::string base = fresh_folder("accuracy-rouge");
  std::ofstream(base + "/texts.jsonl")
      << json{{"prompt", "the cats sat"}, {"ground_truth", "The cat sat!"}}.dump() << "\n"
      << json{{"prompt", "one two three four five six"}, {"ground_truth", "six one"}}.dump() << "\n"
      << json{{"prompt", "He ran home. The dog sat, e.g. here. Étude two."},
              {"ground_truth", "The dog sat. He ran."}}
             .dump()
      << "\n";
  std::ofstream(base + "/calls.jsonl")
      << json{{"prompt", "f(a=1, b='x y')"},
              {"ground_truth", R"([{"name": "f", "arguments": {"a": 1, "b": "x y"}}])"}}
             .dump()
      << "\n";
  std::ofstream(base + "/run.yaml") << fmt::format(
      "type: online\n"
      "model_params: {{name: m, max_new_tokens: 64}}\n"
      "datasets:\n"
      "- path: {0}/texts.jsonl\n"
      "  type: accuracy\n"
      "  accuracy_config: {{eval_method: rouge, extractor: identity_extractor}}\n"
      "- path: {0}/calls.jsonl\n"
      "  type: accuracy\n"
      "  accuracy_config: {{eval_method: pass_at_1, extractor: function_call_extractor}}\n"
      "settings: {{load_pattern: {{type: concurrency, target_concurrency: 1}}}}\n"
      "endpoint_config: {{endpoints: ['{1}']}}\n"
      "report_dir: {0}/run\n",
      base, mock.urls()[0]);
  const std::string nltk = std::string(TUTTI_SOURCE_DIR) + "/tests/support/nltk_small";
  const Ran ran =
      run_program({"tutti", "benchmark", "from-config", "-c", base + "/run.yaml", "--mode", "acc"},
                  60'000, {{"NLTK_DATA", nltk}});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json results = read_json(base + "/run/accuracy/accuracy_results.json");
  EXPECT_EQ(results["average_accuracy"], 1.0) << "of the calls alone";
  const json texts = results["accuracy_scores"][0];
  EXPECT_EQ(texts["complete"], true);
  // By rouge_score and NLTK with that model. Of the third the right sentences are met in another
  // order, so that its Lsum (0.625) is above its L (0.375); its É is one character.
  EXPECT_EQ(texts["score"].dump(),
            R"({"gen_len":"86","gen_num":3,"rouge1":"70.8333","rouge2":"47.619",)"
            R"("rougeL":"54.1667","rougeLsum":"62.5"})");
  EXPECT_EQ(results["accuracy_scores"][1]["extractor"], "FunctionCallExtractor");
  EXPECT_THAT(read_text(base + "/run/report.txt"),
              HasSubstr("rougeL 54.1667, rougeLsum 62.5, gen_len 86"));
}

TEST(RunAccuracy, WithoutNltksDataRougeSaysWhatIsMissingBeforeTheRunAndAfter) {
  const Mock mock(1, {"--text", "echo", "--ttft", "1ms", "--gap", "1ms"});
  const std::string base = fresh_folder("accuracy-no-punkt");
  std::filesystem::create_directories(base + "/nltk/tokenizers/punkt_tab/english");  // of no files
  std::ofstream(base + "/texts.jsonl")
      << json{{"prompt", "the cats sat"}, {"ground_truth", "The cat sat!"}}.dump() << "\n";
  std::ofstream(base + "/run.yaml") << fmt::format(
      "type: online\n"
      "model_params: {{name: m}}\n"
      "datasets:\n"
      "- path: {0}/texts.jsonl\n"
      "  type: accuracy\n"
      "  accuracy_config: {{eval_method: rouge, extractor: identity_extractor}}\n"
      "settings: {{load_pattern: {{type: concurrency, target_concurrency: 1}}}}\n"
      "endpoint_config: {{endpoints: ['{1}']}}\n"
      "report_dir: {0}/run\n",
      base, mock.urls()[0]);
  const Ran ran =
      run_program({"tutti", "benchmark", "from-config", "-c", base + "/run.yaml", "--mode", "acc"},
                  60'000, {{"NLTK_DATA", base + "/nltk"}});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("rougeLsum and gen_len will be missing"),
                                HasSubstr("nltk.downloader punkt_tab")));
  const json score =
      read_json(base + "/run/accuracy/accuracy_results.json")["accuracy_scores"][0]["score"];
  EXPECT_EQ(score["rougeL"], "100.0");
  EXPECT_FALSE(score.contains("rougeLsum"));
  EXPECT_FALSE(score.contains("gen_len"));
  EXPECT_THAT(read_text(base + "/run/report.txt"), HasSubstr("rougeLsum and gen_len need NLTK"));
}

TEST(RunAccuracy, FailedQueriesAreEmptyAndScoreNothing) {
  const Mock mock(
      1, {"--text", "echo", "--ttft", "1ms", "--gap", "1ms", "--fault", "status:500@at:1-6"});
  const Client at = client("accuracy-failed", mock.urls());
  const Ran ran = run(at, "acc");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  const json letters = results_of(at)["accuracy_scores"][0];
  EXPECT_EQ(letters["response_counts"], counts(24, 18, 6, 0));
  EXPECT_DOUBLE_EQ(letters["score"].get<double>(), 12.0 / 24);
  EXPECT_EQ(letters["complete"], true);
  EXPECT_THAT(ran.output, HasSubstr("6 of 24 requests failed"));
}

TEST(RunAccuracy, AnInterruptedRunScoresWhatItHasAndSaysItIsNotAll) {
  const Mock mock(1, {"--text", "echo", "--ttft", "400ms", "--gap", "1ms"});
  const Client at = client("accuracy-interrupt", mock.urls());
  Program tutti({"tutti", "benchmark", "from-config", "-c", at.config, "--mode", "acc"});
  ASSERT_TRUE(tutti.says("letters issued", 30'000)) << tutti.output();
  tutti.signal(SIGINT);
  EXPECT_EQ(tutti.wait(30'000), 130) << tutti.output();
  const json results = results_of(at);
  const json letters = results["accuracy_scores"][0];
  EXPECT_EQ(letters["complete"], false);
  EXPECT_EQ(letters["total_samples"], 24);
  const auto issued = letters["response_counts"]["issued"].get<std::size_t>();
  EXPECT_GE(issued, 1U);
  EXPECT_LT(issued, 24U);
  EXPECT_EQ(letters["response_counts"]["missing"], 0);
  EXPECT_EQ(read_json(at.report + "/sample_idx_map.json")["letters"].size(), issued);
  const json sums = results["accuracy_scores"][1];
  EXPECT_TRUE(sums["score"].is_null());
  EXPECT_EQ(sums["complete"], false);
  EXPECT_EQ(sums["response_counts"], counts(0, 0, 0, 0));
  EXPECT_THAT(read_text(at.report + "/report.txt"), HasSubstr("(incomplete)"));
}

TEST(RunAccuracy, ADrainTimeoutEndsTheRun) {
  const Mock mock(1, {"--text", "echo", "--ttft", "60s"});
  const Client at = client("accuracy-drain", mock.urls());
  const std::string slow = at.folder + "/slow.yaml";
  std::ofstream(slow) << fmt::format(
      "type: online\n"
      "model_params: {{name: m}}\n"
      "datasets:\n"
      "- path: {}\n"
      "  type: accuracy\n"
      "  samples: 1\n"
      "  accuracy_config: {{eval_method: pass_at_1, extractor: abcd_extractor}}\n"
      "settings:\n"
      "  load_pattern: {{type: concurrency, target_concurrency: 1}}\n"
      "  timeouts: {{accuracy_drain_timeout_s: 0.3}}\n"
      "endpoint_config: {{endpoints: [{}]}}\n"
      "report_dir: {}\n",
      at.folder + "/letters.jsonl", mock.urls()[0], at.report);
  const Ran ran = run_program({"tutti", "benchmark", "from-config", "-c", slow, "--mode", "acc"});
  EXPECT_EQ(ran.exit_code, 4) << ran.output;
  EXPECT_EQ(results_of(at)["accuracy_scores"][0]["complete"], false);
}

TEST(RunAccuracy, WhatCannotBeScoredIsRefusedBeforeAnythingIsWritten) {
  const std::string base = fresh_folder("accuracy-refused");
  const std::string letters = write_letters(base);
  const auto refused = [&](const std::string& config, const std::string& mode) {
    const std::string path = base + "/refused.yaml";
    std::ofstream(path) << fmt::format(
        "type: online\n"
        "model_params: {{name: m}}\n"
        "datasets:\n"
        "- path: {0}\n"
        "- path: {0}\n"
        "  type: accuracy\n"
        "  accuracy_config: {1}\n"
        "settings: {{load_pattern: {{type: concurrency, target_concurrency: 1}}}}\n"
        "endpoint_config: {{endpoints: ['http://127.0.0.1:1']}}\n"
        "report_dir: {2}/run\n",
        letters, config, base);
    return run_program({"tutti", "benchmark", "from-config", "-c", path, "--mode", mode});
  };
  for (const std::string mode : {"acc", "both"}) {
    const Ran foreign = refused("{eval_method: bfcl_v4, extractor: identity_extractor}", mode);
    EXPECT_EQ(foreign.exit_code, 2) << foreign.output;
    EXPECT_THAT(foreign.output,
                AllOf(HasSubstr("datasets.1.accuracy_config.eval_method"), HasSubstr("bfcl_v4")));
  }
  EXPECT_THAT(refused("{}", "both").output, HasSubstr("needs a scorer"));
  EXPECT_THAT(refused("{eval_method: pass_at_1}", "both").output,
              HasSubstr("requires an extractor"));
  EXPECT_FALSE(std::filesystem::exists(base + "/run"));
  const Ran column =
      refused("{eval_method: pass_at_1, extractor: abcd_extractor, ground_truth: solution}", "acc");
  EXPECT_EQ(column.exit_code, 3) << column.output;
  EXPECT_THAT(column.output, AllOf(HasSubstr("solution"), HasSubstr("question")));
  const Ran none = run_program({"tutti", "benchmark", "online", "--endpoints", "http://127.0.0.1:1",
                                "--model", "m", "--dataset", letters, "--load-pattern",
                                "concurrency", "--concurrency", "1", "--mode", "acc"});
  EXPECT_EQ(none.exit_code, 2) << none.output;
  EXPECT_THAT(none.output, HasSubstr("--accuracy-only requires at least one accuracy dataset"));
}

TEST(RunAccuracy, TheExampleInConfigsRuns) {
  const Mock mock(1, {"--text", "echo", "--ttft", "1ms", "--gap", "1ms"});
  const std::string base = fresh_folder("accuracy-example");
  const std::string configs = std::string(TUTTI_SOURCE_DIR) + "/configs/";
  std::string text = read_text(configs + "accuracy.yaml");
  for (const std::string name : {"quickstart.jsonl", "questions.jsonl"}) {
    const std::string path = "path: configs/data/" + name;
    const std::size_t at = text.find(path);
    ASSERT_NE(at, std::string::npos) << name;
    text.replace(at, path.size(), "path: " + configs + "data/" + name);
  }
  std::ofstream(base + "/run.yaml") << text;
  const Ran ran = run_program({"tutti", "benchmark", "from-config", "-c", base + "/run.yaml",
                               "--mode", "both", "--report-dir", base + "/run"},
                              60'000, {{"TUTTI_FRONTEND", mock.urls()[0]}});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  // Of an echoed question the first letter in brackets is taken: A, right once in four.
  const json scores = read_json(base + "/run/accuracy/accuracy_results.json")["accuracy_scores"];
  EXPECT_EQ(scores[0]["score"], 0.25);
  EXPECT_EQ(scores[0]["response_counts"], counts(8, 8, 0, 0));
  EXPECT_EQ(scores[0]["complete"], true);
}

}  // namespace
}  // namespace tutti::testing_support
