#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/data/dataset.h"

namespace tutti::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class DatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("tutti_dataset_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  DatasetRequest file(const std::string& name, std::string_view text) {
    DatasetRequest request;
    request.path = (folder_ / name).string();
    std::ofstream(request.path, std::ios::binary) << text;
    return request;
  }

  static std::vector<std::string> rows(const DatasetRequest& request) {
    auto loaded = load_dataset(request);
    std::vector<std::string> out;
    if (!loaded) {
      for (const base::Problem& p : loaded.error()) {
        out.push_back("problem: " + p.remedy);
      }
      return out;
    }
    for (const Row& row : loaded->rows) {
      out.push_back(row.cells.to_json());
    }
    return out;
  }

  static base::Problems problems(const DatasetRequest& request) {
    auto loaded = load_dataset(request);
    return loaded ? base::Problems{} : loaded.error();
  }

  std::filesystem::path folder_;
};

TEST_F(DatasetTest, NamesTheWellKnownColumnsAndDropsTheRest) {  // VEC-DT1
  EXPECT_THAT(rows(file("a.jsonl", R"({"question":"q1","system_prompt":"s","answer":"a","n":2})")),
              ElementsAre(R"({"prompt":"q1","system":"s","n":2})"));
}

TEST_F(DatasetTest, ReadsJsonlWithBlankLinesBomAndCrlf) {
  const auto request =
      file("a.jsonl", "\xEF\xBB\xBF{\"prompt\":\"a\"}\r\n\n  \n{\"prompt\":\"b\\u00e9\"}");
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"a"})", "{\"prompt\":\"b\xC3\xA9\"}"));
  const auto loaded = load_dataset(request);
  EXPECT_EQ(loaded->where(1), request.path + ":4");
}

TEST_F(DatasetTest, KeepsJsonTypes) {
  EXPECT_THAT(rows(file("a.jsonl",
                        "{\"prompt\":\"025\",\"stop\":[\"x\"],\"logit_bias\":{\"5\":1.0}}\n"
                        "{\"prompt\":\"1e3\",\"n\":3,\"system\":null}\n")),
              ElementsAre(R"({"prompt":"025","stop":["x"],"logit_bias":{"5":1.0}})",
                          R"({"prompt":"1e3","n":3,"system":null})"));
}

TEST_F(DatasetTest, ReadsListsAndColumnsOfJson) {
  EXPECT_THAT(rows(file("a.json", R"([{"prompt":"a"},{"prompt":"b","x":1}])")),
              ElementsAre(R"({"prompt":"a"})", R"({"prompt":"b"})"));
  EXPECT_THAT(rows(file("b.json", R"({"prompt":{"0":"a","7":"b"},"n":{"7":2}})")),
              ElementsAre(R"({"prompt":"a"})", R"({"prompt":"b","n":2})"));
  EXPECT_THAT(rows(file("c.json", R"({"prompt":["a","b"],"n":[1,2]})")),
              ElementsAre(R"({"prompt":"a","n":1})", R"({"prompt":"b","n":2})"));
  EXPECT_THAT(rows(file("d.json", R"({"prompt":["a","b"],"n":[1]})")),
              ElementsAre(HasSubstr("'n' has 1 values, another has 2")));
  EXPECT_THAT(rows(file("e.json", R"({"prompt":"a"})")), ElementsAre(HasSubstr("column-oriented")));
  EXPECT_THAT(rows(file("f.json", R"([{"prompt":"a"},5])")), ElementsAre(HasSubstr("an object")));
  EXPECT_THAT(rows(file("g.json", "[1,\n2")), ElementsAre(HasSubstr("line 2")));
}

TEST_F(DatasetTest, ReadsCsvCellsAsTextExceptWhereATypeIsNeeded) {
  EXPECT_THAT(
      rows(file("a.csv", "prompt,n,stop,tool_choice\n\"a,\n\"\"b\"\"\",2,5,auto\n007,,,\n")),
      ElementsAre("{\"prompt\":\"a,\\n\\\"b\\\"\",\"n\":2,\"stop\":\"5\",\"tool_choice\":\"auto\"}",
                  R"({"prompt":"007"})"));
  const auto bad = problems(file("b.csv", "prompt,n\n\"x\ny\",1\n\nz,two\nq\n"));
  ASSERT_THAT(bad, SizeIs(2));
  EXPECT_THAT(bad[0].where, HasSubstr("b.csv:6"));
  EXPECT_THAT(bad[0].remedy, HasSubstr("1 fields"));
  EXPECT_THAT(bad[1].where, HasSubstr("b.csv:5"));
  EXPECT_EQ(bad[1].field, "n");
  const auto quote = problems(file("c.csv", "prompt\na\n\"b"));
  ASSERT_THAT(quote, SizeIs(1));
  EXPECT_THAT(quote[0].where, HasSubstr("c.csv:3"));
}

TEST_F(DatasetTest, AppliesTheParser) {
  DatasetRequest request =
      file("a.jsonl", R"({"article":"t","prompt":"old","sys":"s","question":"q"})");
  request.parser = {{"prompt", "article"}, {"system", "sys"}};
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"t","system":"s"})"));
  request.parser = {{"other", "article"}, {"prompt", "article"}};  // later target of one source
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"t"})"));
  request.parser = {{"prompt", "nope"}, {"system", "neither"}};
  const auto both = problems(request);
  ASSERT_THAT(both, SizeIs(2));
  EXPECT_EQ(both[0].field, "parser.prompt");
  EXPECT_THAT(both[0].remedy, HasSubstr("article, prompt, question, sys"));
}

TEST_F(DatasetTest, RightAnswersKeepTheirTypeAndTheFilesName) {
  DatasetRequest request = file("t.jsonl",
                                "{\"question\":\"q1\",\"answer\":7}\n{\"question\":\"q2\"}\n"
                                "{\"question\":\"q3\",\"answer\":\"x\"}\n");
  request.parser = {{"prompt", "question"}, {"system", "answer"}};
  request.truth_column = "answer";
  request.samples = 2;
  const auto loaded = load_dataset(request);
  ASSERT_FALSE(loaded) << "a number is no system prompt, whatever else it is";
  request.parser = {{"prompt", "question"}};
  const auto answers = load_dataset(request);
  ASSERT_TRUE(answers);
  ASSERT_THAT(answers->truths, SizeIs(2));
  EXPECT_EQ(answers->truths[0], text::JsonValue::of_int(7));
  EXPECT_TRUE(answers->truths[1].is_null());

  DatasetRequest csv = file("t.csv", "prompt,answer\np,007\n");
  csv.truth_column = "prompt";  // may be a column that is sent, too
  const auto sent = load_dataset(csv);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->truths[0], text::JsonValue::of_string("p"));
  EXPECT_EQ(sent->rows[0].cells.to_json(), R"({"prompt":"p"})");
  csv.truth_column = "Answer";
  const base::Problems wrong = problems(csv);
  ASSERT_THAT(wrong, SizeIs(1));
  EXPECT_EQ(wrong[0].value, "Answer");
  EXPECT_THAT(wrong[0].remedy, HasSubstr("prompt, answer"));
}

TEST_F(DatasetTest, RefusesTwoPromptCandidatesUnlessThePromptIsNamed) {
  DatasetRequest request = file("a.jsonl", R"({"question":"q","input":"i"})");
  const auto two = problems(request);
  ASSERT_THAT(two, SizeIs(1));
  EXPECT_EQ(two[0].value, "question, input");
  EXPECT_THAT(two[0].remedy, HasSubstr("parser.prompt=question"));
  request.parser = {{"prompt", "input"}};
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"i"})"));
  EXPECT_THAT(rows(file("b.jsonl", R"({"question":"q","input":"i","prompt":"p"})")),
              ElementsAre(R"({"prompt":"p"})"));
}

TEST_F(DatasetTest, FindsTextInputOnlyAsLastResort) {
  const auto request = file("a.jsonl", "{\"text_input\":\"t\",\"ref_output\":\"r\"}\n");
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"t"})"));
  EXPECT_THAT(load_dataset(request)->notes, ElementsAre(HasSubstr("'text_input'")));
  EXPECT_THAT(rows(file("b.jsonl", R"({"text":"t","query":"q"})")),
              ElementsAre(R"({"prompt":"q"})"));
  EXPECT_THAT(rows(file("c.jsonl", R"({"text":"t"})")), ElementsAre(R"({"prompt":"t"})"));
  const auto none = problems(file("d.jsonl", R"({"body":"t"})"));
  ASSERT_THAT(none, SizeIs(1));
  EXPECT_THAT(none[0].remedy, HasSubstr("parser.prompt=COLUMN"));
  EXPECT_THAT(none[0].remedy, HasSubstr("body"));
}

TEST_F(DatasetTest, AcceptsMessagesOnlyFiles) {
  const std::string good = R"({"messages":[{"role":"user","content":"Hi"}]})";
  EXPECT_THAT(rows(file("a.jsonl", good)), ElementsAre(good));
  const auto bad =
      problems(file("b.jsonl", good + "\n{\"messages\":null}\n{\"messages\":[{\"content\":1}]}\n"
                                      "{\"messages\":\"x\"}\n{\"prompt\":\"p\"}\n"));
  ASSERT_THAT(bad, SizeIs(3));
  EXPECT_THAT(bad[0].where, HasSubstr("b.jsonl:2"));
  EXPECT_THAT(bad[1].where, HasSubstr("b.jsonl:3"));
  EXPECT_THAT(bad[1].remedy, HasSubstr("'role'"));
  EXPECT_THAT(bad[2].where, HasSubstr("b.jsonl:4"));
}

TEST_F(DatasetTest, FindsAllProblemsAndCountsThoseNotShown) {
  const auto some = problems(file("a.jsonl",
                                  "{\"prompt\":\"a\"}\n{\"prompt\":\n[1]\n{\"prompt\":5}\n"
                                  "{\"n\":1}\n{\"prompt\":\"b\",\"n\":-1}\n"));
  ASSERT_THAT(some, SizeIs(5));
  EXPECT_THAT(some[0].where, HasSubstr("a.jsonl:2"));
  EXPECT_THAT(some[1].remedy, HasSubstr("this is array"));
  std::string many;
  for (int i = 0; i < 50; ++i) {
    many += "{\"prompt\":" + std::to_string(i) + "}\n";
  }
  const auto capped = problems(file("b.jsonl", many));
  ASSERT_THAT(capped, SizeIs(kProblemsMax + 1));
  EXPECT_THAT(capped.back().remedy, HasSubstr("30 more"));
}

TEST_F(DatasetTest, TakesTheFirstNSamplesAndReadsNoFurther) {
  DatasetRequest request = file("a.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\nbroken\n");
  request.samples = 2;
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"a"})", R"({"prompt":"b"})"));
  EXPECT_TRUE(load_dataset(request)->ended_by_samples);
  request = file("b.csv", "prompt\na\nb\n");
  request.samples = 1;
  EXPECT_THAT(rows(request), SizeIs(1));
  request.samples = 5;
  EXPECT_THAT(load_dataset(request)->notes, ElementsAre(HasSubstr("the file has 2 rows")));
  request.samples = 0;
  EXPECT_THAT(problems(request), SizeIs(1));
}

TEST_F(DatasetTest, ChoosesTheFormatByNameOrSuffix) {
  DatasetRequest request = file("a.txt", "{\"prompt\":\"a\"}\n");
  EXPECT_THAT(rows(request), ElementsAre(HasSubstr("unsupported file extension '.txt'")));
  request.format = "jsonl";
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"a"})"));
  request.format = ".jsonl";
  EXPECT_THAT(rows(request), SizeIs(1));
  request.format = "JSONL";
  EXPECT_THAT(rows(request), ElementsAre(HasSubstr("unknown format")));
  EXPECT_THAT(rows(file("a.gz", "x")), ElementsAre(HasSubstr("unsupported file extension")));
  DatasetRequest folder;
  folder.path = folder_.string();
  EXPECT_THAT(rows(folder), ElementsAre(HasSubstr("save_to_disk")));
  EXPECT_THAT(rows(file("noend", "")), ElementsAre(HasSubstr("extension ''")));
}

TEST_F(DatasetTest, RefusesEmptyAndMissingFiles) {
  EXPECT_THAT(rows(file("a.jsonl", "")), ElementsAre(HasSubstr("no rows")));
  EXPECT_THAT(rows(file("a.json", "[]")), ElementsAre(HasSubstr("no rows")));
  EXPECT_THAT(rows(file("a.csv", "prompt\n")), ElementsAre(HasSubstr("no rows")));
  DatasetRequest missing;
  missing.path = (folder_ / "none.jsonl").string();
  EXPECT_THAT(rows(missing), ElementsAre(HasSubstr("cannot be opened")));
}

TEST_F(DatasetTest, TakesTextOrTokensForCompletions) {
  DatasetRequest request =
      file("a.jsonl", "{\"prompt\":\"a\",\"system\":\"s\"}\n{\"input_tokens\":[1,2]}\n");
  request.api = base::ApiType::kOpenAiCompletions;
  EXPECT_THAT(rows(request), ElementsAre(R"({"prompt":"a"})", R"({"input_tokens":[1,2]})"));
  request = file("b.jsonl", "{\"prompt\":[{\"type\":\"text\"}]}\n{\"input_tokens\":[\"x\"]}\n");
  request.api = base::ApiType::kOpenAiCompletions;
  EXPECT_THAT(problems(request), SizeIs(2));
}

TEST_F(DatasetTest, TellsItsProgressByTheRow) {
  DatasetRequest request = file("p.jsonl", R"({"prompt":"a"}

{"prompt":"b"}
{"prompt":"c"}
{"prompt":"d"}
{"prompt":"e"}
)");
  std::vector<std::size_t> told;
  request.progress = [&told](std::size_t rows) { told.push_back(rows); };
  request.progress_rows = 2;
  ASSERT_TRUE(load_dataset(request));
  EXPECT_THAT(told, ElementsAre(2, 4));
}

TEST_F(DatasetTest, GivesThePromptForEventFiles) {
  const auto prompt = [this](std::string_view text) {
    const auto loaded = load_dataset(file("p.jsonl", text));
    return loaded ? prompt_of(loaded->rows[0]) : Prompt{};
  };
  EXPECT_EQ(prompt(R"({"prompt":"a","system":"s"})").kind, PromptKind::kText);
  EXPECT_EQ(prompt(R"({"prompt":"a","system":"s"})").text, "a");
  EXPECT_EQ(prompt(R"({"prompt":"a","messages":[{"x":1,"content":"c","role":"user"}]})").text,
            R"([{"role":"user","content":"c"}])");
  EXPECT_EQ(prompt(R"({"prompt":[{"type":"text","text":"t"}]})").kind, PromptKind::kMessages);
  EXPECT_EQ(prompt(R"({"prompt":[{"type":"text","text":"t"}]})").text,
            R"([{"role":"user","content":[{"type":"text","text":"t"}]}])");
}

TEST_F(DatasetTest, ReadsAThousandRowsLikeThePublicSample) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text +=
        "{\"text_input\":\"Explain case " + std::to_string(i) + "\",\"ref_output\":\"Response\"}\n";
  }
  const auto loaded = load_dataset(file("dummy_1k.jsonl", text));
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->rows.size(), 1000U);
  EXPECT_EQ(loaded->rows[999].cells.to_json(), R"({"prompt":"Explain case 999"})");
  EXPECT_EQ(loaded->rows[999].line, 1000U);
}

}  // namespace
}  // namespace tutti::data
