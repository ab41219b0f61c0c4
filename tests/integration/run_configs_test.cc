// Every file of configs/ is run, not only read: against a mock, as small as it can be made without
// touching what the example is about. New examples are taken up by themselves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kSource = TUTTI_SOURCE_DIR;

std::vector<fs::path> examples() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(kSource + "/configs")) {
    if (entry.path().extension() == ".yaml") {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Lines of the block `key:` at the left margin, which goes.
std::string without_block(const std::string& text, const std::string& key) {
  return std::regex_replace(text, std::regex("(^|\n)" + key + ":[^\n]*(\n[ -][^\n]*)*"), "");
}

// The frontends become the mock's; counts, rates and times become small; agents of other hosts
// become local ones.
std::string made_small(std::string text, const std::vector<std::string>& urls) {
  const std::pair<const char*, std::string> changes[] = {
      {"http://(127\\.0\\.0\\.1:18472)", urls[1]},
      {"http://(127\\.0\\.0\\.1|localhost|10\\.0\\.0\\.[0-9]+):(18471|8000)", urls[0]},
      {"n_samples_to_issue: [0-9_]{3,}", "n_samples_to_issue: 64"},
      {"target_concurrency: [0-9_]{3,}", "target_concurrency: 20"},
      {"min_issue_duration_ms: [0-9a-z.]+", "min_issue_duration_ms: 1s"},
      {"target_qps: [0-9.]+", "target_qps: 40"}};
  for (const auto& [pattern, with] : changes) {
    text = std::regex_replace(text, std::regex(pattern), with);
  }
  if (std::regex_search(text, std::regex("\n  (agents|listen):"))) {
    text = without_block(text, "distributed") + "\ndistributed: {local_agents: 2}\n";
  }
  return text;
}

std::vector<std::string> words_for(const std::string& text, const std::string& path,
                                   const std::string& folder) {
  std::vector<std::string> words{"tutti",        "benchmark", "from-config", "-c", path,
                                 "--report-dir", folder,      "--timeout",   "60"};
  if (text.find("type: eval") != std::string::npos) {
    words.insert(words.end(), {"--mode", "acc"});
  } else if (text.find("type: accuracy") != std::string::npos) {
    words.insert(words.end(), {"--mode", "both"});
  }
  return words;
}

TEST(Configs, EveryExampleRuns) {
  const Mock mock(2, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "4"});
  const auto before = fs::current_path();
  // Examples name their data from the project's folder; what a run makes there is not for the tree.
  const std::string home = fresh_folder("configs-home");
  for (const char* const shown : {"/configs", "/tests"}) {
    fs::create_directory_symlink(kSource + shown, home + shown);
  }
  fs::current_path(home);
  for (const fs::path& example : examples()) {
    SCOPED_TRACE(example.filename().string());
    const std::string folder = fresh_folder("configs-" + example.stem().string());
    const std::string text = made_small(read_text(example.string()), mock.urls());
    const std::string path = folder + "/small.yaml";
    std::ofstream(path) << text;
    const Ran ran = run_program(words_for(text, path, folder + "/run"), 90'000);
    if (ran.exit_code != 0 && ran.output.find("cargo") != std::string::npos) {
      std::cout << example.filename().string() << ": needs a build with cargo\n";
      continue;
    }
    EXPECT_EQ(ran.exit_code, 0) << text << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("Verdict: VALID"));
    const auto summary = read_json(folder + "/run/result_summary.json");
    EXPECT_FALSE(summary.is_null());
  }
  fs::current_path(before);
}

// `init KIND` leaves a form to be filled in; for each there is an example that runs, and for each
// API and each kind of data set.
TEST(Configs, EachKindOfTemplateApiAndDataSetHasAnExample) {
  std::string all;
  for (const fs::path& example : examples()) {
    all += read_text(example.string());
  }
  for (const char* needed :
       {"\ntype: offline\n", "\ntype: eval\n", "\ntype: submission\n", "    type: poisson\n",
        "    type: concurrency\n",
        // APIs beside openai, which goes without saying
        "api_type: openai_completions\n", "api_type: sglang\n", "api_type: videogen\n",
        // data sets
        ".jsonl\n", ".jsonl.gz\n", ".json.zst\n", ".csv\n", ".parquet\n", "_folder\n",
        "images.jsonl\n", "token_ids.jsonl\n", "agentic_inference:\n", "- name: random\n",
        "- name: gpqa\n"}) {
    EXPECT_THAT(all, HasSubstr(needed));
  }
}

}  // namespace
}  // namespace tutti::testing_support
