// Whole runs: connections from many addresses as the server sees them, the budget on the console
// and in the report, weights, sessions, and a frontend that is dead.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> online(const std::vector<std::string>& urls, const std::string& data,
                                const std::string& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words{"tutti", "benchmark",      "online",     "--model",
                                 "m",     "--dataset",      data,         "--report-dir",
                                 folder,  "--load-pattern", "concurrency"};
  for (const auto& url : urls) {
    words.insert(words.end(), {"--endpoints", url});
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

double from_peer(const Mock& mock, std::size_t port, const std::string& peer) {
  const std::string& url = mock.urls()[port];
  return mock.metric(fmt::format("tutti_mock_peer_connections_total{{port=\"{}\",peer=\"{}\"}}",
                                 url.substr(url.rfind(':') + 1), peer));
}

TEST(Frontends, TwoAgentsUseEverySourceAddressEvenly) {
  const Mock mock(2, {"--ttft", "30ms", "--gap", "1ms", "--tokens", "3"});
  const std::string base = fresh_folder("frontends-sources");
  const std::string data = write_prompts(base, 100);
  for (const char* way : {"direct", "multi"}) {
    const std::string folder = base + "/" + way;
    const double before = from_peer(mock, 0, "127.0.1.1");
    const Ran ran = run_program(
        online(mock.urls(), data, folder,
               {"--concurrency", "48", "--num-samples", "400", "--local-agents", "2", "--transport",
                way, "--source-addresses", "127.0.1.1,127.0.1.2,127.0.1.3"}),
        120'000);
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    double least = 1e9;
    double most = 0;
    for (std::size_t port = 0; port < 2; ++port) {
      for (const char* peer : {"127.0.1.1", "127.0.1.2", "127.0.1.3"}) {
        least = std::min(least, from_peer(mock, port, peer));
        most = std::max(most, from_peer(mock, port, peer));
      }
    }
    EXPECT_GE(least, before + 4) << way;  // 48 connections over 6 pairs are 8 each, beside probes
    EXPECT_LE(most - least, 4) << way << ": a probe and the odd one for each agent";
    EXPECT_THAT(ran.output, HasSubstr("Budget: fits; at most "));
    EXPECT_THAT(ran.output, Not(HasSubstr("open files"))) << "far from a limit one line is enough";
    const std::string report = read_text(folder + "/report.txt");
    EXPECT_THAT(report, HasSubstr("Budget"));
    EXPECT_THAT(report, HasSubstr("from 3 source addresses to 2 frontends"));
    EXPECT_THAT(report, HasSubstr("open files"));
    const json summary = read_json(folder + "/performance/result_summary.json");
    EXPECT_GE(summary["distributed"]["budget"].size(), 2U);
  }
  EXPECT_EQ(from_peer(mock, 1, "127.0.0.1"), 0) << "nothing came from the kernel's own choice";
}

TEST(Frontends, AnAgentsOwnChoiceOverridesTheRuns) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "3"});
  const std::string base = fresh_folder("frontends-own");
  const std::string data = write_prompts(base, 50);
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  Program coordinator(online(mock.urls(), data, base + "/run",
                             {"--concurrency", "8", "--num-samples", "50", "--listen", address,
                              "--expect-agents", "1", "--source-addresses", "127.0.1.1"}));
  // 127.0.1.1 is its host's as well; its own choice goes first.
  Program agent({"tutti-agent", "--connect", address, "--source-address", "127.0.2.1,127.0.2.2"});
  ASSERT_EQ(coordinator.wait(60'000), 0) << coordinator.output();
  EXPECT_EQ(agent.wait(20'000), 0) << agent.output();
  EXPECT_EQ(from_peer(mock, 0, "127.0.1.1"), 0);
  EXPECT_GE(from_peer(mock, 0, "127.0.2.1"), 3);
  EXPECT_GE(from_peer(mock, 0, "127.0.2.2"), 3);
}

TEST(Frontends, AddressesThatAreNotThereEndBeforeTheRunByName) {
  const Mock mock(1);
  const std::string base = fresh_folder("frontends-nobodys");
  const std::string data = write_prompts(base, 10);
  const Ran run =
      run_program(online(mock.urls(), data, base + "/run",
                         {"--concurrency", "2", "--source-addresses", "127.0.1.1,192.0.2.77"}),
                  60'000);
  EXPECT_EQ(run.exit_code, 3) << run.output;
  EXPECT_THAT(run.output, HasSubstr("192.0.2.77 is on no agent's host"));
  const Ran agent = run_program(
      {"tutti-agent", "--connect", "tcp://127.0.0.1:1", "--source-address", "192.0.2.77"}, 20'000);
  EXPECT_EQ(agent.exit_code, 3) << agent.output;
  EXPECT_THAT(agent.output, HasSubstr("192.0.2.77 is not this host's"));
  const Ran bad = run_program(online(mock.urls(), data, base + "/bad",
                                     {"--concurrency", "2", "--source-addresses", "eth0"}),
                              20'000);
  EXPECT_EQ(bad.exit_code, 1) << bad.output;
  EXPECT_THAT(bad.output, HasSubstr("not an IP address"));
}

TEST(Frontends, WeightsAreExactOverAgentsInABurst) {
  const Mock mock(3, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  const std::string base = fresh_folder("frontends-weights");
  const std::string data = write_prompts(base, 100);
  std::vector<std::string> words{
      "tutti", "benchmark",    "offline",     "--model",       "m",       "--dataset",
      data,    "--report-dir", base + "/run", "--num-samples", "1000",    "--local-agents",
      "2",     "--balance",    "weighted",    "--weights",     "70,20,10"};
  for (const auto& url : mock.urls()) {
    words.insert(words.end(), {"--endpoints", url});
  }
  const Ran ran = run_program(words, 120'000);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json summary = read_json(base + "/run/performance/result_summary.json");
  const json& endpoints = summary["distributed"]["endpoints"];
  EXPECT_EQ(endpoints[0]["completed"], 700);
  EXPECT_EQ(endpoints[1]["completed"], 200);
  EXPECT_EQ(endpoints[2]["completed"], 100);
  for (const auto& endpoint : endpoints) {
    EXPECT_TRUE(endpoint["ttft_ns"].is_null() || endpoint["ttft_ns"]["p99"] > 0);
    EXPECT_GT(endpoint["latency_ns"]["p99"], 0);
    EXPECT_TRUE(endpoint["first_failure_s"].is_null());
    EXPECT_GT(endpoint["last_success_s"], 0);
  }
}

// Both frontends must be there when a run begins, so the second one fails by its answers.
TEST(Frontends, OneThatFailsAtOnceIsNamedAndDoesNotDrawTheRun) {
  const Mock good(1, {"--ttft", "10ms", "--gap", "1ms", "--tokens", "3"});
  const Mock bad(1, {"--fault", "status:503"});
  const std::string base = fresh_folder("frontends-dead");
  const std::string data = write_prompts(base, 100);
  const Ran ran = run_program(online({good.urls()[0], bad.urls()[0]}, data, base + "/run",
                                     {"--concurrency", "8", "--num-samples", "600"}),
                              120'000);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json summary = read_json(base + "/run/performance/result_summary.json");
  const json& endpoint = summary["distributed"]["endpoints"][1];
  EXPECT_EQ(endpoint["failed"], endpoint["completed"]);
  EXPECT_LE(endpoint["failed"], 320) << "half, its turn, and those already there at the start";
  EXPECT_GE(endpoint["failed"], 200);
  EXPECT_GE(endpoint["last_failure_s"], endpoint["first_failure_s"]);
  EXPECT_TRUE(endpoint["last_success_s"].is_null());
  const std::string report = read_text(base + "/run/report.txt");
  EXPECT_THAT(report,
              HasSubstr(fmt::format("{}: {} of", bad.urls()[0], endpoint["failed"].get<int>())));
  EXPECT_THAT(report, HasSubstr("it never succeeded"));
  EXPECT_THAT(report, Not(HasSubstr(good.urls()[0] + ":")));
}

TEST(Frontends, WrongCombinationsAreRefusedWithTheRemedy) {
  const std::string base = fresh_folder("frontends-refused");
  const std::string data = write_prompts(base, 10);
  const std::vector<std::string> two{"http://127.0.0.1:1", "http://127.0.0.1:2"};
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--weights", "1,2"}, "balance weighted only"},
      {{"--balance", "weighted"}, "one weight per endpoint"},
      {{"--balance", "weighted", "--weights", "0,0"}, "above 0"},
      {{"--affinity-header", "X-Session-ID"}, "needs balance affinity"},
      {{"--balance", "affinity", "--affinity-header", "Authorization"}, "cannot be Authorization"},
      {{"--balance", "affinity", "--affinity-header", "a b"}, "not the name of a header"},
      {{"--source-addresses", "0.0.0.0"}, "any address"},
      {{"--source-addresses", "127.0.0.1,127.0.0.1"}, "listed twice"},
  };
  for (auto [flags, text] : cases) {
    flags.insert(flags.end(), {"--concurrency", "2"});
    const Ran ran = run_program(online(two, data, base + "/run", flags), 20'000);
    EXPECT_EQ(ran.exit_code, 1) << text << ran.output;
    EXPECT_THAT(ran.output, HasSubstr(text));
  }
}

}  // namespace
}  // namespace tutti::testing_support
