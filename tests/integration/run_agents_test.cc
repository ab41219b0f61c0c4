// The number and place of agents never changes what is asked: one local agent, several over tcp
// that dial us, several that we dial. Every query ends in one record.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;

// What one run asked: samples by seq, and the salted prompts of the warm-up by seq.
struct Asked {
  std::vector<std::uint32_t> samples;
  std::multiset<std::string> warm_prompts;
  json summary;
};

// sample_idx_map.json keeps the schedule's order, which nlohmann::json would sort away.
std::vector<std::uint32_t> samples_of(const std::string& folder) {
  const auto map = nlohmann::ordered_json::parse(read_text(folder + "/sample_idx_map.json"));
  std::vector<std::uint32_t> out;
  for (const auto& [id, sample] : map.at("performance").items()) {
    out.push_back(sample.get<std::uint32_t>());
  }
  return out;
}

Asked asked_in(const std::string& folder) {
  Asked out;
  out.samples = samples_of(folder);
  out.summary = read_json(folder + "/performance/result_summary.json");
  bool tracking = false;
  for (const auto& event : read_jsonl(folder + "/events.jsonl")) {
    tracking = tracking || event["event_type"] == "session.start_performance_tracking";
    if (event["event_type"] == "sample.issued" && !tracking) {
      out.warm_prompts.insert(event["data"][1].get<std::string>());
    }
  }
  return out;
}

std::vector<std::string> online(const Mock& mock, const std::string& data,
                                const std::string& folder, const std::vector<std::string>& more,
                                std::size_t concurrency = 96, std::size_t queries = 1500) {
  OnlineRun run{data, folder, mock.urls(), concurrency, queries, more};
  run.more.insert(run.more.end(), {"--warmup", "--warmup-salt", "--warmup-requests", "50"});
  return words_of(run);
}

// `count` agents that dial `address`, each from a loopback address of its own.
std::vector<std::unique_ptr<Program>> dialling_agents(std::size_t count,
                                                      const std::string& address) {
  std::vector<std::unique_ptr<Program>> agents;
  for (std::size_t i = 0; i < count; ++i) {
    agents.push_back(std::make_unique<Program>(std::vector<std::string>{
        "tutti-agent", "--connect", address, "--name", fmt::format("agent-{}", i)}));
  }
  return agents;
}

TEST(Agents, OneThreeAndSevenAskTheSameInTheSameOrderWithTheSameSalts) {
  const Mock mock(2, {"--ttft", "uniform:2ms:10ms", "--gap", "1ms", "--tokens", "uniform:2:8"});
  const std::string base = fresh_folder("agents-same");
  const std::string data = write_prompts(base, 600);
  std::map<std::size_t, Asked> asked;
  for (const std::size_t agents : {1U, 3U, 7U}) {
    const std::string folder = fmt::format("{}/{}", base, agents);
    const Ran ran = run_program(
        online(mock, data, folder, {"--local-agents", std::to_string(agents)}), 120'000);
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    asked[agents] = asked_in(folder);
    EXPECT_EQ(asked[agents].summary["n_samples_issued"], 1500);
    EXPECT_EQ(asked[agents].summary["n_samples_completed"], 1500);
    EXPECT_EQ(asked[agents].summary["n_samples_failed"], 0);
    EXPECT_EQ(asked[agents].warm_prompts.size(), 50U);
  }
  EXPECT_EQ(asked[1].samples.size(), 1500U);
  EXPECT_EQ(asked[1].samples, asked[3].samples);
  EXPECT_EQ(asked[1].samples, asked[7].samples);
  EXPECT_EQ(asked[1].warm_prompts, asked[3].warm_prompts);
  EXPECT_EQ(asked[1].warm_prompts, asked[7].warm_prompts);
  EXPECT_EQ(mock.metric("tutti_mock_requests_total"), 3 * 1550 + 1) << "and this question itself";
}

TEST(Agents, ThatDialUsOverTcpGiveTheSameRun) {
  const Mock mock(2, {"--ttft", "5ms", "--gap", "1ms", "--tokens", "4"});
  const std::string base = fresh_folder("agents-dial");
  const std::string data = write_prompts(base, 200);
  const Ran alone = run_program(online(mock, data, base + "/alone", {}), 120'000);
  ASSERT_EQ(alone.exit_code, 0) << alone.output;

  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  Program coordinator(
      online(mock, data, base + "/three", {"--listen", address, "--expect-agents", "3"}));
  const auto agents = dialling_agents(3, address);
  ASSERT_EQ(coordinator.wait(120'000), 0) << coordinator.output();
  for (const auto& agent : agents) {
    EXPECT_EQ(agent->wait(20'000), 0) << agent->output();
  }
  EXPECT_EQ(samples_of(base + "/alone"), samples_of(base + "/three"));
  const json summary = read_json(base + "/three/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_completed"], 1500);
  EXPECT_EQ(summary["distributed"]["agents"].size(), 3U);
}

TEST(Agents, ThatWeDialServeOneRunAfterAnother) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "3"});
  const std::string base = fresh_folder("agents-listen");
  const std::string data = write_prompts(base, 100);
  const std::vector<std::string> places = {
      fmt::format("tcp://127.0.0.2:{}", free_port("127.0.0.2")),
      fmt::format("tcp://127.0.0.3:{}", free_port("127.0.0.3"))};
  std::vector<std::unique_ptr<Program>> agents;
  for (const auto& place : places) {
    agents.push_back(
        std::make_unique<Program>(std::vector<std::string>{"tutti-agent", "--listen", place}));
  }
  for (const char* name : {"first", "second"}) {
    const Ran ran = run_program(
        online(mock, data, base + "/" + name, {"--agents", places[0] + "," + places[1]}), 120'000);
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    EXPECT_EQ(samples_of(base + "/" + name).size(), 1500U);
  }
  for (const auto& agent : agents) {
    agent->signal(SIGTERM);
    EXPECT_NE(agent->wait(20'000), -1) << agent->output();
  }
}

// The public prompt files beside a developer's checkout, whole, at the size the papers promise.
TEST(Agents, RealPromptFilesRunWholeWithOneAndWithThreeAgents) {
  const std::string folder = std::string(TUTTI_SOURCE_DIR) + "/../shared/data";
  if (!std::filesystem::exists(folder + "/dummy_1k.jsonl")) {
    GTEST_SKIP() << "NOT TESTED: the real prompt files are not beside this checkout";
  }
  const Mock mock(2, {"--ttft", "20ms", "--gap", "2ms", "--tokens", "uniform:4:16"});
  for (const std::string name : {"dummy_1k", "ds_samples"}) {
    const std::string base = fresh_folder("agents-real-" + name);
    const std::string data = folder + "/" + name + ".jsonl";
    std::vector<std::vector<std::uint32_t>> samples;
    for (const std::size_t agents : {1U, 3U}) {
      const std::string out = fmt::format("{}/{}", base, agents);
      std::vector<std::string> more;
      std::vector<std::unique_ptr<Program>> remote;
      if (agents == 3) {
        const std::string address = fmt::format("tcp://127.0.0.5:{}", free_port("127.0.0.5"));
        more = {"--listen", address, "--expect-agents", "3"};
        remote = dialling_agents(3, address);
      }
      const Ran ran = run_program(online(mock, data, out, more, 512, 2000), 120'000);
      ASSERT_EQ(ran.exit_code, 0) << ran.output;
      samples.push_back(samples_of(out));
      EXPECT_EQ(read_json(out + "/performance/result_summary.json")["n_samples_completed"], 2000);
    }
    EXPECT_EQ(samples[0].size(), 2000U);
    EXPECT_EQ(samples[0], samples[1]);
  }
}

}  // namespace
}  // namespace tutti::testing_support
