// `tutti calibrate` as people meet it: what it prints, what it leaves behind (nothing), how it
// refuses and how it is interrupted. How fast this host is decides nothing here.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// Processes whose command line names `text`.
int processes_with(const std::string& text) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    found += line.find(text) != std::string::npos ? 1 : 0;
  }
  return found;
}

// A config of `agents` on this host, which hold 30 streams.
std::string local_config(int agents) {
  const std::string path = fresh_folder("calibrate-local") + "/point.yaml";
  std::ofstream(path) << "type: online\nmodel_params: {name: m}\ndatasets: [{path: d.jsonl}]\n"
                         "settings: {load_pattern: {type: concurrency, target_concurrency: 30}}\n"
                         "endpoint_config: {endpoints: [\"http://127.0.0.1:1\"]}\n"
                      << "distributed: {local_agents: " << agents << "}\n";
  return path;
}

void expect_nothing_left(pid_t pid) {
  const std::string folder = fmt::format("tutti-calibrate-{}", pid);
  EXPECT_EQ(processes_with(folder), 0);
  EXPECT_FALSE(fs::exists(fs::temp_directory_path() / folder));
}

TEST(Calibrate, TellsEveryFigureItsReasonAndTheHeadRoomOfAConfig) {
  const std::string config = std::string(TUTTI_SOURCE_DIR) + "/configs/several_hosts.yaml";
  Program calibrate({"tutti", "calibrate", "--duration", "1", "-c", config,
                     "--tokens-per-second-per-stream", "20"});
  const pid_t pid = calibrate.pid();
  ASSERT_EQ(calibrate.wait(200'000), 0) << calibrate.output();
  const std::string& out = calibrate.output();
  EXPECT_THAT(out, AllOf(ContainsRegex("\n  short requests per second +([0-9]+|none)   [^\n]+"),
                         ContainsRegex("\n  stream events per second +([0-9]+|none)   [^\n]+"),
                         ContainsRegex("\n  streams held +([0-9]+|none)   [^\n]+"),
                         ContainsRegex("\n  first tokens +(p50|no token)"),
                         ContainsRegex("\n  later tokens +(p50|no token)"),
                         HasSubstr("shared with the null server"), HasSubstr("What it means:")));
  // 600 streams of 20 events each, by three agents.
  if (out.find("\n  cannot be told: nothing was measured of ") == std::string::npos) {
    EXPECT_THAT(out, AllOf(ContainsRegex("\n  factor (at least )?[0-9]+\\.[0-9][0-9] \\("),
                           HasSubstr("asked: 600 streams × 20 events/s each"),
                           HasSubstr("× 3 agents"), HasSubstr("assumed:")));
  } else {
    EXPECT_THAT(out, ContainsRegex("(events per second|streams held) +none"));
  }
  std::smatch counts;
  ASSERT_TRUE(std::regex_search(out, counts, std::regex("sent in all: ([0-9]+), failed: 0\n")))
      << out;
  EXPECT_GT(std::stoull(counts[1]), 100U);
  expect_nothing_left(pid);
}

TEST(Calibrate, AgentsThatWouldShareThisHostAreNotMultiplied) {
  const Ran ran = run_program(
      {"tutti", "calibrate", "--duration", "1", "--agents", "1", "-c", local_config(3)});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("cannot be told: its 3 agents share one host and 1 were "
                                    "measured"));
}

TEST(Calibrate, WithoutItsNullServerSaysWhatIsMissing) {
  const std::string base = fresh_folder("calibrate-alone");
  fs::copy_file(std::string(TUTTI_BIN_DIR) + "/tutti", base + "/tutti");
  const Ran ran = run_program(
      {fs::relative(base + "/tutti", TUTTI_BIN_DIR).string(), "calibrate", "--duration", "1"});
  EXPECT_EQ(ran.exit_code, 3) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr(base + "/tutti-mock"), HasSubstr("null server")));
}

TEST(Calibrate, RefusesWhatItCannotUse) {
  const Ran flag = run_program({"tutti", "calibrate", "--duration", "0"});
  EXPECT_EQ(flag.exit_code, 1);
  EXPECT_THAT(flag.output, HasSubstr("--duration"));
  EXPECT_EQ(run_program({"tutti", "calibrate", "--transport", "pigeon"}).exit_code, 1);
  const Ran none = run_program({"tutti", "calibrate", "-c", "/nowhere.yaml"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.output, HasSubstr("/nowhere.yaml"));
  const Ran help = run_program({"tutti", "calibrate", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("same cores"), HasSubstr("head-room factor")));
}

TEST(Calibrate, AnInterruptEndsItAndItsNullServer) {
  Program calibrate({"tutti", "calibrate", "--duration", "60"});
  const pid_t pid = calibrate.pid();
  ASSERT_TRUE(calibrate.says("short requests per second", 60'000)) << calibrate.output();
  calibrate.signal(SIGINT);
  EXPECT_EQ(calibrate.wait(60'000), 130) << calibrate.output();
  EXPECT_THAT(calibrate.output(), HasSubstr("interrupted"));
  expect_nothing_left(pid);
}

}  // namespace
}  // namespace tutti::testing_support
