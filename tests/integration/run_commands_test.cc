// The command line as people meet it: errors that come all at once, templates that validate,
// probes, help, and every example file of configs/.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Commands, AllProblemsOfAFileComeAtOnceWithLineFieldValueAndRemedy) {
  const std::string base = fresh_folder("commands-errors");
  const std::string path = base + "/bad.yaml";
  std::ofstream(path) << "type: online\n"
                         "model_params: {name: m, top_q: 3}\n"
                         "datasets: [{path: d.jsonl}]\n"
                         "settings:\n"
                         "  load_pattern: {type: concurrency, target_concurrency: -3}\n"
                         "  runtime: {n_samples_to_issue: many}\n"
                         "endpoint_config: {endpoints: ['h:8000']}\n";
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"tutti", "validate-yaml", "-c", path},
           {"tutti", "benchmark", "from-config", "--config", path}}) {
    const Ran ran = run_program(words);
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.output,
                AllOf(HasSubstr("bad.yaml:2"), HasSubstr("top_q"), HasSubstr("did you mean top_"),
                      HasSubstr("bad.yaml:5"), HasSubstr("target_concurrency"), HasSubstr("-3"),
                      HasSubstr("bad.yaml:6"), HasSubstr("many"), HasSubstr("bad.yaml:7"),
                      HasSubstr("h:8000")));
  }
}

TEST(Commands, EveryTemplateOfInitValidates) {
  const std::string base = fresh_folder("commands-init");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(base);
  for (const std::string kind : {"concurrency", "eval", "offline", "online", "submission"}) {
    const Ran made = run_program({"tutti", "init", kind});
    EXPECT_EQ(made.exit_code, 0) << made.output;
    const Ran valid = run_program({"tutti", "validate-yaml", "-c", kind + "_template.yaml"});
    EXPECT_EQ(valid.exit_code, 0) << kind << "\n" << valid.output;
    EXPECT_THAT(valid.output, HasSubstr("Config valid"));
  }
  EXPECT_EQ(run_program({"tutti", "init", "nonsense"}).exit_code, 2);
  std::filesystem::current_path(before);
}

TEST(Commands, EveryExampleInConfigsIsValid) {
  std::size_t seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TUTTI_SOURCE_DIR) + "/configs")) {
    if (entry.path().extension() == ".yaml") {
      const Ran ran = run_program({"tutti", "validate-yaml", "-c", entry.path().string()});
      EXPECT_EQ(ran.exit_code, 0) << entry.path() << "\n" << ran.output;
      ++seen;
    }
  }
  EXPECT_GE(seen, 4U);
}

TEST(Commands, AProbeShowsAnswersOfEveryFrontendAndFailsBelowHalf) {
  const Mock mock(2, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "3"});
  const Ran good =
      run_program({"tutti", "probe", "--endpoints", mock.urls()[0] + "," + mock.urls()[1],
                   "--model", "m", "--requests", "6"});
  EXPECT_EQ(good.exit_code, 0) << good.output;
  EXPECT_THAT(good.output, AllOf(HasSubstr("Completed: 6/6 successful"), HasSubstr("[probe-0] "),
                                 HasSubstr("Probe successful")));
  const Mock bad(1, {"--fault", "status:500@70%", "--seed", "1"});
  const Ran failed = run_program(
      {"tutti", "probe", "--endpoints", bad.urls()[0], "--model", "m", "--requests", "20"});
  EXPECT_EQ(failed.exit_code, 4) << failed.output;
  EXPECT_THAT(failed.output, AllOf(HasSubstr("Probe failed: only"), HasSubstr("HTTP 500")));
  EXPECT_EQ(
      run_program({"tutti", "probe", "--endpoints", "http://h", "--model", "m", "--requests", "0"})
          .exit_code,
      1);
  EXPECT_EQ(run_program({"tutti", "probe", "--endpoints", "http://h"}).exit_code, 2);
}

TEST(Commands, AProbeOfSglangSendsTokenIdsAndVideosAreRefused) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "3"});
  const auto probe = [&](const std::string& api, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"tutti", "probe",      "--endpoints", mock.urls()[0], "--model",
                                   "m",     "--requests", "3",           "--api-type",   api};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const std::string tiny = std::string(TUTTI_SOURCE_DIR) + "/tests/support/tiny_model";
  const Ran good = probe("sglang", {"--tokenizer", tiny});
  const bool without_cargo = good.output.find("install cargo") != std::string::npos;
  EXPECT_EQ(good.exit_code, without_cargo ? 3 : 0) << good.output;
  EXPECT_THAT(good.output,
              HasSubstr(without_cargo ? "Probe setup failed" : "Completed: 3/3 successful"));
  const Ran none = probe("sglang");
  EXPECT_EQ(none.exit_code, 3) << none.output;
  EXPECT_THAT(none.output, HasSubstr("give it with --tokenizer"));
  const Ran video = probe("videogen");
  EXPECT_EQ(video.exit_code, 2) << video.output;
  EXPECT_THAT(video.output, HasSubstr("tutti benchmark offline"));
  EXPECT_EQ(probe("openai", {"--tokenizer", tiny}).exit_code, 2);
  EXPECT_EQ(probe("gopher").exit_code, 2);
}

TEST(Commands, HelpVersionAndTheReferencesName) {
  EXPECT_EQ(run_program({"tutti"}).exit_code, 0);
  EXPECT_EQ(run_program({"tutti", "--version"}).output, "0.1.0\n");
  EXPECT_EQ(run_program({"inference-endpoint", "--version"}).output, "0.1.0\n");
  for (const std::string command : {"benchmark", "probe", "validate-yaml", "init", "info"}) {
    const Ran ran = run_program({"tutti", command, "--help"});
    EXPECT_EQ(ran.exit_code, 0) << command;
    EXPECT_THAT(ran.output, testing::ContainsRegex("(U|u)sage: tutti"));
  }
  EXPECT_EQ(run_program({"tutti-agent", "--help"}).exit_code, 0);
  EXPECT_EQ(run_program({"tutti-mock", "--help"}).exit_code, 0);
  EXPECT_EQ(run_program({"tutti", "nonsense"}).exit_code, 1);
  EXPECT_EQ(run_program({"tutti-agent"}).exit_code, 1);
  const Ran info = run_program({"tutti", "info"});
  EXPECT_THAT(info.output, AllOf(HasSubstr("System Information"), HasSubstr("Open files")));
}

TEST(Commands, NoSecretShowsInLogsOrFiles) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("commands-secret");
  const std::string secret = "sk-very-secret-0123456789";
  std::string url = mock.urls()[0];
  url.insert(7, "someone:" + secret + "@");
  const Ran ran =
      run_program({"tutti", "-vv", "benchmark", "online", "--model", "m", "--dataset",
                   write_prompts(base, 10), "--report-dir", base + "/run", "--load-pattern",
                   "concurrency", "--concurrency", "2", "--api-key", secret, "--endpoints", url});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(ran.output.find(secret), std::string::npos);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base + "/run")) {
    if (entry.is_regular_file()) {
      ++files;
      EXPECT_EQ(read_text(entry.path()).find(secret), std::string::npos) << entry.path();
    }
  }
  EXPECT_GE(files, 6U);
}

TEST(Commands, ADataSetThatIsNotThereIsTwoAndABadOneIsThree) {
  const std::string base = fresh_folder("commands-data");
  std::ofstream(base + "/bad.jsonl") << "{\"prompt\": \"a\"}\n{\"prompt\": \n";
  const std::vector<std::string> head{"tutti",       "benchmark", "offline", "--endpoints",
                                      "http://h",    "--model",   "m",       "--report-dir",
                                      base + "/run", "--dataset"};
  auto words = head;
  words.push_back(base + "/none.jsonl");
  Ran ran = run_program(words);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.output, HasSubstr("Dataset file not found"));
  words.back() = base + "/bad.jsonl";
  ran = run_program(words);
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.output, HasSubstr("bad.jsonl:2"));
}

}  // namespace
}  // namespace tutti::testing_support
