// The house checks itself: floors, names of headers, banned words, sizes. Each finding names the
// file, the line and what to write instead.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace tutti::tidy {
namespace {

struct File {
  std::string path;  // from the root
  std::vector<std::string> lines;
};

std::vector<File> load_tree(const std::vector<std::string>& roots,
                            const std::vector<std::string>& suffixes) {
  std::vector<File> files;
  const fs::path root = TUTTI_SOURCE_DIR;
  for (const auto& sub : roots) {
    if (!fs::exists(root / sub)) {
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(root / sub)) {
      const std::string suffix = entry.path().extension().string();
      if (!entry.is_regular_file() ||
          std::find(suffixes.begin(), suffixes.end(), suffix) == suffixes.end()) {
        continue;
      }
      File file{fs::relative(entry.path(), root).string(), {}};
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        file.lines.push_back(line);
      }
      files.push_back(std::move(file));
    }
  }
  return files;
}

const std::vector<File>& sources() {
  static const std::vector<File> kFiles =
      load_tree({"common", "agent", "coordinator", "tests"}, {".h", ".cc"});
  return kFiles;
}

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0;
}

// DESIGN's table: folder → floor. A file may include its own folder and lower floors.
const std::map<std::string, int>& floors() {
  static const std::map<std::string, int> kFloors = {{"common/base", 0},
                                                     {"common/text", 1},
                                                     {"common/stats", 1},
                                                     {"common/sys", 1},
                                                     {"common/rust", 1},
                                                     {"common/hub", 1},
                                                     {"common/spec", 2},
                                                     {"common/plan", 2},
                                                     {"common/model", 2},
                                                     {"common/data", 2},
                                                     {"common/wire", 2},
                                                     {"agent/target", 3},
                                                     {"agent/record", 3},
                                                     {"agent/drive", 4},
                                                     {"agent/session", 5},
                                                     {"agent", 6},
                                                     {"coordinator/roster", 3},
                                                     {"coordinator/ledger", 3},
                                                     {"coordinator/scrape", 3},
                                                     {"coordinator/verdict", 3},
                                                     {"coordinator/accuracy", 3},
                                                     {"coordinator/launch", 3},
                                                     {"coordinator/report", 4},
                                                     {"coordinator/console", 4},
                                                     {"coordinator/dashboard", 4},
                                                     {"coordinator/conduct", 5},
                                                     {"coordinator", 6}};
  return kFloors;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

std::string tower_of(const std::string& folder) { return folder.substr(0, folder.find('/')); }

// The include rule for one pair of folders; empty when allowed.
std::string floor_problem(const std::string& from, const std::string& to) {
  const auto from_floor = floors().find(from);
  const auto to_floor = floors().find(to);
  if (to_floor == floors().end()) {
    return fmt::format("{} has no floor in tests/tidy", to);
  }
  if (from == to) {
    return {};
  }
  const std::string from_tower = tower_of(from);
  const std::string to_tower = tower_of(to);
  if (from_tower != "common" && to_tower != "common" && from_tower != to_tower) {
    return "the two towers never include each other: move the shared part to common/";
  }
  if (to_floor->second >= from_floor->second) {
    return fmt::format("floor {} may not include floor {}: only lower floors", from_floor->second,
                       to_floor->second);
  }
  return {};
}

TEST(Tidy, FilesIncludeOnlyTheirFolderAndLowerFloors) {
  const std::regex include(R"(^\s*#include \"([a-z_0-9/]+)/[a-z_0-9]+\.(pb\.)?h\")");
  std::vector<std::string> findings;
  std::size_t seen = 0;
  for (const auto& file : sources()) {
    const std::string from = folder_of(file.path);
    if (floors().count(from) == 0) {
      EXPECT_TRUE(starts_with(file.path, "tests/")) << file.path << ": folder has no floor";
      continue;
    }
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(file.lines[i], match, include) || starts_with(match[1], "tutti/v1")) {
        continue;
      }
      ++seen;
      if (const auto problem = floor_problem(from, match[1]); !problem.empty()) {
        findings.push_back(fmt::format("{}:{}: {}", file.path, i + 1, problem));
      }
    }
  }
  EXPECT_GT(seen, 50U) << "the include pattern no longer matches anything";
  EXPECT_THAT(findings, testing::IsEmpty());
}

TEST(Tidy, TheFloorRuleRefusesUpwardSidewaysAndAcrossTowers) {
  EXPECT_EQ(floor_problem("common/plan", "common/base"), "");
  EXPECT_NE(floor_problem("common/plan", "common/wire"), "");
  EXPECT_NE(floor_problem("common/base", "common/text"), "");
  EXPECT_NE(floor_problem("agent/session", "coordinator/roster"), "");
  EXPECT_NE(floor_problem("coordinator/roster", "coordinator/ledger"), "");
}

// A third party is known to one folder (or to .cc files only), so that it can be replaced there.
struct Confinement {
  const char* pattern;
  std::vector<std::string> allowed;  // path prefixes
  const char* why;
};

TEST(Tidy, ThirdPartiesStayInTheirFolder) {
  const std::vector<Confinement> rules = {
      {"<yaml-cpp/", {"common/spec/", "tests/"}, "only common/spec knows YAML"},
      {"<zmq", {"common/wire/", "tests/"}, "only common/wire knows ZeroMQ"},
      {"<msgpack", {"common/wire/", "tests/"}, "only common/wire knows MessagePack"},
      {".pb.h\"", {"common/wire/", "tests/"}, "only common/wire sees generated code"},
      {"<curl/",
       {"agent/target/", "coordinator/scrape/", "common/hub/", "tests/"},
       "only agent/target and common/hub know HTTP"},
      {"<spdlog/", {"common/base/log.cc"}, "spdlog hides behind common/base/log.h"},
      {"<CLI/", {"common/spec/", "coordinator/", "agent/", "tests/"}, "flags are read in mains"},
  };
  // json_fwd.hpp only names the types.
  const std::regex heavy(
      R"(#include <(yaml-cpp|zmq|msgpack|spdlog|CLI|simdjson|nlohmann/json\.hpp|google/protobuf))");
  std::vector<std::string> findings;
  for (const auto& file : sources()) {
    if (starts_with(file.path, "tests/tidy/")) {
      continue;
    }
    const bool header = file.path.substr(file.path.size() - 2) == ".h";
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const auto& line = file.lines[i];
      if (!starts_with(line, "#include")) {
        continue;
      }
      for (const auto& rule : rules) {
        const bool allowed =
            std::any_of(rule.allowed.begin(), rule.allowed.end(),
                        [&](const auto& prefix) { return starts_with(file.path, prefix); });
        if (line.find(rule.pattern) != std::string::npos && !allowed) {
          findings.push_back(fmt::format("{}:{}: {}", file.path, i + 1, rule.why));
        }
      }
      if (header && !starts_with(file.path, "tests/") && std::regex_search(line, heavy)) {
        findings.push_back(
            fmt::format("{}:{}: heavy header in a header: move it to the .cc", file.path, i + 1));
      }
    }
  }
  EXPECT_THAT(findings, testing::IsEmpty());
}

struct Ban {
  std::regex pattern;
  std::vector<std::string> except;  // path prefixes
  const char* instead;
};

TEST(Tidy, BannedWordsNameTheirReplacement) {
  const std::vector<Ban> bans = {
      {std::regex("high_resolution_clock"), {}, "base::Clock"},
      {std::regex(R"((steady_clock|system_clock)::now)"), {"tests/"}, "take `now` as an argument"},
      {std::regex(R"(std::[a-z_]+_distribution)"), {}, "base::Mt19937 (same bytes everywhere)"},
      {std::regex(R"(\b(s?rand|random_device)\()"), {}, "base::Mt19937 or base::fresh_id"},
      {std::regex(R"(std::source_location|std::format\()"), {}, "fmt, and an explicit place"},
      {std::regex(R"(\b(TODO|FIXME|XXX)\b)"), {}, "an issue, or the code"},
      {std::regex(R"(using namespace (?!std::literals|std::chrono_literals|std::string))"),
       {"tests/"},
       "the full name"},
      {std::regex(R"(/(home|work)/[a-z])"), {}, "no machine path"},
  };
  std::vector<std::string> findings;
  for (const auto& file : sources()) {
    if (starts_with(file.path, "tests/tidy/")) {
      continue;
    }
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const auto& ban : bans) {
        const bool excused =
            std::any_of(ban.except.begin(), ban.except.end(),
                        [&](const auto& prefix) { return starts_with(file.path, prefix); });
        if (!excused && std::regex_search(file.lines[i], ban.pattern)) {
          findings.push_back(
              fmt::format("{}:{}: {}: instead: {}", file.path, i + 1, file.lines[i], ban.instead));
        }
      }
    }
  }
  EXPECT_THAT(findings, testing::IsEmpty());
}

// Columns, not bytes: UTF-8 continuation bytes do not count.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

TEST(Tidy, LinesAndFilesStaySmall) {
  std::vector<std::string> findings;
  for (const auto& file : sources()) {
    const bool header = file.path.substr(file.path.size() - 2) == ".h";
    const bool test = starts_with(file.path, "tests/");
    // The budget of the house is 200 and 500; the limit here leaves room for a table or a long
    // contract.
    const std::size_t limit = test ? 1000 : (header ? 320 : 650);
    if (file.lines.size() > limit) {
      findings.push_back(
          fmt::format("{}: {} lines, at most {}: split it", file.path, file.lines.size(), limit));
    }
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (columns(file.lines[i]) > 110) {
        findings.push_back(fmt::format("{}:{}: over 110 columns", file.path, i + 1));
      }
      if (file.lines[i].find('\t') != std::string::npos) {
        findings.push_back(fmt::format("{}:{}: tab", file.path, i + 1));
      }
    }
  }
  EXPECT_THAT(findings, testing::IsEmpty());
}

TEST(Tidy, HeadersOpenWithPragmaAndAPurpose) {
  std::vector<std::string> findings;
  for (const auto& file : sources()) {
    if (file.path.substr(file.path.size() - 2) != ".h") {
      continue;
    }
    if (file.lines.empty() || file.lines[0] != "#pragma once") {
      findings.push_back(file.path + ":1: #pragma once comes first");
    }
    const bool purpose = file.lines.size() > 2 && starts_with(file.lines[2], "//");
    if (!purpose) {
      findings.push_back(file.path + ":3: say in 3–12 lines what this is and what it promises");
    }
  }
  EXPECT_THAT(findings, testing::IsEmpty());
}

TEST(Tidy, EverySourceIsBuilt) {
  std::string lists;
  for (const auto& file :
       load_tree({"common", "agent", "coordinator", "tests"}, {".txt", ".cmake"})) {
    for (const auto& line : file.lines) {
      lists += line + "\n";
    }
  }
  // A list may build names in a loop: wire_${area}_test.cc stands for any word in the middle.
  const std::regex built_name(
      R"(([A-Za-z0-9_]|\$\{[a-z]+\})*\$\{[a-z]+\}([A-Za-z0-9_]|\$\{[a-z]+\})*\.cc)");
  std::vector<std::regex> patterns;
  for (auto it = std::sregex_iterator(lists.begin(), lists.end(), built_name);
       it != std::sregex_iterator(); ++it) {
    const std::string word =
        std::regex_replace(it->str(), std::regex(R"(\$\{[a-z]+\})"), "[a-z0-9_]+");
    patterns.emplace_back(std::regex_replace(word, std::regex(R"(\.cc$)"), "\\.cc"));
  }
  std::vector<std::string> findings;
  for (const auto& file : sources()) {
    const std::string name = file.path.substr(file.path.find_last_of('/') + 1);
    const bool built =
        lists.find(name) != std::string::npos ||
        std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::regex& pattern) { return std::regex_match(name, pattern); });
    if (name.substr(name.size() - 3) == ".cc" && !built) {
      findings.push_back(file.path + ": in no CMakeLists.txt");
    }
  }
  EXPECT_THAT(findings, testing::IsEmpty());
}

}  // namespace
}  // namespace tutti::tidy
