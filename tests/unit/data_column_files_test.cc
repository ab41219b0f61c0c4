#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/data/dataset.h"
#include "common/rust/abi.h"

namespace tutti::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFiles = TUTTI_SOURCE_DIR "/tests/support/column_files/";

// What the three rows of make.py are for a chat request.
const char* const kRows[] = {
    "{\"prompt\":\"plain \\\"quoted\\\" \xC3\xA9\\n\",\"n\":2,\"stop\":[\"a\",\"b\"]}",
    R"({"prompt":"","n":null,"stop":[]})",
    R"({"prompt":"last","n":9007199254740993,"stop":null})",
};

std::vector<std::string> rows(const DatasetRequest& request) {
  const auto loaded = load_dataset(request);
  std::vector<std::string> out;
  for (const base::Problem& problem : loaded ? base::Problems() : loaded.error()) {
    out.push_back("problem: " + problem.remedy);
  }
  for (const Row& row : loaded ? loaded->rows : std::vector<Row>()) {
    out.push_back(row.cells.to_json());
  }
  return out;
}

DatasetRequest at(const std::string& path, const std::string& format = {}) {
  DatasetRequest request;
  request.path = path;
  request.format = format;
  return request;
}

class ColumnFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!tutti_rust_present()) {
      GTEST_SKIP() << "built without cargo";
    }
  }
};

TEST_F(ColumnFilesTest, ReadsParquetOfEveryCompression) {
  for (const char* codec : {"none", "snappy", "gzip", "zstd", "lz4"}) {
    EXPECT_THAT(rows(at(kFiles + codec + ".parquet")), ElementsAre(kRows[0], kRows[1], kRows[2]))
        << codec;
  }
}

TEST_F(ColumnFilesTest, ReadsTheTrainSplitOfAFolderOverAllItsFiles) {
  for (const char* format : {"", "huggingface", ".huggingface"}) {
    EXPECT_THAT(rows(at(kFiles + "folder", format)), ElementsAre(kRows[0], kRows[1], kRows[2]));
  }
  EXPECT_THAT(rows(at(kFiles + "folder/test")), ElementsAre(kRows[2])) << "a split of its own";
}

TEST_F(ColumnFilesTest, KeepsNestedTypes) {
  EXPECT_THAT(
      rows(at(kFiles + "types.parquet")),
      ElementsAre(R"({"prompt":"a","system":"s","messages":[{"role":"user","content":"hi"}],)"
                  R"("tools":[{"f":0.5,"h":1.0}],"logit_bias":{"5":1.5},"n":1,"stop":["x","y"]})",
                  R"({"prompt":"b","system":null,"messages":null,)"
                  R"("tools":[{"f":null,"h":-2.0}],"logit_bias":{"5":null},"n":255,)"
                  R"("stop":["z",null]})"));
}

TEST_F(ColumnFilesTest, ReadsTokenLists) {
  auto request = at(kFiles + "tokens.parquet");
  request.api = base::ApiType::kOpenAiCompletions;
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"a","input_tokens":[1,2,3]})",
                                         R"({"prompt":"b","input_tokens":[70000]})"));
}

TEST_F(ColumnFilesTest, TruthsSamplesAndRenamesWorkAsInTextFiles) {
  auto request = at(kFiles + "folder");
  request.truth_column = "answer";
  request.samples = 2;
  request.parser = {{"system", "answer"}};
  const auto loaded = load_dataset(request);
  ASSERT_TRUE(loaded) << loaded.error()[0].remedy;
  ASSERT_EQ(loaded->truths.size(), 2U);
  EXPECT_EQ(loaded->truths[0].as_string(), "025");
  EXPECT_TRUE(loaded->truths[1].is_null());
  EXPECT_EQ(loaded->rows[0].cells.find("system")->as_string(), "025");
  EXPECT_TRUE(loaded->ended_by_samples);
  EXPECT_EQ(loaded->where(1), kFiles + "folder: row 2");
}

TEST_F(ColumnFilesTest, WhatCannotBeToldInJsonIsRefusedWhenItIsNeeded) {
  EXPECT_THAT(rows(at(kFiles + "binary.parquet")),
              ElementsAre(HasSubstr("column 'prompt' holds values of type Binary")));
  auto request = at(kFiles + "none.parquet");
  request.truth_column = "day";
  EXPECT_THAT(rows(request), ElementsAre(HasSubstr("column 'day' holds values of type Date32")));
}

TEST_F(ColumnFilesTest, MissingColumnsAreNamedWithWhatThereIs) {
  auto request = at(kFiles + "none.parquet");
  request.parser = {{"prompt", "text"}};
  EXPECT_THAT(rows(request), ElementsAre(HasSubstr("answer, day, n, question, stop")));
  EXPECT_THAT(rows(at(kFiles + "empty.parquet")), ElementsAre(HasSubstr("no rows")));
}

TEST_F(ColumnFilesTest, DamagedAndForeignFilesAreErrors) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tutti_columns_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ifstream in(kFiles + "snappy.parquet", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto written = [&folder](const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return at((folder / name).string());
  };
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    EXPECT_THAT(rows(written("cut.parquet", whole.substr(0, size))),
                ElementsAre(HasSubstr("problem: ")))
        << size;
  }
  EXPECT_THAT(rows(written("text.parquet", "{}")),
              ElementsAre(HasSubstr("neither a Parquet file nor an Arrow stream")));
  EXPECT_THAT(rows(at(folder.string())), ElementsAre(HasSubstr("save_to_disk")));
  std::filesystem::create_directories(folder / "hf");
  std::ofstream(folder / "hf" / "dataset_dict.json") << R"({"splits":["dev","test"]})";
  EXPECT_THAT(rows(at((folder / "hf").string())), ElementsAre(HasSubstr("(dev, test)")));
  std::ofstream(folder / "hf" / "dataset_dict.json") << R"({"splits":["train"]})";
  std::filesystem::create_directories(folder / "hf" / "train");
  std::ofstream(folder / "hf" / "train" / "state.json") << R"({"_data_files":[{"filename":"x"}]})";
  EXPECT_THAT(rows(at((folder / "hf").string())), ElementsAre(HasSubstr("cannot be opened")));
  std::ofstream(folder / "hf" / "train" / "state.json")
      << R"({"_data_files":[{"filename":"../x"}]})";
  EXPECT_THAT(rows(at((folder / "hf").string())), ElementsAre(HasSubstr("not in its folder")));
  std::filesystem::remove_all(folder);
}

TEST(ColumnFilesWithoutCargo, AreRefusedWithTheRemedy) {
  if (tutti_rust_present()) {
    GTEST_SKIP() << "built with cargo";
  }
  EXPECT_THAT(rows(at(kFiles + "none.parquet")), ElementsAre(HasSubstr("install cargo")));
  EXPECT_THAT(rows(at(kFiles + "folder")), ElementsAre(HasSubstr("install cargo")));
}

}  // namespace
}  // namespace tutti::data
