// An agent that stands still during a run is found out: by name, in the health file, the report and
// the summary, and the run stays valid. What a healthy host measures is not asserted here.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// Rows of a CSV file whose cells need no quotes, by column name.
std::vector<std::map<std::string, std::string>> csv_rows(const std::string& path) {
  std::istringstream text(read_text(path));
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::string line; std::getline(text, line);) {
    std::istringstream cells(line);
    std::vector<std::string> values;
    for (std::string value; std::getline(cells, value, ',');) {
      values.push_back(value);
    }
    if (names.empty()) {
      names = values;
      continue;
    }
    EXPECT_EQ(values.size(), names.size()) << line;
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(values.size(), names.size()); ++i) {
      row[names[i]] = values[i];
    }
  }
  return rows;
}

TEST(RunHealth, AnAgentThatStandsStillMarksTheRunClientBoundByItsName) {
  const Mock mock(1, {"--ttft", "20ms", "--gap", "5ms", "--tokens", "4"});
  const std::string base = fresh_folder("run-health");
  const std::string folder = base + "/run";
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  std::vector<std::unique_ptr<Program>> agents;
  for (const char* name : {"steady", "stopped"}) {
    agents.push_back(std::make_unique<Program>(
        std::vector<std::string>{"tutti-agent", "--connect", address, "--name", name}));
  }
  Program run(words_of({write_prompts(base, 100),
                        folder,
                        mock.urls(),
                        16,
                        3200,
                        {"--listen", address, "--expect-agents", "2"}}));
  ASSERT_TRUE(run.says("phase performance: 3200 queries", 60'000)) << run.output();
  std::this_thread::sleep_for(milliseconds(1500));
  agents[1]->signal(SIGSTOP);
  std::this_thread::sleep_for(milliseconds(1500));
  agents[1]->signal(SIGCONT);
  ASSERT_EQ(run.wait(120'000), 0) << run.output();

  double stall_us = 0;
  std::size_t steady_rows = 0;
  for (const auto& row : csv_rows(folder + "/performance/client_health.csv")) {
    steady_rows += row.at("agent") == "steady" ? 1U : 0U;
    if (row.at("agent") == "stopped" && row.at("judged") == "1") {
      stall_us = std::max(stall_us, std::stod(row.at("turn_max_us")));
    }
  }
  EXPECT_GE(stall_us, 1e6);
  EXPECT_GE(steady_rows, 3U) << "about one a second";

  const json summary = read_json(folder + "/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_completed"], 3200);
  EXPECT_EQ(summary["verdict"]["valid"], true);
  const json& health = summary["distributed"]["client_health"];
  EXPECT_EQ(health["client_bound"], true);
  const auto found =
      std::find_if(health["findings"].begin(), health["findings"].end(), [](const json& finding) {
        return finding["agent"] == "stopped" && finding["metric"] == "turn_max";
      });
  ASSERT_NE(found, health["findings"].end()) << health.dump(2);
  EXPECT_GE((*found)["value"].get<double>(), 1000.0);
  EXPECT_EQ((*found)["limit"], 100.0);
  EXPECT_GT((*found)["at_s"].get<double>(), 0.0);
  const std::string report = read_text(folder + "/report.txt");
  EXPECT_THAT(report, testing::HasSubstr("Client-bound: YES"));
  EXPECT_THAT(report, testing::HasSubstr("agent stopped: longest turn of a worker's loop"));
  EXPECT_THAT(run.output(), testing::HasSubstr("client limits broken in"));
}

}  // namespace
}  // namespace tutti::testing_support
