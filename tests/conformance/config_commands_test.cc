// The `command` cases of tests/conformance/config: shell lines as scripts have them, run with our
// programs under the reference's name, and what scripts look at: exit code, standard output,
// standard error. Each runs in a folder of its own with base.yaml, d.jsonl and e.jsonl; $MOCK is
// a server that answers.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/conformance/config_vectors.h"
#include "tests/support/program.h"

namespace tutti::conformance {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace support = testing_support;

void put_base_files(const std::string& folder) {
  std::ofstream(folder + "/d.jsonl") << "{\"prompt\": \"one\"}\n{\"prompt\": \"two\"}\n";
  std::ofstream(folder + "/e.jsonl")
      << "{\"prompt\": \"A, B, C or D?\", \"ground_truth\": \"A\"}\n";
  std::ofstream(folder + "/base.yaml")
      << "type: online\n"
         "model_params: {name: m}\n"
         "endpoint_config: {endpoints: [\"${MOCK}\"]}\n"
         "settings: {load_pattern: {type: concurrency, target_concurrency: 2}}\n"
         "report_dir: run\n"
         "datasets: ['d.jsonl']\n";
}

struct Seen {
  int exit = -1;
  std::string out;
  std::string err;
};

Seen run_script(const std::string& folder, const std::string& text, const std::string& mock) {
  std::ofstream(folder + "/script")
      << "cd '" << folder << "' || exit 99\nPATH='" << TUTTI_BIN_DIR << "':$PATH\nexport MOCK='"
      << mock << "' TMPDIR='" << folder << "'\n"
      << text;
  const std::string command =
      fmt::format("timeout 60 sh '{0}/script' > '{0}/.out' 2> '{0}/.err' < /dev/null", folder);
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, support::read_text(folder + "/.out"),
          support::read_text(folder + "/.err")};
}

void expect_as_told(const ConfigCase& c, const Seen& seen) {
  for (const auto& [word, text] : c.expects) {
    if (word == "exit") {
      EXPECT_EQ(std::to_string(seen.exit), text);
    } else if (word == "out") {
      EXPECT_THAT(seen.out, HasSubstr(text));
    } else if (word == "err") {
      EXPECT_THAT(seen.err, HasSubstr(text));
    } else if (word == "not") {
      EXPECT_THAT(seen.out + seen.err, Not(HasSubstr(text)));
    } else {
      EXPECT_EQ(word, "deviation") << "unknown expectation";
      EXPECT_GT(text.size(), 10U) << "a deviation needs its reason";
    }
  }
}

int failures_so_far() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

TEST(ConfigCommands, SayAndEndAsScriptsExpect) {
  const support::Mock mock(1, {"--ttft", "1ms", "--gap", "1ms", "--tokens", "2"});
  int seen = 0;
  for (const ConfigCase& each :
       load_config_cases(std::string(TUTTI_SOURCE_DIR) + "/tests/conformance/config")) {
    if (each.kind != "command") {
      continue;
    }
    SCOPED_TRACE(fmt::format("{}: {} {}\n{}", each.place, each.section, each.id, each.input));
    const std::string folder = support::fresh_folder(fmt::format("config-command-{}", ++seen));
    put_base_files(folder);
    const Seen got = run_script(folder, each.input, mock.urls()[0]);
    const int failures = failures_so_far();
    expect_as_told(each, got);
    if (failures_so_far() != failures) {
      ADD_FAILURE() << "exit " << got.exit << "\nout:\n" << got.out << "\nerr:\n" << got.err;
    }
    std::filesystem::remove_all(folder);
  }
  EXPECT_GT(seen, 30);
}

}  // namespace
}  // namespace tutti::conformance
