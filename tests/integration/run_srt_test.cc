// Inside srt-slurm: `tutti srt mlperf` is its benchmark command, and plain `tutti` the client its
// driver script calls. Configs come as PyYAML writes them, agents from a pool that listens, and the
// rollup and the measurement window are there while the run lasts.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// As PyYAML's default emitter leaves a client's config: an alias for a shared node, a scalar folded
// at 80 columns, escapes for what is not ASCII, a float like 1.0e-05, dashes at their key's column.
std::string mangled_config(const std::string& data, const std::string& more = "") {
  return fmt::format(
      "name: \"a name with \\u4E2D\\u6587 \\xE9 and many words, so that it has to be folded\\\n"
      "  \\ somewhere after the eightieth column\"\n"
      "type: online\n"
      "model_params:\n"
      "  name: mock-model\n"
      "  temperature: 1.0e-05\n"
      "  max_new_tokens: 8\n"
      "  streaming: 'on'\n"
      "  chat_template_kwargs: &id001\n"
      "    enable_thinking: false\n"
      "datasets:\n"
      "- path: {}\n"
      "  type: performance\n"
      "  generation_config_override:\n"
      "    chat_template_kwargs: *id001\n"
      "settings:\n"
      "  runtime:\n"
      "    n_samples_to_issue: 60\n"
      "  load_pattern:\n"
      "    type: concurrency\n"
      "    target_concurrency: 6\n"
      "endpoint_config:\n"
      "  endpoints:\n"
      "  - http://replaced:1\n"
      "  api_key: sk-very-secret\n"
      "distributed:\n"
      "  token_source: usage\n{}",
      data, more);
}

struct Stage {
  std::string logs;
  std::string config;
  std::map<std::string, std::string> environment;
};

Stage stage(const std::string& name, const std::string& more = "") {
  Stage out;
  out.logs = fresh_folder(name);
  out.config = out.logs + "/client.yaml";
  std::ofstream(out.config) << mangled_config(write_prompts(out.logs, 20), more);
  out.environment = {{"MLPERF_CLIENT_CONFIG", out.config}, {"MLPERF_MODE", "perf"}};
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ","));
}

Ran mlperf(const Stage& at, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"tutti", "srt", "mlperf", "--logs", at.logs};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words, 60'000, at.environment);
}

json rollup_of(const std::string& logs) { return read_json(logs + "/benchmark-rollup.json"); }

TEST(RunSrt, MlperfLeavesReportRollupAndWindow) {
  for (const std::size_t endpoints : {std::size_t{1}, std::size_t{3}}) {
    const Mock mock(endpoints, {"--ttft", "5ms", "--gap", "1ms", "--tokens", "8"});
    Stage at = stage(fmt::format("srt-{}", endpoints));
    const std::string windows = at.logs + "/power/windows";
    std::filesystem::create_directories(windows);
    at.environment["MLPERF_ENDPOINTS"] = joined(mock.urls());
    at.environment["SRT_MEASUREMENT_WINDOW_DIR"] = windows;
    const Ran ran = mlperf(at);
    ASSERT_EQ(ran.exit_code, 0) << ran.output;

    const json rollup = rollup_of(at.logs);
    EXPECT_EQ(rollup["benchmark_type"], "mlperf");
    const json run = rollup["runs"][0];
    EXPECT_EQ(run["state"], "ended");
    EXPECT_EQ(run["exit_code"], 0);
    EXPECT_EQ(run["endpoints"].size(), endpoints);
    EXPECT_EQ(run["completed_requests"], 60);
    EXPECT_EQ(run["concurrency"], 6);
    EXPECT_GE(run["ttft_mean_ms"].get<double>(), 5.0);
    EXPECT_GT(run["throughput_toks"].get<double>(), 0.0);
    EXPECT_EQ(run["osl"], 8.0);
    EXPECT_THAT(run["report_files"].dump(), HasSubstr("performance/result_summary.json"));

    const json summary = read_json(at.logs + "/mlperf/performance/result_summary.json");
    EXPECT_EQ(summary["n_samples_completed"], 60);
    EXPECT_EQ(summary["distributed"]["endpoints"].size(), endpoints);

    // One window of the measured phase, and the same numbers in the result beside it.
    const json window = read_json(windows + "/measurement_c6.json");
    EXPECT_EQ(window["status"], "completed");
    EXPECT_EQ(window["concurrency"], 6);
    EXPECT_EQ(window["result_path"], "mlperf/performance/measurement_c6.json");
    const json result = read_json(at.logs + "/" + window["result_path"].get<std::string>());
    for (const char* key :
         {"benchmark_start_time_unix", "benchmark_end_time_unix", "duration", "concurrency"}) {
      EXPECT_EQ(result[key], window[key]) << key;
    }
    EXPECT_NEAR(window["duration"].get<double>(), summary["duration_ns"].get<double>() / 1e9, 1e-3);
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(windows)) {
      files += entry.is_regular_file() ? 1U : 0U;
    }
    EXPECT_EQ(files, 1U) << "any other file is an error to the telemetry";
  }
}

TEST(RunSrt, AccuracyModesPutScoresIntoTheRollup) {
  const Mock mock(3, {"--text", "echo", "--ttft", "2ms", "--gap", "1ms"});
  for (const std::string mode : {"acc", "both"}) {
    Stage at = stage("srt-" + mode);
    const std::string questions = at.logs + "/questions.jsonl";
    std::ofstream(questions) << R"({"prompt": "Answer: B", "ground_truth": "choice2"})"
                             << "\n"
                             << R"({"prompt": "Answer: C", "ground_truth": "choice1"})"
                             << "\n";
    std::string config = read_text(at.config);
    const std::string before = "settings:\n";
    config.insert(config.find(before), fmt::format("- path: {}\n"
                                                   "  type: accuracy\n"
                                                   "  accuracy_config:\n"
                                                   "    eval_method: pass_at_1\n"
                                                   "    extractor: abcd_extractor\n"
                                                   "  generation_config_override:\n"
                                                   "    chat_template_kwargs: *id001\n",
                                                   questions));
    std::ofstream(at.config) << config;
    at.environment["MLPERF_ENDPOINTS"] = joined(mock.urls());
    at.environment["MLPERF_MODE"] = mode;
    const Ran ran = mlperf(at);
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    const json run = rollup_of(at.logs)["runs"][0];
    EXPECT_EQ(run["metrics"]["accuracy"]["average_accuracy"], 0.5);
    EXPECT_THAT(run["report_files"].dump(), HasSubstr("accuracy/accuracy_results.json"));
    EXPECT_EQ(run.contains("completed_requests"), mode == "both");
  }
}

TEST(RunSrt, TheResolvedConfigHasTwoKeysReplacedAndNoKeyOfTheClient) {
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  Stage at = stage("srt-resolved");
  at.environment["MLPERF_ENDPOINTS"] = mock.urls()[0];
  ASSERT_EQ(mlperf(at).exit_code, 0);
  const std::string resolved = at.logs + "/mlperf/client_config_resolved.yaml";
  EXPECT_THAT(read_text(resolved),
              AllOf(HasSubstr(mock.urls()[0]), HasSubstr("report_dir: " + at.logs + "/mlperf"),
                    HasSubstr("enable_thinking"), Not(HasSubstr("replaced"))));
  // /logs is collected and uploaded: no file of the run may hold the key.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(at.logs + "/mlperf")) {
    if (entry.is_regular_file()) {
      EXPECT_THAT(read_text(entry.path().string()), Not(HasSubstr("sk-very-secret")))
          << entry.path();
    }
  }
}

TEST(RunSrt, FrontendsBehindNginxAreLoadedThemselves) {
  const Mock mock(2, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  Stage at = stage("srt-nginx");
  at.environment["SRT_FRONTEND_HOST"] = "nobody.invalid";
  std::string servers;
  for (const auto& url : mock.urls()) {
    servers += fmt::format("    server {};\n", url.substr(url.find("//") + 2));
  }
  std::ofstream(at.logs + "/nginx.conf") << "http {\n  upstream backend {\n"
                                         << servers << "  }\n}\n";
  const Ran ran = mlperf(at, {"--frontends", "nginx", "--", "--balance", "round_robin"});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json served = rollup_of(at.logs)["runs"][0]["endpoints_served"];
  ASSERT_EQ(served.size(), 2U);
  EXPECT_EQ(served[0]["completed"], 30);
  EXPECT_EQ(served[1]["completed"], 30);
}

TEST(RunSrt, APoolOfListeningAgentsServesOneRunAfterAnother) {
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("srt-pool");
  const std::uint16_t port = free_port("127.0.0.2");
  std::vector<std::unique_ptr<Program>> pool;
  for (int i = 2; i <= 3; ++i) {
    pool.push_back(std::make_unique<Program>(std::vector<std::string>{
        "tutti-agent", "--listen", fmt::format("tcp://127.0.0.{}:{}", i, port), "--name",
        fmt::format("pool-{}", i), "--cache-dir", fmt::format("{}/cache-{}", base, i),
        "--spool-dir", fmt::format("{}/spool-{}", base, i)}));
  }
  for (const std::string name : {"srt-pool-1", "srt-pool-2"}) {
    Stage at = stage(name);
    at.environment["MLPERF_ENDPOINTS"] = mock.urls()[0];
    at.environment["SRT_SERVICE_AGENTS_IPS"] = "127.0.0.2,127.0.0.3";
    at.environment["TUTTI_AGENT_PORT"] = std::to_string(port);
    const Ran ran = mlperf(at);
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    const json agents = rollup_of(at.logs)["runs"][0]["agents_served"];
    ASSERT_EQ(agents.size(), 2U);
    EXPECT_EQ(agents[0]["completed"].get<int>() + agents[1]["completed"].get<int>(), 60);
    EXPECT_GT(agents[0]["completed"].get<int>(), 0);
    EXPECT_GT(agents[1]["completed"].get<int>(), 0);
  }
  for (auto& agent : pool) {
    agent->signal(SIGTERM);
    EXPECT_EQ(agent->wait(10'000), 130) << agent->output();
  }
}

TEST(RunSrt, ARollupAndAWindowStandWhileTheRunLasts) {
  const Mock mock(1, {"--ttft", "2000ms", "--gap", "1ms", "--tokens", "2"});
  Stage at = stage("srt-early");
  at.environment["MLPERF_ENDPOINTS"] = mock.urls()[0];
  at.environment["SRT_MEASUREMENT_WINDOW_DIR"] = at.logs;
  Program tutti({"tutti", "srt", "mlperf", "--logs", at.logs}, at.environment);
  ASSERT_TRUE(tutti.says("phase performance", 60'000)) << tutti.output();
  for (int i = 0; i < 200 && rollup_of(at.logs)["runs"][0]["state"] != "running"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // written once agents are armed
  }
  EXPECT_EQ(rollup_of(at.logs)["runs"][0]["state"], "running");
  EXPECT_EQ(rollup_of(at.logs)["runs"][0]["live"]["phase"], "performance");
  const json window = read_json(at.logs + "/measurement_c6.json");
  EXPECT_EQ(window["status"], "running");
  EXPECT_TRUE(window["benchmark_end_time_unix"].is_null());

  // SIGUSR1 is the batch system's warning: once or thrice, it is one orderly stop.
  tutti.signal(SIGUSR1);
  tutti.signal(SIGUSR1);
  tutti.signal(SIGUSR1);
  EXPECT_EQ(tutti.wait(60'000), 130) << tutti.output();
  const json run = rollup_of(at.logs)["runs"][0];
  EXPECT_EQ(run["state"], "ended");
  EXPECT_EQ(run["exit_code"], 130);
  EXPECT_EQ(run["metrics"]["performance"]["state"], "interrupted");
  EXPECT_EQ(read_json(at.logs + "/measurement_c6.json")["status"], "interrupted");
}

TEST(RunSrt, WhatIsMissingIsSaidAndTheRollupNeverClaimsMore) {
  Stage at = stage("srt-wrong");
  auto& environment = at.environment;
  EXPECT_THAT(mlperf(at).output, HasSubstr("SRT_FRONTEND_HOST"));
  environment["MLPERF_ENDPOINTS"] = "127.0.0.1:1";
  environment["MLPERF_MODE"] = "fast";
  const Ran mode = mlperf(at);
  EXPECT_EQ(mode.exit_code, 1);
  EXPECT_THAT(mode.output, HasSubstr("perf, acc or both"));
  environment["MLPERF_MODE"] = "perf";
  environment["MLPERF_CLIENT_CONFIG"] = "/no/such.yaml";
  EXPECT_THAT(mlperf(at).output, HasSubstr("MLPERF_CLIENT_CONFIG"));
  environment["MLPERF_CLIENT_CONFIG"] = at.config;
  // Nobody listens there: set-up fails, the rollup says so and has no numbers.
  const Ran down = mlperf(at);
  EXPECT_EQ(down.exit_code, 3) << down.output;
  const json run = rollup_of(at.logs)["runs"][0];
  EXPECT_EQ(run["exit_code"], 3);
  EXPECT_FALSE(run.contains("completed_requests"));
  // A job that Slurm started again does not write over a finished report.
  std::filesystem::create_directories(at.logs + "/mlperf/performance");
  std::ofstream(at.logs + "/mlperf/performance/result_summary.json") << "{}";
  environment["SLURM_RESTART_COUNT"] = "1";
  const Ran again = mlperf(at);
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_THAT(again.output, HasSubstr("SLURM_RESTART_COUNT"));
}

}  // namespace
}  // namespace tutti::testing_support
