// Conversations with the real binaries: the same ones for one agent and for three, turn after turn,
// failed and stopped ones accounted to the last turn.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Conversation i has i mod 5 + 1 turns of the client.
std::string write_conversations(const std::string& folder, int count, bool system = true) {
  const std::string path = folder + "/talks.jsonl";
  std::ofstream out(path);
  for (int i = 0; i < count; ++i) {
    for (int row = 1; row <= 2 * (i % 5) + 1; ++row) {
      json line{{"conversation_id", fmt::format("talk-{}", i)},
                {"turn", row},
                {"role", row % 2 == 1 ? "user" : "assistant"},
                {"content", fmt::format("words of {} at {}", i, row)}};
      if (system && row == 1) {
        line["system"] = fmt::format("You are number {}.", i);
      }
      out << line.dump() << "\n";
    }
  }
  return path;
}
int turns_of(int conversations) {
  int sum = 0;
  for (int i = 0; i < conversations; ++i) {
    sum += i % 5 + 1;
  }
  return sum;
}

std::vector<std::string> agentic(const Mock& mock, const std::string& dataset,
                                 const std::string& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words{
      "tutti", "benchmark", "online", "--endpoints",    mock.urls()[0],      "--model",
      "m",     "--dataset", dataset,  "--load-pattern", "agentic_inference", "--report-dir",
      folder};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Turn {
  std::int64_t issued_ns = 0;
  std::int64_t completed_ns = 0;
  std::string error;
  std::string why;
  json prompt;
};
// By conversation and turn; each at most once.
std::map<std::pair<std::string, int>, Turn> turns_in(const std::string& folder) {
  std::map<std::pair<std::string, int>, Turn> turns;
  for (const auto& event : read_jsonl(folder + "/events.jsonl")) {
    const std::string type = event["event_type"];
    if (event["turn"].is_null()) {
      continue;
    }
    const std::pair<std::string, int> key{event["conversation_id"], event["turn"]};
    if (type == "sample.issued") {
      EXPECT_EQ(turns.count(key), 0U) << key.first << " " << key.second << " was issued twice";
      turns[key].issued_ns = event["timestamp_ns"];
      turns[key].prompt = event["data"][3];
    } else if (type == "sample.complete") {
      turns[key].completed_ns = event["timestamp_ns"];
    } else if (type == "error.generic") {
      turns[key].error = event["data"][1];
      turns[key].why = event["data"][2];
    }
  }
  return turns;
}

// Each turn was issued when the one before it had ended, on the one clock of this host.
void expect_in_order(const std::map<std::pair<std::string, int>, Turn>& turns) {
  for (const auto& [key, turn] : turns) {
    EXPECT_GT(turn.completed_ns, 0) << key.first << " " << key.second;
    if (key.second > 1) {
      const auto before = turns.find({key.first, key.second - 2});
      ASSERT_NE(before, turns.end()) << key.first << " " << key.second;
      // Clocks of agents are known to within their bound; on one host that is microseconds.
      EXPECT_GE(turn.issued_ns, before->second.completed_ns - 100'000)
          << key.first << " " << key.second;
    }
  }
}

TEST(Agentic, OneAgentAndThreePlayTheSameConversations) {
  const Mock mock(1, {"--ttft", "4ms", "--gap", "1ms", "--tokens", "3"});
  const std::string base = fresh_folder("agentic-same");
  const std::string data = write_conversations(base, 20);
  std::vector<std::map<std::pair<std::string, int>, Turn>> runs;
  for (const char* agents : {"1", "3"}) {
    const std::string folder = base + "/run-" + agents;
    const Ran ran = run_program(agentic(mock,
                                        data + ",agentic_inference.num_trajectories_to_issue=50,"
                                               "agentic_inference.enable_salt=true",
                                        folder, {"--concurrency", "7", "--local-agents", agents}));
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    const auto summary = read_json(folder + "/performance/result_summary.json");
    EXPECT_EQ(summary["run_config"]["load_pattern"]["type"], "agentic_inference");
    runs.push_back(turns_in(folder));
    expect_in_order(runs.back());
  }
  EXPECT_EQ(mock.metric("tutti_mock_active_requests_peak"), 7);
  // Two passes over all 20, and half of the third, which the seed chooses.
  std::set<std::string> names;
  for (const auto& [key, turn] : runs[0]) {
    names.insert(key.first);
    EXPECT_TRUE(turn.error.empty());
  }
  EXPECT_EQ(names.size(), 50U);
  EXPECT_EQ(names.count("talk-4"), 1U);
  EXPECT_EQ(names.count("talk-4__repeat_2"), 1U);
  ASSERT_EQ(runs[0].size(), runs[1].size());
  for (const auto& [key, turn] : runs[0]) {
    const auto other = runs[1].find(key);
    ASSERT_NE(other, runs[1].end()) << key.first << " " << key.second;
    EXPECT_EQ(other->second.prompt, turn.prompt);
  }
  const json prompt = runs[0].at({"talk-4__repeat_2", 9}).prompt;
  EXPECT_EQ(prompt.size(), 10U) << "the system prompt and nine recorded messages";
  EXPECT_THAT(prompt[0]["content"].get<std::string>(),
              testing::StartsWith("[salt: ba75]\n\nYou are number 4.\n\n[salt: "));
}

TEST(Agentic, AFailedTurnEndsItsConversationAndEveryTurnIsAccounted) {
  const Mock mock(1, {"--ttft", "3ms", "--gap", "1ms", "--tokens", "2", "--fault", "status:503@15%",
                      "--fault", "stall:1@5%"});
  const std::string base = fresh_folder("agentic-failures");
  const std::string data = write_conversations(base, 60);
  const Ran ran =
      run_program(agentic(mock, data + ",agentic_inference.turn_timeout_s=0.3", base + "/run",
                          {"--concurrency", "20", "--local-agents", "2"}));
  const auto turns = turns_in(base + "/run");
  EXPECT_EQ(turns.size(), static_cast<std::size_t>(turns_of(60))) << ran.output;
  expect_in_order(turns);
  std::map<std::string, int> errors;
  for (const auto& [key, turn] : turns) {
    ++errors[turn.error];
    const auto before = turns.find({key.first, key.second - 2});
    const bool failed_before = before != turns.end() && !before->second.error.empty();
    EXPECT_EQ(turn.error == "TurnAbortedByPriorFailure", failed_before)
        << key.first << " " << key.second << " " << turn.error;
    if (turn.error == "TurnAbortedByPriorFailure") {
      EXPECT_TRUE(turn.prompt.is_null());
      if (before->second.error == "error") {
        EXPECT_EQ(turn.why, "prior turn errored: error");
      } else if (before->second.error == "TurnTimeout") {
        EXPECT_THAT(turn.why, testing::MatchesRegex(R"(prior turn timed out \(query=[0-9a-f]+\))"));
      }
    } else if (turn.error == "TurnTimeout") {
      EXPECT_EQ(turn.why, "turn timeout after 0.3s");
    }
  }
  EXPECT_GT(errors["error"], 0);
  EXPECT_GT(errors["TurnTimeout"], 0);
  EXPECT_GT(errors["TurnAbortedByPriorFailure"], 0);
  const auto snapshot = read_json(base + "/run/metrics/final_snapshot.json");
  std::map<std::string, std::int64_t> counters;
  for (const auto& metric : snapshot["metrics"]) {
    if (metric["type"] == "counter") {
      counters[metric["name"]] = metric["value"];
    }
  }
  EXPECT_EQ(counters["total_samples_issued"], turns_of(60));
  EXPECT_EQ(counters["total_samples_completed"], turns_of(60));
  EXPECT_EQ(counters["total_samples_failed"], turns_of(60) - errors[""]);
}

TEST(Agentic, IssuingMayEndWithTheFirstConversationThatLeavesASlotEmpty) {
  const Mock mock(1, {"--ttft", "30ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("agentic-first");
  const std::string data = write_conversations(base, 10);  // all at once: the short ones end first
  const Ran ran = run_program(
      agentic(mock, data + ",agentic_inference.stop_issuing_on_first_user_complete=true",
              base + "/run", {"--concurrency", "10", "--local-agents", "2"}));
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("a conversation has ended and none is left to begin"));
  const auto turns = turns_in(base + "/run");
  expect_in_order(turns);
  EXPECT_GE(turns.size(), 10U);
  EXPECT_LT(turns.size(), static_cast<std::size_t>(turns_of(10)));
  const auto summary = read_json(base + "/run/performance/result_summary.json");
  EXPECT_EQ(summary["state"], "complete");
  EXPECT_EQ(summary["n_samples_issued"], summary["n_samples_completed"]);
  EXPECT_GE(summary["n_samples_issued"], 10);
}

// Conversations of the file `data`, whose turns are scored, into the folder `base`/run.
std::string write_scored_config(const std::string& base, const std::string& data, const Mock& mock,
                                int concurrency) {
  std::string path = base + "/run.yaml";
  std::ofstream(path) << fmt::format(R"(
type: online
model_params: {{name: m}}
datasets:
  - path: {}
    agentic_inference: {{}}
    accuracy_config: {{eval_method: agentic_inference_inline}}
settings:
  load_pattern: {{type: agentic_inference, target_concurrency: {}}}
endpoint_config:
  endpoints: ["{}"]
report_dir: {}/run
)",
                                     data, concurrency, mock.urls()[0], base);
  return path;
}

// The mock says what the user said last.
TEST(Agentic, RepliesAreComparedWithTheRecordedTurns) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--text", "echo"});
  const std::string base = fresh_folder("agentic-scored");
  const std::string data = base + "/talks.jsonl";
  std::ofstream(data)
      << R"({"conversation_id":"sim_1","turn":1,"role":"user","content":"the intent: i007"}
{"conversation_id":"sim_1","turn":2,"role":"assistant","content":"x","intent_codes":["I007"]}
{"conversation_id":"sim_1","turn":3,"role":"user","content":"I001"}
{"conversation_id":"sim_1","turn":4,"role":"assistant","content":"x","intent_codes":["I009"]}
{"conversation_id":"sim_1","turn":5,"role":"user","content":"last"}
{"conversation_id":"code_1","turn":1,"role":"user","content":"ls"}
)"
      << R"({"conversation_id":"code_1","turn":2,"role":"assistant","content":null,"tool_calls":[)"
      << R"({"id":"t","type":"function","function":{"name":"bash","arguments":{"command":"ls"}}}]})"
      << "\n";
  const std::string config = write_scored_config(base, data, mock, 2);
  const Ran ran = run_program({"tutti", "benchmark", "from-config", "-c", config});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("Score for performance: 0.3333 (1 repeats, complete=True)"));
  const auto scores = read_json(base + "/run/scores.json");
  EXPECT_EQ(scores["score"], 0.3333);
  EXPECT_EQ(scores["turns"], json::parse(R"({"issued":4,"expected":3,"observed":3,"missing":0,)"
                                         R"("scored":3})"));
  EXPECT_EQ(scores["domains"]["workflow"]["score"], 0.5);
  EXPECT_EQ(scores["domains"]["coding"]["score"], 0);
  EXPECT_EQ(scores["excluded_turns"][0]["turn"], 6);
  const auto results = read_json(base + "/run/accuracy/accuracy_results.json");
  EXPECT_EQ(results["accuracy_scores"][0]["dataset_type"], "performance");
  EXPECT_EQ(results["accuracy_scores"][0]["total_samples"], 4);
  EXPECT_EQ(results.count("average_accuracy"), 0U);
}

// The coordinator is killed while conversations are played. The turns that its agent's spool holds
// are compared with the recorded ones: those of even conversations are right.
TEST(Agentic, ALostRunsTurnsAreComparedFromItsSpools) {
  const Mock mock(1, {"--ttft", "40ms", "--gap", "1ms", "--text", "echo"});
  const std::string base = fresh_folder("agentic-spools");
  const std::string data = base + "/talks.jsonl";
  const auto write = [&data](int conversations) {
    std::ofstream out(data);
    for (int i = 0; i < conversations; ++i) {
      for (int turn = 1; turn <= 4; ++turn) {
        json row{{"conversation_id", fmt::format("sim_{}", i)},
                 {"turn", turn},
                 {"role", turn % 2 == 1 ? "user" : "assistant"},
                 {"content", i % 2 == 0 ? "intent: I007" : "intent: I008"}};
        row["intent_codes"] = json::array({"I007"});
        out << row.dump() << "\n";
      }
    }
  };
  write(300);
  const std::string config = write_scored_config(base, data, mock, 4);
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  Program coordinator({"tutti", "benchmark", "from-config", "-c", config, "--listen", address,
                       "--expect-agents", "1"});
  Program agent({"tutti-agent", "--connect", address, "--cache-dir", base + "/cache", "--spool-dir",
                 base + "/spool"});
  for (int i = 0; i < 1500 && mock.metric("tutti_mock_finished_total") < 30; ++i) {
    poll(nullptr, 0, 5);
  }
  coordinator.signal(SIGKILL);
  coordinator.wait(5'000);
  ASSERT_EQ(agent.wait(20'000), 4) << agent.output();

  std::filesystem::copy(base + "/run/config.yaml", base + "/kept.yaml");
  const auto rebuild = [&](const std::string& folder) {
    return run_program({"tutti", "report", "--from-spools", base + "/spool", "--report-dir",
                        base + folder, "--config", base + "/kept.yaml"});
  };
  const Ran ran = rebuild("/run");
  ASSERT_EQ(ran.exit_code, 4) << ran.output;
  // Sample s is a turn of conversation s div 2.
  int right = 0;
  int turns = 0;
  const json rows = read_json(base + "/run/sample_idx_map.json")["performance"];
  for (const auto& [id, sample] : rows.items()) {
    ++turns;
    right += sample.get<int>() / 2 % 2 == 0 ? 1 : 0;
  }
  ASSERT_GE(turns, 25);
  const auto entry = read_json(base + "/run/accuracy/accuracy_results.json")["accuracy_scores"][0];
  EXPECT_EQ(entry["dataset_name"], "performance");
  EXPECT_EQ(entry["total_samples"], turns);
  EXPECT_DOUBLE_EQ(entry["score"].get<double>(), static_cast<double>(right) / turns);
  EXPECT_EQ(entry["complete"], false);
  EXPECT_EQ(read_json(base + "/run/scores.json")["turns"]["scored"], turns);
  EXPECT_THAT(read_text(base + "/run/report.txt"),
              HasSubstr("what nobody recorded is not counted"));

  write(3);
  const Ran other = rebuild("/other");
  EXPECT_EQ(other.exit_code, 4) << other.output;
  EXPECT_THAT(other.output, HasSubstr("conversations are not those of the run"));
  EXPECT_FALSE(std::filesystem::exists(base + "/other/scores.json"));
  std::filesystem::remove(data);
  const Ran gone = rebuild("/gone");
  EXPECT_EQ(gone.exit_code, 4) << gone.output;
  EXPECT_THAT(gone.output, HasSubstr("performance: its recorded turns cannot be read"));
}

TEST(Agentic, AStopLetsTurnsInFlightEndAndMissesNone) {
  const Mock mock(1, {"--ttft", "80ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("agentic-stop");
  const std::string data = write_conversations(base, 50);
  Program run(agentic(mock, data + ",agentic_inference.num_trajectories_to_issue=5000",
                      base + "/run", {"--concurrency", "12", "--local-agents", "3"}));
  ASSERT_TRUE(run.says("phase performance", 20'000)) << run.output();
  usleep(900'000);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30'000), 130) << run.output();
  const auto turns = turns_in(base + "/run");
  EXPECT_GT(turns.size(), 20U);
  expect_in_order(turns);
  const auto summary = read_json(base + "/run/performance/result_summary.json");
  EXPECT_EQ(summary["state"], "interrupted");
  EXPECT_EQ(summary["n_samples_issued"], turns.size());
  EXPECT_EQ(summary["n_samples_completed"], turns.size());
  EXPECT_EQ(summary["n_samples_failed"], 0);
}

TEST(Agentic, AWarmUpPlaysConversationsToo) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("agentic-warmup");
  const std::string data = write_conversations(base, 5);
  const Ran ran =
      run_program(agentic(mock, data + ",agentic_inference.enable_salt=false", base + "/run",
                          {"--concurrency", "3", "--warmup", "--warmup-requests", "7"}));
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(mock.metric("tutti_mock_requests_total"), 7 + turns_of(5) + 1) << "this look is one";
}

TEST(Agentic, WhatCannotBePlayedIsRefusedBeforeTheRun) {
  const Mock mock(1, {});
  const std::string base = fresh_folder("agentic-refused");
  const std::string bare = write_conversations(base, 3, false);
  const Ran salt = run_program(agentic(mock, bare + ",agentic_inference.enable_salt=true",
                                       base + "/run", {"--concurrency", "3"}));
  EXPECT_EQ(salt.exit_code, 2) << salt.output;
  EXPECT_THAT(salt.output, HasSubstr("conversation talk-2 has no system prompt"));
  const std::string plain = write_prompts(base, 3);
  const Ran set = run_program(agentic(mock, plain + ",agentic_inference.enable_salt=false",
                                      base + "/run", {"--concurrency", "3"}));
  EXPECT_EQ(set.exit_code, 3) << set.output;
  EXPECT_THAT(set.output, HasSubstr("conversation_id: each row needs one"));
  EXPECT_EQ(mock.metric("tutti_mock_requests_total"), 1) << "this look is one";
}

}  // namespace
}  // namespace tutti::testing_support
