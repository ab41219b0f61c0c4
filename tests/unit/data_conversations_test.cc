// Multi-turn data sets: what is read, what is refused, and the bodies of their turns.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/data/conversations.h"

namespace tutti::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kTool =
    R"([{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}])";

class ConversationsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("tutti_conversations_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  DatasetRequest file(const std::string& name, std::string_view text) {
    DatasetRequest request;
    request.path = (folder_ / name).string();
    std::ofstream(request.path, std::ios::binary) << text;
    return request;
  }
  ConversationSet good(std::string_view text, const std::string& name = "a.jsonl") {
    auto loaded = ConversationSet::load(file(name, text));
    EXPECT_TRUE(loaded.has_value());
    for (const base::Problem& problem : loaded ? base::Problems{} : loaded.error()) {
      ADD_FAILURE() << problem.where << ": " << problem.field << ": " << problem.remedy;
    }
    return std::move(*loaded);
  }
  // "a.jsonl:3 turn must …" for each problem.
  std::vector<std::string> bad(std::string_view text, const std::string& name = "a.jsonl") {
    const auto loaded = ConversationSet::load(file(name, text));
    EXPECT_FALSE(loaded.has_value()) << text;
    std::vector<std::string> out;
    for (const base::Problem& problem : loaded ? base::Problems{} : loaded.error()) {
      out.push_back(problem.where.substr(problem.where.rfind('/') + 1) + " " + problem.field + " " +
                    problem.remedy);
    }
    return out;
  }
  static std::string body(const ConversationSet& set, base::SampleIndex sample,
                          const BodyParams& params = {}) {
    RenderedBody out;
    set.render(sample, params, out);
    return out.bytes;
  }

  std::filesystem::path folder_;
};

std::string vec_ag1() {
  return fmt::format(
      R"({{"_type":"dataset_metadata","anything":1}}
{{"conversation_id":"c1","turn":1,"role":"user","content":"hi","system":"S"}}
{{"conversation_id":"c1","turn":2,"role":"assistant","content":null,"tool_calls":{}}}
{{"conversation_id":"c1","turn":3,"role":"tool","content":null,"tool_results":)"
      R"([{{"tool_call_id":"t1","content":"42"}}],"delay_seconds":1.5}}
{{"conversation_id":"c1","turn":4,"role":"assistant","content":"done"}}
)",
      kTool);
}

TEST_F(ConversationsTest, TurnsHoldTheRecordedHistory) {  // VEC-AG1
  const ConversationSet set = good(vec_ag1());
  ASSERT_THAT(set.samples(), SizeIs(2));
  ASSERT_THAT(set.conversations(), SizeIs(1));
  EXPECT_EQ(set.conversations()[0].id, "c1");
  EXPECT_THAT(set.conversations()[0].samples, ElementsAre(0, 1));
  EXPECT_EQ(set.samples()[0].delay.ns, 0);
  EXPECT_EQ(set.samples()[1].delay, base::Duration::millis(1500));
  EXPECT_EQ(set.samples()[1].row, 2U) << "turn 3";
  EXPECT_EQ(prompt_of(set.row(0)).text,
            R"([{"role":"system","content":"S"},{"role":"user","content":"hi"}])");
  EXPECT_EQ(prompt_of(set.row(1)).text,
            fmt::format(R"([{{"role":"system","content":"S"}},{{"role":"user","content":"hi"}},)"
                        R"({{"role":"assistant","tool_calls":{}}},)"
                        R"({{"role":"tool","content":"42","tool_call_id":"t1"}}])",
                        kTool));
  EXPECT_THAT(set.where(1), HasSubstr("a.jsonl:4"));
}

TEST_F(ConversationsTest, TurnsMustBeConsecutive) {  // VEC-AG2
  EXPECT_THAT(bad(R"({"conversation_id":"c","turn":1,"role":"user","content":"a"}
{"conversation_id":"c","turn":2,"role":"assistant","content":"b"}
{"conversation_id":"c","turn":4,"role":"user","content":"c"})"),
              ElementsAre(AllOf(HasSubstr("a.jsonl:3 turn"),
                                HasSubstr("must be consecutive starting at 1; it has 1, 2, 4"))));
}

TEST_F(ConversationsTest, IdsArePrintableAscii) {  // VEC-AG3
  EXPECT_THAT(bad(R"({"conversation_id":"é","turn":1,"role":"user","content":"a"})"),
              ElementsAre(HasSubstr("a.jsonl:1 conversation_id must be printable ASCII")));
  EXPECT_EQ(
      good(R"({"conversation_id":17,"turn":1,"role":"user","content":"a"})").conversations()[0].id,
      "17");
}

TEST_F(ConversationsTest, ConversationsAreNotSplit) {  // VEC-AG4
  EXPECT_THAT(
      bad(R"({"conversation_id":"c1","turn":1,"role":"user","content":"a"}
{"conversation_id":"c2","turn":1,"role":"user","content":"a"}
{"conversation_id":"c1","turn":2,"role":"assistant","content":"b"})"),
      ElementsAre(AllOf(HasSubstr("a.jsonl:3 conversation_id"), HasSubstr("not consecutive"))));
}

TEST_F(ConversationsTest, AllMistakesOfAFileAreToldAtOnce) {
  EXPECT_THAT(bad(R"({"turn":1,"role":"user","content":"a"}
{"conversation_id":"c1","turn":"1","role":"user","content":"a"}
{"conversation_id":"c2","turn":1,"role":"guest","content":"a"}
{"conversation_id":"c3","turn":1,"role":"user","content":""}
{"conversation_id":"c3","turn":2,"role":"assistant","content":null}
{"conversation_id":"c4","turn":1,"role":"user","content":"a","max_new_tokens":"many","tools":{}}
{"conversation_id":"c4","turn":2,"role":"assistant","content":null,"tool_calls":[]}
{"conversation_id":"c4","turn":3,"role":"tool","content":null,"tool_results":)"
                  R"([{"tool_call_id":"x","content":null},7]}
not JSON)"),
              ElementsAre(HasSubstr(":1 conversation_id each row needs one"),
                          HasSubstr(":2 turn must be a whole number"), HasSubstr(":3 role must be"),
                          HasSubstr(":4 content a user row needs"),
                          HasSubstr(":5 content an assistant row needs"),
                          HasSubstr(":6 max_new_tokens must be a whole number"),
                          HasSubstr(":6 tools must be a list"),
                          HasSubstr(":7 tool_calls must be a list with at least one"),
                          HasSubstr(":8 tool_results[0] needs content"),
                          HasSubstr(":8 tool_results[1] must be an object"), HasSubstr(":9 ")));
}

TEST_F(ConversationsTest, EveryStepOfTheRolesIsChecked) {
  const auto talk = [](const std::vector<std::string>& roles) {
    std::string text;
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const std::string& role = roles[i];
      text += fmt::format(
          R"({{"conversation_id":"c","turn":{},"role":"{}","content":"x"{}{}}})"
          "\n",
          i + 1, role == "caller" ? "assistant" : role,
          role == "caller" ? fmt::format(R"(,"tool_calls":{})", kTool) : "",
          role == "tool" ? R"(,"tool_results":[{"tool_call_id":"t1","content":"r"}])" : "");
    }
    return text;
  };
  good(talk({"user"}));
  good(talk({"user", "caller"}));
  good(talk(
      {"user", "caller", "tool", "user", "assistant", "user", "caller", "tool", "caller", "tool"}));
  EXPECT_THAT(bad(talk({"assistant"})), ElementsAre(HasSubstr("begins with a user row")));
  EXPECT_THAT(bad(talk({"user", "user"})), ElementsAre(HasSubstr("comes an assistant row")));
  EXPECT_THAT(bad(talk({"user", "tool"})), ElementsAre(HasSubstr("comes an assistant row")));
  EXPECT_THAT(bad(talk({"user", "assistant", "assistant"})),
              ElementsAre(HasSubstr("a tool or a user row")));
  EXPECT_THAT(bad(talk({"user", "assistant", "tool"})),
              ElementsAre(HasSubstr("with tool_calls before it")));
  EXPECT_THAT(bad(talk({"user", "caller", "user"})), ElementsAre(HasSubstr("comes a tool row")));
  EXPECT_THAT(bad(talk({"user", "caller", "tool", "tool"})),
              ElementsAre(HasSubstr("all results of a turn in one row")));
}

TEST_F(ConversationsTest, TurnsMayStandInAnyOrderAndSamplesKeepTheFiles) {
  const ConversationSet set =
      good(R"({"conversation_id":"c","turn":3,"role":"user","content":"third"}
{"conversation_id":"c","turn":1,"role":"user","content":"first","system":"S"}
{"conversation_id":"c","turn":2,"role":"assistant","content":"second"}
{"conversation_id":"d","turn":1,"role":"user","content":"other"})");
  EXPECT_THAT(set.conversations()[0].samples, ElementsAre(1, 0)) << "in turn order";
  EXPECT_THAT(prompt_of(set.row(0)).text,
              HasSubstr(R"("second"},{"role":"user","content":"third"}])"));
  EXPECT_EQ(prompt_of(set.row(2)).text, R"([{"role":"user","content":"other"}])");
}

TEST_F(ConversationsTest, ATurnsBodyWithStreamingOffAndTools) {  // B5
  const ConversationSet set = good(
      R"({"conversation_id":"c","turn":1,"role":"user","content":"Hi","tools":[{"type":"function"}]})");
  EXPECT_EQ(body(set, 0),
            R"({"model":"no-model-name","messages":[{"role":"user","content":"Hi"}],)"
            R"("max_completion_tokens":1024,"stream":false,"tools":[{"type":"function"}]})");
}

TEST_F(ConversationsTest, RowsGoBeforeTheConfigAndLaterTurnsInherit) {
  const ConversationSet set =
      good(R"({"conversation_id":"c","turn":1,"role":"user","content":"a","model":"big",)"
           R"("max_new_tokens":7,"temperature":0,"tools":[1],"tool_choice":"auto"}
{"conversation_id":"c","turn":2,"role":"assistant","content":"b"}
{"conversation_id":"c","turn":3,"role":"user","content":"c","max_completion_tokens":9}
{"conversation_id":"d","turn":1,"role":"user","content":"a","max_completion_tokens":9}
{"conversation_id":"e","turn":1,"role":"user","content":"a","max_completion_tokens":0,"max_tokens":5}
{"conversation_id":"f","turn":1,"role":"user","content":"a","max_completion_tokens":0}
{"conversation_id":"g","turn":1,"role":"user","content":"a","max_tokens":5})");
  BodyParams params;
  params.model = "m";
  params.stream = true;
  params.temperature = 0.5;
  params.top_p = 0.9;
  EXPECT_EQ(
      body(set, 0, params),
      R"({"model":"big","messages":[{"role":"user","content":"a"}],"temperature":0,)"
      R"("max_completion_tokens":7,"stream":true,"top_p":0.9,"tools":[1],"tool_choice":"auto"})");
  const std::string later = body(set, 1, params);
  EXPECT_THAT(later,
              AllOf(HasSubstr(R"("model":"big")"), HasSubstr(R"("temperature":0.5)"),
                    HasSubstr(R"("max_completion_tokens":7,)"), HasSubstr(R"("tools":[1]})")))
      << "max_new_tokens is inherited and beats the row's own max_completion_tokens";
  EXPECT_THAT(body(set, 2, params), HasSubstr(R"("max_completion_tokens":9,)"));
  EXPECT_THAT(body(set, 3, params), HasSubstr(R"("max_completion_tokens":5,)"));
  EXPECT_THAT(body(set, 4, params), HasSubstr(R"("max_completion_tokens":128,)"));
  EXPECT_THAT(body(set, 5, params), HasSubstr(R"("max_completion_tokens":1024,)"))
      << "the config fills what the file does not say";
}

TEST_F(ConversationsTest, AMarkedSystemPromptHasItsSplicePointInFront) {
  ConversationSet set = good(vec_ag1());
  EXPECT_THAT(set.without_system(), IsEmpty());
  set.mark_systems(
      [](const std::string& id, const std::string& system) { return "]\n" + system + "/" + id; });
  RenderedBody out;
  set.render(1, {}, out);
  ASSERT_GT(out.splice, 0);
  EXPECT_THAT(out.bytes.substr(static_cast<std::size_t>(out.splice)),
              testing::StartsWith(R"(]\nS/c1"},{"role":"user")"));
  EXPECT_EQ(out.bytes[static_cast<std::size_t>(out.splice) - 1], '"');
  EXPECT_THAT(prompt_of(set.row(0, "[salt: 4461")).text,
              testing::StartsWith(R"([{"role":"system","content":"[salt: 4461]\nS/c1"})"));
}

TEST_F(ConversationsTest, ASaltNeedsASystemPromptEverywhere) {
  const ConversationSet set = good(R"({"conversation_id":"c","turn":1,"role":"user","content":"a"}
{"conversation_id":"d","turn":1,"role":"user","content":"a","system":"S"}
{"conversation_id":"e","turn":1,"role":"user","content":"a","system":""})");
  const base::Problems problems = set.without_system();
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_THAT(problems[0].where, HasSubstr("a.jsonl:1"));
  EXPECT_THAT(problems[1].remedy, HasSubstr("conversation e has no system prompt"));
}

TEST_F(ConversationsTest, ARowThatWantsAnotherKindOfReplyIsNotSent) {
  const ConversationSet set = good(
      R"({"conversation_id":"c","turn":1,"role":"user","content":"a","stream":true}
{"conversation_id":"c","turn":2,"role":"assistant","content":"b"}
{"conversation_id":"c","turn":3,"role":"user","content":"c"})");
  BodyParams params;
  EXPECT_THAT(set.why_not_sendable(0, params), HasSubstr("set model_params.streaming to on"));
  EXPECT_THAT(set.why_not_sendable(1, params), HasSubstr("streaming to on")) << "inherited";
  params.stream = true;
  EXPECT_EQ(set.why_not_sendable(1, params), "");
}

TEST_F(ConversationsTest, CsvHoldsJsonWhereColumnsAreNotText) {
  const ConversationSet set = good(
      "conversation_id,turn,role,content,tool_calls,tool_results,delay_seconds\n"
      "c,1,user,hi,,,\n"
      "c,2,assistant,,\"[{\"\"id\"\":\"\"t\"\",\"\"type\"\":\"\"function\"\",\"\"function\"\":"
      "{\"\"name\"\":\"\"f\"\",\"\"arguments\"\":\"\"{}\"\"}}]\",,\n"
      "c,3,tool,,,\"[{\"\"tool_call_id\"\":\"\"t\"\",\"\"content\"\":\"\"r\"\"}]\",0.25\n",
      "a.csv");
  ASSERT_THAT(set.samples(), SizeIs(2));
  EXPECT_EQ(set.samples()[1].delay, base::Duration::millis(250));
  EXPECT_THAT(bad("conversation_id,turn,role,content\nc,one,user,hi\n", "a.csv"),
              ElementsAre(HasSubstr("a.csv:2 turn the cell must hold JSON")));
}

TEST_F(ConversationsTest, SamplesTakesTheFirstRowsAndNoRowsAreNoSet) {
  DatasetRequest request = file("a.jsonl", vec_ag1());
  request.samples = 2;
  const auto two = ConversationSet::load(request);
  ASSERT_TRUE(two.has_value());
  EXPECT_THAT(two->samples(), SizeIs(1));
  EXPECT_THAT(bad(R"({"_type":"dataset_metadata"})"), ElementsAre(HasSubstr("no messages")));
  EXPECT_THAT(bad(R"({"prompt":"a single request"})"),
              testing::Contains(HasSubstr(":1 conversation_id each row needs one")));
}

}  // namespace
}  // namespace tutti::data
