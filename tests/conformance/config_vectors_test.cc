// Every vector of tests/conformance/config: files, command lines and single values that a user of
// the reference client brings along, and what they come to here. A case whose outcome is a decision
// of ours, not the reference's behaviour, says so with `=> deviation`.

#include "tests/conformance/config_vectors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>
#include <sstream>

#include "common/spec/coerce.h"
#include "common/spec/dump.h"
#include "common/spec/flags.h"
#include "common/spec/interpolate.h"
#include "common/spec/redact.h"
#include "common/spec/tree_json.h"
#include "common/spec/yaml_scalar.h"
#include "common/spec/yaml_text.h"

namespace tutti::conformance {
namespace {

using testing::HasSubstr;

const std::string kFolder = std::string(TUTTI_SOURCE_DIR) + "/tests/conformance/config";

const std::vector<ConfigCase>& all_cases() {
  static const std::vector<ConfigCase> kCases = load_config_cases(kFolder);
  return kCases;
}

void for_kind(const std::string& kind, const std::function<void(const ConfigCase&)>& check) {
  int seen = 0;
  for (const ConfigCase& each : all_cases()) {
    if (each.kind == kind) {
      SCOPED_TRACE(fmt::format("{}: {} {}\n{}", each.place, each.section, each.id, each.input));
      check(each);
      ++seen;
    }
  }
  EXPECT_GT(seen, 0) << kind;
}

std::optional<std::string> environment(const std::string& name) {
  static const std::map<std::string, std::string> kVariables{
      {"A", "x"}, {"A_B", "under"}, {"EMPTY", ""}, {"D", "p$$q"}, {"N", "64"}, {"YES", "yes"}};
  const auto at = kVariables.find(name);
  return at == kVariables.end() ? std::nullopt : std::optional(at->second);
}

// One line of YAML as a value; a text that cannot be read is a problem.
spec::Tree value_of(const std::string& yaml, base::Problems& problems) {
  base::Problems warnings;
  const spec::Tree tree = spec::tree_from_yaml("v: " + yaml + "\n", "v", problems, warnings);
  const spec::Tree* value = tree.find("v");
  return value == nullptr ? spec::Tree{} : *value;
}

std::string typed(const spec::Tree& tree) {
  static constexpr const char* kNames[] = {"null",   "bool", "int",  "float",
                                           "string", "date", "list", "map"};
  const std::string name = kNames[static_cast<std::size_t>(tree.kind)];
  return tree.is_null() ? name : fmt::format("{} {}", name, to_json(tree));
}

// ---- tables ----------------------------------------------------------------------------------

TEST(ConfigVectors, ScalarsHaveTheTypesOfYaml11) {
  for_kind("scalar", [](const ConfigCase& c) {
    base::Problems problems;
    const spec::Tree tree = value_of(c.input, problems);
    EXPECT_EQ(problems.empty() ? typed(tree) : "error", c.output);
  });
}

template <class T>
std::string shown(const spec::Coerced<T>& value) {
  if (!value) {
    return "error";
  }
  if constexpr (std::is_same_v<T, spec::WholeNumber>) {
    return value->text();
  } else {
    return fmt::format("{}", *value);
  }
}

TEST(ConfigVectors, ValuesAreTakenAsLenientlyAsThereAndNoMore) {
  const auto table = [](const std::string& kind, const auto& convert) {
    for_kind(kind, [&](const ConfigCase& c) {
      base::Problems problems;
      const spec::Tree tree = value_of(c.input, problems);
      ASSERT_TRUE(problems.empty()) << spec::to_text(problems);
      EXPECT_EQ(shown(convert(tree)), c.output);
    });
  };
  table("int", [](const spec::Tree& tree) { return spec::to_int(tree); });
  table("whole", [](const spec::Tree& tree) { return spec::to_whole(tree); });
  table("float", [](const spec::Tree& tree) { return spec::to_float(tree); });
  table("bool", [](const spec::Tree& tree) { return spec::to_bool(tree); });
  table("text", [](const spec::Tree& tree) { return spec::to_text(tree); });
  table("duration", [](const spec::Tree& tree) { return spec::to_duration_ms(tree); });
}

TEST(ConfigVectors, VariablesAreFilledIn) {
  for_kind("environment", [](const ConfigCase& c) {
    const auto out = spec::interpolated(c.input, environment);
    EXPECT_EQ(out ? *out : "error " + out.error().message.substr(0, c.output.size() - 6), c.output);
  });
}

TEST(ConfigVectors, SecretsAreRedacted) {
  for_kind("secret", [](const ConfigCase& c) {
    EXPECT_EQ(spec::is_secret_key(c.input) ? "secret" : "open", c.output);
  });
  for_kind("url", [](const ConfigCase& c) { EXPECT_EQ(spec::redact_url(c.input), c.output); });
  for_kind("redact", [](const ConfigCase& c) {
    base::Problems problems;
    EXPECT_EQ(to_json(spec::redacted(value_of(c.input, problems))), c.output);
  });
}

// Cases that another test proves already: `FILE | TEST`. The test must still be there.
TEST(ConfigVectors, CasesProvedElsewhereAreStillThere) {
  for_kind("elsewhere", [](const ConfigCase& c) {
    std::ifstream file(std::string(TUTTI_SOURCE_DIR) + "/tests/" + c.input);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(c.output));
  });
}

// ---- blocks ----------------------------------------------------------------------------------

struct Outcome {
  bool accepted = false;
  int exit = 0;
  std::string problems;
  std::string warnings;
  spec::Tree tree;
  std::string mode;
};

void expect_as_told(const ConfigCase& c, const Outcome& outcome) {
  for (const auto& [word, text] : c.expects) {
    if (word == "ok") {
      EXPECT_TRUE(outcome.accepted) << outcome.problems;
    } else if (word == "reject") {
      EXPECT_FALSE(outcome.accepted);
      EXPECT_THAT(outcome.problems, HasSubstr(text));
    } else if (word == "exit") {
      EXPECT_EQ(std::to_string(outcome.exit), text) << outcome.problems;
    } else if (word == "warn") {
      EXPECT_THAT(outcome.warnings, HasSubstr(text));
    } else if (word == "quiet") {
      EXPECT_EQ(outcome.warnings, "");
    } else if (word == "mode") {
      EXPECT_EQ(outcome.mode, text);
    } else if (word == "at") {
      const std::string path = text.substr(0, text.find(' '));
      const spec::Tree* found = outcome.tree.find_path(path);
      const std::string value = found == nullptr ? "absent" : to_json(*found);
      EXPECT_EQ(value, text.substr(path.size() + 1)) << path << " " << outcome.problems;
    } else {
      EXPECT_EQ(word, "deviation") << "unknown expectation";
      EXPECT_GT(text.size(), 10U) << "a deviation needs its reason";
    }
  }
}

// The base config of the vectors; a key at the left margin of the input replaces its own whole.
const std::vector<std::pair<std::string, std::string>> kBase = {
    {"type", "type: online\n"},
    {"model_params", "model_params: {name: m}\n"},
    {"endpoint_config", "endpoint_config: {endpoints: [\"http://h:8000\"]}\n"},
    {"settings", "settings: {load_pattern: {type: concurrency, target_concurrency: 4}}\n"},
    {"datasets", "datasets: [{path: d.jsonl}]\n"}};

std::string on_base(const std::string& changes) {
  std::istringstream lines(changes);
  std::set<std::string> replaced;
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (line == "%raw") {
      return changes.substr(line.size() + 1);
    }
    if (line.starts_with("%drop ")) {
      replaced.insert(line.substr(6));
      continue;
    }
    if (!line.empty() && line[0] != ' ' && line[0] != '-') {
      replaced.insert(line.substr(0, line.find(':')));
    }
    rest += line + "\n";
  }
  std::string out;
  for (const auto& [key, text] : kBase) {
    out += replaced.contains(key) ? "" : text;
  }
  return out + rest;
}

TEST(ConfigVectors, FilesAreAcceptedAndRefusedAsThere) {
  for_kind("config", [](const ConfigCase& c) {
    const auto reading = spec::read_config_text(on_base(c.input), "f.yaml", environment);
    Outcome outcome;
    outcome.accepted = reading.has_value();
    if (reading) {
      outcome.tree = spec::config_tree(reading->config);
      outcome.warnings = spec::to_text(reading->warnings);
      outcome.mode = spec::default_mode(reading->config) == spec::RunMode::kBoth ? "both" : "perf";
    } else {
      outcome.exit = static_cast<int>(reading.error().code);
      outcome.problems = spec::to_text(reading.error().problems);
      outcome.warnings = spec::to_text(reading.error().warnings);
    }
    expect_as_told(c, outcome);
  });
}

// Words of a shell line: blanks separate, single quotes keep.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false;
  bool open = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
      words.resize(words.size() + (open ? 0 : 1));
      open = true;
    } else if (!quoted && (c == ' ' || c == '\n')) {
      open = false;
    } else {
      words.resize(words.size() + (open ? 0 : 1));
      open = true;
      words.back() += c;
    }
  }
  return words;
}

Outcome outcome_of(const spec::Ordering& order) {
  static constexpr const char* kModes[] = {"perf", "acc", "both"};
  Outcome outcome;
  outcome.accepted = order.has_value();
  if (order) {
    outcome.tree = spec::config_tree(order->config);
    outcome.warnings = spec::to_text(order->warnings);
    outcome.mode = kModes[static_cast<std::size_t>(order->mode)];
  } else {
    outcome.exit = static_cast<int>(order.error().code);
    outcome.problems = spec::to_text(order.error().problems);
    outcome.warnings = spec::to_text(order.error().warnings);
  }
  return outcome;
}

// First word offline or online; the base's flags come first unless %raw follows it.
TEST(ConfigVectors, CommandLinesAreAcceptedAndRefusedAsThere) {
  for_kind("flags", [](const ConfigCase& c) {
    std::vector<std::string> words = words_of(c.input);
    const bool offline = words.at(0) == "offline";
    const bool raw = words.size() > 1 && words[1] == "%raw";
    words.erase(words.begin(), words.begin() + (raw ? 2 : 1));
    std::vector<std::string> args;
    if (!raw) {
      args = words_of("--endpoints http://h:8000 --model m --dataset d.jsonl");
      if (!offline) {
        args.insert(args.end(), {"--load-pattern", "concurrency", "--concurrency", "4"});
      }
    }
    args.insert(args.end(), words.begin(), words.end());
    const Outcome outcome = outcome_of(
        spec::order_from_flags(offline ? spec::TestType::kOffline : spec::TestType::kOnline, args));
    expect_as_told(c, outcome);
  });
}

// One data set as a text, on the command line and as an item of a file's list.
TEST(ConfigVectors, DataSetsInOneLineMeanTheSameOnTheCommandLineAndInAFile) {
  for_kind("dataset", [](const ConfigCase& c) {
    const std::string given = c.input.substr(0, c.input.size() - 1);
    const std::string line = given == "%empty" ? "" : given;
    Outcome outcome = outcome_of(spec::order_from_flags(
        spec::TestType::kOffline,
        {"--endpoints", "http://h:8000", "--model", "m", "--dataset=" + line}));
    std::string quoted = line;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 2) {
      quoted.insert(at, "'");
    }
    const auto reading =
        spec::read_config_text(on_base("datasets: ['" + quoted + "']\n"), "f.yaml", environment);
    EXPECT_EQ(reading.has_value(), outcome.accepted);
    if (reading && outcome.accepted) {
      const spec::Tree in_file = spec::config_tree(reading->config);
      const spec::Tree in_flags = outcome.tree;
      EXPECT_EQ(to_json(*in_file.find("datasets")), to_json(*in_flags.find("datasets")));
      outcome.tree = *in_flags.find_path("datasets.0");
    }
    expect_as_told(c, outcome);
  });
}

// ---- the account -----------------------------------------------------------------------------

TEST(ConfigVectors, EverySectionHasItsCases) {
  int deviations = 0;
  for (const ConfigCase& each : all_cases()) {
    for (const auto& [word, text] : each.expects) {
      deviations += word == "deviation" ? 1 : 0;
    }
  }
  std::set<std::string> sections;
  for (const auto& [section, count] : count_by_section(all_cases())) {
    std::cout << fmt::format("{:<8}{:>5}\n", section, count);
    sections.insert(section);
  }
  std::cout << fmt::format("cases: {}, of them by our own decision: {}\n", all_cases().size(),
                           deviations);
  for (const char* section :
       {"1.1",    "1.2",   "1.2.1", "1.3",   "1.4",   "1.5.1", "1.5.2",  "1.5.3",
        "1.5.4",  "1.5.5", "1.5.6", "1.5.7", "1.5.8", "1.5.9", "1.5.10", "1.5.12",
        "1.5.13", "1.6",   "1.7",   "1.8",   "1.9",   "1.10",  "2.1",    "2.2",
        "2.3",    "2.4",   "2.5",   "2.6",   "2.7",   "2.8",   "2.9",    "6.1"}) {
    EXPECT_TRUE(sections.contains(section)) << section;
  }
}

}  // namespace
}  // namespace tutti::conformance
