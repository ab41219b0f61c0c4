// GPQA made of its source: a folder, a file, the hub; where the result lies, when it is made again,
// and what is said when it cannot be made.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/data/dataset.h"
#include "common/data/predefined.h"
#include "common/rust/abi.h"
#include "tests/support/fake_hub.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

using support::FakeHub;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using text::JsonValue;

const std::string kHead =
    "Record,Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,"
    "High-level domain,Subdomain\n";

// Row i: its answers are "i0" (right) to "i3".
std::string table(int rows) {
  std::string out = kHead;
  for (int i = 0; i < rows; ++i) {
    out += fmt::format("r{0},\"q{0},\n\"\"é\"\"\",{0}0,{0}1,{0}2,{0}3,Physics,\n", i);
  }
  return out;
}

class GpqaFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!tutti_rust_present()) {
      GTEST_SKIP() << "NOT TESTED: built without cargo";
    }
    fs::create_directories(base_);
    ::setenv("HF_HUB_CACHE", (base_ / "hub").c_str(), 1);
    ::setenv("HF_TOKEN", "hf_secretsecret", 1);
  }
  void TearDown() override { fs::remove_all(base_); }

  std::string put(const std::string& file, const std::string& text) const {
    fs::create_directories((base_ / file).parent_path());
    std::ofstream(base_ / file) << text;
    return (base_ / file).string();
  }

  base::Result<CachedSet> find(const std::string& params) const {
    return find_predefined("gpqa", *text::read_json(params), (base_ / "cache").string());
  }
  // Of the source folder, with more parameters.
  base::Result<CachedSet> find_here(const std::string& more = "") const {
    return find(fmt::format(R"({{"source":"{}"{}}})", (base_ / "source").string(), more));
  }

  // The cells of a column, by the reader that runs use.
  static std::vector<std::string> column(const CachedSet& set, const std::string& name) {
    DatasetRequest request;
    request.path = set.path;
    request.truth_column = name;
    const auto read = load_dataset(request);
    std::vector<std::string> out;
    for (const JsonValue& cell : read ? read->truths : std::vector<JsonValue>()) {
      out.push_back(cell.is_string() ? cell.as_string() : cell.to_json());
    }
    return out;
  }

  std::string in_cache(const std::string& name) const {
    return (base_ / "cache/gpqa/diamond" / name).string();
  }

  fs::path base_ = fs::temp_directory_path() / fmt::format("tutti_gpqa_{}", ::getpid());
};

TEST_F(GpqaFiles, AFolderOfTheSourceBecomesTheReferencesFile) {
  put("source/gpqa_diamond.csv", table(4));
  const auto set = find_here();
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->path, in_cache("gpqa_diamond.parquet"));
  EXPECT_FALSE(set->pick);
  ASSERT_THAT(set->notes, SizeIs(1));
  EXPECT_THAT(set->notes[0], HasSubstr("source/gpqa_diamond.csv"));
  EXPECT_THAT(column(*set, "ground_truth"),
              ElementsAre("choice3", "choice4", "choice3", "choice2"));
  EXPECT_THAT(column(*set, "choice1"), ElementsAre("03", "13", "22", "32"));
  EXPECT_THAT(column(*set, "choice4"), ElementsAre("02", "10", "21", "31"));
  EXPECT_THAT(column(*set, "question")[1], "q1,\n\"é\"");
  EXPECT_THAT(column(*set, "domain")[0], "Physics");
  EXPECT_THAT(column(*set, "subdomain")[0], "null");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(base_ / "cache/gpqa/diamond")) {
    files.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(files, ElementsAre("gpqa_diamond.parquet"));  // no draft stays
}

TEST_F(GpqaFiles, WhatIsThereIsReadAgainUnlessItIsToBeMadeAnew) {
  put("source/gpqa_diamond.csv", table(4));
  ASSERT_TRUE(find_here());
  put("source/gpqa_diamond.csv", table(6));
  const auto again = find_here();
  ASSERT_TRUE(again);
  EXPECT_THAT(column(*again, "question"), SizeIs(4));
  const auto anew = find_here(R"(,"force_regenerate":true)");
  ASSERT_TRUE(anew);
  EXPECT_EQ(anew->path, again->path);
  EXPECT_THAT(column(*anew, "question"), SizeIs(6));
}

TEST_F(GpqaFiles, ASeedOrAPartLiesBesideTheReferencesFile) {
  put("source/gpqa_diamond.csv", table(40));
  const auto part = find_here(R"(,"max_samples":9)");
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->path, in_cache("gpqa_diamond_seed0_of9.parquet"));
  EXPECT_FALSE(part->pick);  // done
  EXPECT_THAT(column(*part, "question"), SizeIs(9));
  EXPECT_FALSE(fs::exists(in_cache("gpqa_diamond.parquet")));
  const auto seeded = find_here(R"(,"seed":7)");
  ASSERT_TRUE(seeded);
  EXPECT_EQ(seeded->path, in_cache("gpqa_diamond_seed7.parquet"));
  // Row 0 of CPython's Random(7) is 2, 0, 1, 3.
  EXPECT_EQ(column(*seeded, "ground_truth")[0], "choice2");
}

TEST_F(GpqaFiles, AFileOfTheReferenceIsUsedAsItIsAndTheSeedIsSaidToCountForNothing) {
  put("cache/gpqa/diamond/gpqa_diamond.parquet", "x");
  const auto set = find(R"({"seed":3,"max_samples":2})");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->path, in_cache("gpqa_diamond.parquet"));
  ASSERT_TRUE(set->pick);
  EXPECT_EQ(set->pick->count, 2U);
  ASSERT_THAT(set->notes, SizeIs(2));
  EXPECT_THAT(set->notes[1], AllOf(HasSubstr("whatever the seed"), HasSubstr("force_regenerate")));
}

TEST_F(GpqaFiles, OneFileOrTheHubWillDo) {
  const std::string file = put("mine.csv", table(2));
  const auto from_file = find(fmt::format(R"({{"source":"{}"}})", file));
  ASSERT_TRUE(from_file) << from_file.error().message;
  EXPECT_THAT(column(*from_file, "question"), SizeIs(2));
  const FakeHub hub(
      "datasets/Idavidrein/gpqa",
      {{"gpqa_diamond.csv", table(3)}, {"gpqa_main.csv", table(5)}, {"license.txt", "words"}});
  ::setenv("HF_ENDPOINT", hub.url().c_str(), 1);
  const auto from_hub = find(R"({"variant":"main"})");
  ASSERT_TRUE(from_hub) << from_hub.error().message;
  EXPECT_EQ(from_hub->path, (base_ / "cache/gpqa/main/gpqa_main.parquet").string());
  EXPECT_THAT(column(*from_hub, "question"), SizeIs(5));
  ASSERT_THAT(hub.asked(), SizeIs(2));
  EXPECT_THAT(hub.asked()[0].head, HasSubstr("hf_secretsecret"));
}

TEST_F(GpqaFiles, AHubThatShutsItsDoorsIsToldWithWhatToDo) {
  for (const auto& [status, remedy] : std::map<int, std::string>{
           {401, "does not take the token"}, {403, "ask for access on its page"}}) {
    FakeHub hub("datasets/Idavidrein/gpqa", {});
    hub.status = status;
    ::setenv("HF_ENDPOINT", hub.url().c_str(), 1);
    const auto refused = find("null");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr(remedy), HasSubstr("generate_params.source"),
                      HasSubstr("gpqa/diamond/gpqa_diamond.parquet")));
    EXPECT_THAT(refused.error().message, testing::Not(HasSubstr("hf_secret")));
  }
}

TEST_F(GpqaFiles, ASourceThatIsNoneLeavesNothingBehind) {
  fs::create_directories(base_ / "source");
  const auto message = [this] {
    const auto set = find_here();
    return set ? std::string() : set.error().message;
  };
  EXPECT_THAT(message(), HasSubstr("no folder with gpqa_diamond.csv or gpqa_diamond.parquet"));
  put("source/gpqa_diamond.csv", table(2) + "r,q,right,,w2,w3,,\n");
  EXPECT_THAT(message(), AllOf(HasSubstr("gpqa_diamond.csv:6"),
                               HasSubstr("nothing in column Incorrect Answer 1")));
  put("source/gpqa_diamond.csv", "prompt\nx\n");
  EXPECT_THAT(message(), HasSubstr("nothing in column Question, Correct Answer"));
  put("source/gpqa_diamond.csv", kHead);
  EXPECT_THAT(message(), HasSubstr("holds no questions"));
  EXPECT_THAT(find(R"({"source":7})").error().message, HasSubstr("a file, a folder or a path"));
  EXPECT_THAT(find(R"({"force_regenerate":"yes"})").error().message, HasSubstr("true or false"));
  EXPECT_FALSE(fs::exists(base_ / "cache"));
  put("cache/gpqa/diamond", "a file where the folder should be");
  put("source/gpqa_diamond.csv", table(2));
  EXPECT_THAT(message(), HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace tutti::data
