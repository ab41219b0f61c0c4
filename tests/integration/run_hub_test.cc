// Whole runs whose data set or tokenizer lies at the hub: fetched before the run, once, and a hub
// that cannot give them ends the run before it begins.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/rust/abi.h"
#include "tests/support/fake_hub.h"
#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using support::FakeHub;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const std::string kSource = TUTTI_SOURCE_DIR;
const std::string kRows = R"({"prompt":"one"})"
                          "\n"
                          R"({"prompt":"two"})"
                          "\n";

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Ran run_offline(const Mock& mock, const std::string& endpoint, const std::string& base,
                std::vector<std::string> model_and_more) {
  std::vector<std::string> words = {"tutti",        "benchmark",    "offline",     "--endpoints",
                                    mock.urls()[0], "--report-dir", base + "/run", "--model"};
  words.insert(words.end(), model_and_more.begin(), model_and_more.end());
  return run_program(words, 60'000,
                     {{"HF_ENDPOINT", endpoint},
                      {"HF_HUB_CACHE", base + "/cache"},
                      {"HF_TOKEN", "hf_secretsecret"}});
}

TEST(RunHub, ADataSetIsFetchedOnceAndAskedWhole) {
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const FakeHub hub("datasets/org/rows", {{"rows.jsonl", kRows}, {"README.md", "words"}});
  const std::string base = fresh_folder("hub-rows");
  for (int i = 0; i < 2; ++i) {
    const Ran ran =
        run_offline(mock, hub.url(), base, {"m", "--dataset", "hf://datasets/org/rows"});
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    EXPECT_THAT(ran.output, Not(HasSubstr("hf_secretsecret")));
    const auto summary = read_json(base + "/run/performance/result_summary.json");
    EXPECT_EQ(summary["n_samples_completed"], 2);
  }
  EXPECT_THAT(hub.asked(), SizeIs(2));
  EXPECT_THAT(hub.led(), SizeIs(1));
}

TEST(RunHub, ATokenizerThatWasNamedIsFetchedAndOneThatWasNotIsNot) {
  if (!tutti_rust_present()) {
    GTEST_SKIP() << "NOT TESTED: built without cargo";
  }
  const std::string tiny = kSource + "/tests/support/tiny_model/";
  const Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const FakeHub hub("models/org/tiny",
                    {{"tokenizer.json", bytes_of(tiny + "tokenizer.json")},
                     {"tokenizer_config.json", bytes_of(tiny + "tokenizer_config.json")}});
  const std::string base = fresh_folder("hub-tokenizer");
  std::ofstream(base + "/rows.jsonl") << kRows;
  const Ran unnamed =
      run_offline(mock, hub.url(), base, {"org/tiny", "--dataset", base + "/rows.jsonl"});
  ASSERT_EQ(unnamed.exit_code, 0) << unnamed.output;
  EXPECT_THAT(unnamed.output, HasSubstr("Tokens will not be counted"));
  EXPECT_THAT(hub.asked(), SizeIs(0));
  const Ran ran = run_offline(mock, hub.url(), base,
                              {"m", "--dataset", base + "/rows.jsonl", "--tokenizer", "org/tiny"});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("Fetching model org/tiny, file tokenizer.json"));
  const auto summary = read_json(base + "/run/performance/result_summary.json");
  EXPECT_EQ(summary["tokens"]["source"], "tokenizer");
  EXPECT_EQ(summary["tokens"]["replies"], 2);
}

TEST(RunHub, AHubThatCannotGiveItEndsTheRunBeforeItBegins) {
  const Mock mock(1);
  FakeHub hub("datasets/org/rows", {{"rows.jsonl", kRows}});
  hub.status = 401;
  const std::string base = fresh_folder("hub-refuses");
  const Ran ran = run_offline(mock, hub.url(), base, {"m", "--dataset", "hf://datasets/org/rows"});
  EXPECT_EQ(ran.exit_code, 3) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("data set org/rows"), HasSubstr("HF_TOKEN"),
                                Not(HasSubstr("hf_secretsecret"))));
  const Ran wrong = run_offline(mock, hub.url(), base, {"m", "--dataset", "hf://org/rows"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.output;
  EXPECT_EQ(mock.metric("tutti_mock_completions_total"), 0);
}

}  // namespace
}  // namespace tutti::testing_support
