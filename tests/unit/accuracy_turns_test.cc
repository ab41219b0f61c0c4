// Turns of conversations, judged by what they did: the programs of shell commands, intents, and how
// far a reply agrees with the recorded one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/accuracy/turn_scores.h"
#include "coordinator/accuracy/turn_truth.h"

namespace tutti::accuracy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using text::JsonValue;

JsonValue json(const std::string& text) { return text::read_json(text).value(); }

std::string calls(const std::string& command) {
  return R"([{"id":"t1","type":"function","function":{"name":"bash","arguments":")" +
         std::string(R"({\"command\":\")") + command + R"(\"}"}}])";
}

TEST(TurnActions, TheTableOfTheReference) {
  EXPECT_THAT(actions_of_command("CUDA_VISIBLE_DEVICES=0 /usr/bin/python3 -m pytest"),
              ElementsAre("python"));
  EXPECT_THAT(actions_of_command("sudo env A=1 apt-get update"), ElementsAre("apt"));
  EXPECT_THAT(actions_of_command("cd /x && ls -la | grep foo; cat a"),
              ElementsAre("ls", "grep", "cat"));
  EXPECT_THAT(actions_of_command("echo 'ls; cat' > f"), IsEmpty());
  EXPECT_THAT(actions_of_command("pip3 install x || true"), ElementsAre("pip", "true"));
  EXPECT_THAT(actions_of_command("timeout 5 pytest"), ElementsAre("timeout"));
  EXPECT_THAT(actions_of_command("time nice make -j"), ElementsAre("make"));
  EXPECT_THAT(actions_of_command("./run.sh"), IsEmpty());
}

TEST(TurnActions, OneNameForEachProgram) {
  EXPECT_THAT(actions_of_command("Python3.11.4 a.py\n. ./env; rg x|more"),
              ElementsAre("python", "source", "grep", "cat"));
  EXPECT_THAT(actions_of_command("python3.1.1.1 x"), IsEmpty()) << "two numbers, not three";
  EXPECT_THAT(actions_of_command("1A=2 ls"), IsEmpty()) << "that is no assignment";
  EXPECT_THAT(actions_of_command("grep \"a|b; ls\" `cat x` f & wc"), ElementsAre("grep"))
      << "a single & ends no stage";
  EXPECT_THAT(actions_of_command("git commit -m 'it"), ElementsAre("git")) << "a lone quote";
  EXPECT_THAT(actions_of_command(""), IsEmpty());
  EXPECT_THAT(actions_of_command("||&&;|\n"), IsEmpty());
}

TEST(TurnActions, OnlyBashCallsWithACommandSpeak) {
  EXPECT_THAT(actions_of_calls(json(calls("ls && ls"))), ElementsAre("ls", "ls"));
  EXPECT_THAT(actions_of_calls(json(R"([{"function":{"name":"bash","arguments":{"cmd":"ls"}}},)"
                                    R"({"function":{"name":"read","arguments":{"cmd":"cat"}}},)"
                                    R"({"function":{"name":"bash","arguments":"not json"}},)"
                                    R"({"function":{"name":"bash","arguments":"[1]"}},)"
                                    R"({"function":{"name":"bash"}},{},7])")),
              ElementsAre("ls"));
}

TEST(TurnIntents, TheVectorsOfTheReference) {
  EXPECT_EQ(intent_of("", "final intent: i042"), "I042");
  EXPECT_EQ(intent_of("I001 vs I002", ""), "I002");
  EXPECT_EQ(intent_of("I001", "intent: I007"), "I007");
  EXPECT_EQ(intent_of("", "I1234"), std::nullopt);
}

TEST(TurnIntents, AnnouncedBeforeBareAndReasoningBeforeContent) {
  EXPECT_EQ(intent_of("INTENT:\tI003 intent: I004", "intent: I005"), "I003");
  EXPECT_EQ(intent_of("", "intent: I1234, intent: I006"), "I006") << "the first that is one";
  EXPECT_EQ(intent_of("i001", "I002"), "I002") << "alone it needs the capital";
  EXPECT_EQ(intent_of("myintent: i001", ""), std::nullopt);
  EXPECT_EQ(intent_of("xI001 I001x I00", "I"), std::nullopt);
  EXPECT_EQ(intent_of("intent:", ""), std::nullopt);
}

TEST(TurnDomain, IsInTheName) {
  EXPECT_TRUE(is_workflow("sim_000001"));
  for (const char* const other : {"sim_", "sim_1a", "sim_1__repeat_2", "asim_1", "conv_1", ""}) {
    EXPECT_FALSE(is_workflow(other)) << other;
  }
}

TEST(TurnTruths, WithoutAnythingToCompareThereIsNone) {
  EXPECT_FALSE(truth_of(false, json(R"({"content":"done"})")));
  EXPECT_FALSE(truth_of(false, json(R"({"tool_calls":)" + calls("./x") + "}")));
  EXPECT_FALSE(truth_of(true, json(R"({"intent_codes":[1,null]})")));
  EXPECT_FALSE(truth_of(true, json(R"({"intent_codes":"I001"})")));
  EXPECT_THAT(truth_of(true, json(R"({"intent_codes":["i001","I002"]})"))->intents,
              ElementsAre("I001", "I002"));
}

TEST(TurnAgreement, OfActionsIsWhatBothDidOverWhatEitherDid) {
  const auto truth = truth_of(false, json(R"({"tool_calls":)" + calls("ls; ls; cat x") + "}"));
  ASSERT_TRUE(truth);
  const auto judged = [&](const std::string& tool_calls) {
    return agreement(*truth, answer_of(false, "", "ls; cat", tool_calls));
  };
  EXPECT_EQ(judged(calls("cat y && ls | ls")), 1);
  EXPECT_EQ(judged(calls("ls")), 1.0 / 3);
  EXPECT_EQ(judged(calls("ls | grep x")), 1.0 / 4);
  EXPECT_EQ(judged(""), 0);
  EXPECT_EQ(judged("{"), 0);
}

TEST(TurnAgreement, OfIntentsIsAllOrNothing) {
  const auto truth = truth_of(true, json(R"({"intent_codes":["I001","I002"]})"));
  ASSERT_TRUE(truth);
  EXPECT_EQ(agreement(*truth, answer_of(true, "", "intent: i002", calls("ls"))), 1);
  EXPECT_EQ(agreement(*truth, answer_of(true, "", "I003", "")), 0);
  EXPECT_EQ(agreement(*truth, answer_of(true, "", "", "")), 0);
}

TEST(TurnScores, TheFileNamesEachTurnAndSumsThemUp) {
  const TurnTruth ls{false, {}, {"ls", "cat"}};
  const TurnTruth intent{true, {"I001"}, {}};
  TurnScores scores;
  EXPECT_EQ(scores.score(), std::nullopt);
  scores.add({"conv_1", 1, 2}, ls, {std::nullopt, {"ls"}});
  scores.add({"sim_1", 2, 4}, intent, {"I001", {}});
  scores.add_missing({"sim_1", 2, 6}, intent);
  scores.add_excluded({"conv_1", 1, 4});
  EXPECT_EQ(scores.issued(), 4U);
  EXPECT_EQ(scores.scored(), 3U);
  EXPECT_EQ(scores.score(), 0.5);
  EXPECT_EQ(scores.json(), R"({
  "score": 0.5,
  "turns": {
    "issued": 4,
    "expected": 3,
    "observed": 2,
    "missing": 1,
    "scored": 3
  },
  "domains": {
    "coding": {
      "score": 0.5,
      "scored": 1
    },
    "workflow": {
      "score": 0.5,
      "scored": 2
    }
  },
  "per_turn": [
    {
      "conversation_id": "conv_1",
      "repeat": 1,
      "turn": 2,
      "domain": "coding",
      "gt_actions": [
        "ls",
        "cat"
      ],
      "model_actions": [
        "ls"
      ],
      "score": 0.5
    },
    {
      "conversation_id": "sim_1",
      "repeat": 2,
      "turn": 4,
      "domain": "workflow",
      "gt_intents": [
        "I001"
      ],
      "model_intent": "I001",
      "score": 1.0
    },
    {
      "conversation_id": "sim_1",
      "repeat": 2,
      "turn": 6,
      "domain": "workflow",
      "missing": true,
      "gt_intents": [
        "I001"
      ],
      "model_intent": null,
      "score": 0.0
    }
  ],
  "excluded_turns": [
    {
      "conversation_id": "conv_1",
      "repeat": 1,
      "turn": 4
    }
  ]
}
)");
}

TEST(TurnScores, WithoutATurnToScoreThereIsNoScore) {
  TurnScores scores;
  scores.add_excluded({"c", 1, 2});
  EXPECT_EQ(scores.score(), std::nullopt);
  EXPECT_THAT(scores.json(), testing::HasSubstr("\"score\": null"));
}

}  // namespace
}  // namespace tutti::accuracy
