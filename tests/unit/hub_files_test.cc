// What a path at the hub means, and that tokenizers and data sets come from there whole.

#include "common/data/hub_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/data/dataset.h"
#include "common/model/model_files.h"
#include "common/rust/abi.h"
#include "tests/support/fake_hub.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

using support::FakeHub;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kFiles = TUTTI_SOURCE_DIR "/tests/support/column_files/";

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(HubPath, IsReadAsTheHubWritesIt) {
  EXPECT_TRUE(is_hub_path("hf://datasets/a/b"));
  EXPECT_FALSE(is_hub_path("datasets/a/b"));
  const auto plain = read_hub_path("hf://datasets/org/name");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->repository, "org/name");
  EXPECT_EQ(plain->revision, "main");
  EXPECT_EQ(plain->inside, "");
  const auto full = read_hub_path("hf://datasets/org/name@refs%2Fconvert%2Fparquet/a/b.parquet");
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->repository, "org/name");
  EXPECT_EQ(full->revision, "refs/convert/parquet");
  EXPECT_EQ(full->inside, "a/b.parquet");
  for (const char* const bad : {"hf://", "hf://org/name", "hf://datasets/name", "hf://datasets//x",
                                "hf://datasets/org/name@", "hf://datasets/../name"}) {
    const auto read = read_hub_path(bad);
    ASSERT_FALSE(read.has_value()) << bad;
    EXPECT_THAT(read.error().message, HasSubstr("must be hf://datasets/ORG/NAME"));
  }
}

struct Choice {
  std::vector<std::string> files;
  std::string inside;
  std::vector<std::string> chosen;  // or none, and
  std::string why;                  // part of the error
};

TEST(HubPath, ChoosesTheFilesOfOneDataSetOrSaysWhatThereIs) {
  const std::vector<Choice> choices = {
      {{"README.md", "x.parquet"}, "", {"x.parquet"}, ""},
      {{"x.parquet", "y.json"}, "y.json", {"y.json"}, ""},
      {{"data/test-0.parquet", "data/train-0.parquet", "data/train-1.parquet"},
       "",
       {"data/train-0.parquet", "data/train-1.parquet"},
       ""},
      {{"train/0.parquet", "val/0.parquet"}, "", {"train/0.parquet"}, ""},
      {{"train/0.parquet", "val/0.parquet"}, "val", {"val/0.parquet"}, ""},
      {{"0.parquet", "1.parquet"}, "", {"0.parquet", "1.parquet"}, ""},
      {{"constrained.parquet", "latest.parquet"},
       "",
       {"constrained.parquet", "latest.parquet"},
       ""},
      {{"a.jsonl.gz", "config.json"}, "", {"a.jsonl.gz"}, ""},
      {{"test.parquet", "validation.parquet"}, "", {}, "no 'train': name a file; it has: test."},
      {{"a/0.parquet", "b/0.parquet"}, "", {}, "several folders"},
      {{"a.csv", "b.jsonl"}, "", {}, "several text files"},
      {{"a.bin", "README.md"}, "", {}, "name a file; it has: a.bin, README.md"},
      {{"a.parquet"}, "b", {}, "no file or folder 'b' there; it has: a.parquet"},
      {{"ab/x.parquet"}, "a", {}, "no file or folder 'a'"},
      {std::vector<std::string>(20, "n"), "b", {}, "and 8 more"}};
  for (const Choice& choice : choices) {
    const auto chosen = choose_hub_files(choice.files, choice.inside);
    const std::string name = choice.files.front() + " in " + choice.inside;
    ASSERT_EQ(chosen.has_value(), choice.why.empty()) << name;
    if (chosen) {
      EXPECT_EQ(*chosen, choice.chosen) << name;
    } else {
      EXPECT_THAT(chosen.error().message, HasSubstr(choice.why)) << name;
    }
  }
}

class FromHub : public testing::Test {
 protected:
  void SetUp() override {
    cache_ = testing::TempDir() + "from-hub-" + std::to_string(getpid());
    fs::remove_all(cache_);
    setenv("HF_HUB_CACHE", cache_.c_str(), 1);
  }
  void TearDown() override {
    fs::remove_all(cache_);
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_ENDPOINT");
  }
  static void use(const FakeHub& hub) { setenv("HF_ENDPOINT", hub.url().c_str(), 1); }

  std::string cache_;
};

std::size_t rows_of(const std::string& path) {
  DatasetRequest request;
  request.path = path;
  auto files = fetch_hub_files(path);
  EXPECT_TRUE(files.has_value()) << files.error().message;
  request.files = files.value_or(std::vector<std::string>());
  const auto loaded = load_dataset(request);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().front().remedy;
  return loaded ? loaded->rows.size() : 0;
}

TEST_F(FromHub, TextFilesAreDataSets) {
  const FakeHub hub("datasets/org/rows",
                    {{"rows.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n"}});
  use(hub);
  EXPECT_EQ(rows_of("hf://datasets/org/rows"), 2U);
  EXPECT_EQ(rows_of("hf://datasets/org/rows/rows.jsonl"), 2U);
  EXPECT_THAT(hub.asked(), SizeIs(2)) << "the second time all was in the cache";
  const auto missing = fetch_hub_files("hf://datasets/org/rows/no.jsonl");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message,
              HasSubstr("hf://datasets/org/rows/no.jsonl: no file or folder 'no.jsonl' there"));
}

TEST_F(FromHub, ParquetFilesOfASplitAreOneDataSet) {
  if (!tutti_rust_present()) {
    GTEST_SKIP() << "built without cargo";
  }
  const FakeHub hub("datasets/org/rows",
                    {{"data/train-00000-of-00002.parquet", text_of(kFiles + "zstd.parquet")},
                     {"data/train-00001-of-00002.parquet", text_of(kFiles + "none.parquet")},
                     {"data/test-00000-of-00001.parquet", text_of(kFiles + "gzip.parquet")}});
  use(hub);
  EXPECT_EQ(rows_of("hf://datasets/org/rows"), 6U);
  EXPECT_THAT(hub.led(), SizeIs(2)) << "the other split is not fetched";
}

TEST_F(FromHub, SeveralTextFilesAreNoDataSet) {
  DatasetRequest request;
  request.path = "hf://datasets/org/rows";
  request.files = {"a.jsonl", "b.jsonl"};
  const auto loaded = load_dataset(request);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().front().remedy, HasSubstr("only Parquet"));
}

TEST_F(FromHub, ATokenizerIsFetchedWithWhatBelongsToItAndNothingElse) {
  const FakeHub hub("models/org/name", {{"tokenizer.json", "{\"a\":1}"},
                                        {"chat_template.jinja", "{{ 1 }}"},
                                        {"model.safetensors", "large"}});
  use(hub);
  ASSERT_FALSE(model::find_model("org/name").has_value());
  const auto fetched = model::fetch_model("org/name");
  ASSERT_TRUE(fetched.has_value()) << fetched.error().message;
  EXPECT_EQ(model::find_model("org/name").value(), *fetched);
  const auto files = model::read_model_files(*fetched);
  ASSERT_TRUE(files.has_value());
  EXPECT_EQ(files->tokenizer_json, "{\"a\":1}");
  EXPECT_EQ(files->chat_template, "{{ 1 }}");
  ASSERT_THAT(hub.led(), SizeIs(2));
  EXPECT_THAT(hub.led()[1].head, HasSubstr("tokenizer.json")) << "last";
}

TEST_F(FromHub, AModelWithoutATokenizerIsRefused) {
  const FakeHub hub("models/org/name", {{"tokenizer.model", "x"}});
  use(hub);
  const auto fetched = model::fetch_model("org/name");
  ASSERT_FALSE(fetched.has_value());
  EXPECT_THAT(fetched.error().message, HasSubstr("has no tokenizer.json at the hub"));
  EXPECT_FALSE(model::fetch_model("/no/such/folder").has_value());
}

}  // namespace
}  // namespace tutti::data
