#include "common/spec/flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/spec/bind.h"
#include "common/spec/flag_names.h"
#include "common/spec/flag_parser.h"
#include "common/spec/legacy.h"
#include "common/spec/rules.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kDatasetPlace = "Invalid --dataset";

tl::unexpected<Rejected> rejected(base::ExitCode code, Findings findings) {
  return tl::unexpected<Rejected>(
      Rejected{code, std::move(findings.problems), std::move(findings.warnings)});
}

std::optional<RunMode> mode_of(const CommandFlags& command, Findings& findings) {
  if (command.accuracy_only.value_or(false)) {
    return RunMode::kAcc;
  }
  if (!command.mode) {
    return std::nullopt;
  }
  const std::string word = lower_case(*command.mode);
  if (word == "perf" || word == "acc" || word == "both") {
    return word == "perf" ? RunMode::kPerf : word == "acc" ? RunMode::kAcc : RunMode::kBoth;
  }
  findings.wrong_at("--mode", {},
                    fmt::format("'{}' must be one of perf, acc, both", *command.mode));
  return std::nullopt;
}

// What only a command line requires, in its own words.
void name_missing_flags(const CommandFlags& command, Findings& findings) {
  for (base::Problem& problem : findings.problems) {
    const Row* row = config_schema().find(problem.field);
    if (row != nullptr && row->is_required && problem.remedy == "is required") {
      const std::vector<std::string> aliases = flag_aliases(*row);
      problem.remedy = fmt::format("Required: --{}{}", flag_name(*row),
                                   aliases.empty() ? "" : fmt::format(" [--{}]", aliases[0]));
      problem.field.clear();
    }
  }
  if (command.datasets.empty()) {
    findings.wrong_at("command line", {}, "Required: --dataset [perf|acc:]PATH[,KEY=VALUE]*");
  }
}

void put_type(Tree& document, TestType type, Findings& findings) {
  const std::string word = config_schema().find("type")->names.at(static_cast<std::size_t>(type));
  const Tree* given = document.find("type");
  if (given != nullptr && given->text != word) {
    findings.wrong_at(given->where, {},
                      fmt::format("'{}' contradicts the command `benchmark {}`; leave the flag out",
                                  given->text, word));
  }
  Tree tree = Tree::of_string(word);
  tree.where = fmt::format("benchmark {}", word);
  document.set("type", std::move(tree));
}

void put_datasets(Tree& document, const std::vector<std::string>& datasets) {
  Tree list = Tree::list();
  list.where = kDatasetPlace;
  for (const std::string& text : datasets) {
    list.items.push_back(Tree::of_string(text));
    list.items.back().where = kDatasetPlace;
  }
  document.set("datasets", std::move(list));
}

void warn_of_unissued(const Order& order, base::Problems& warnings) {
  for (std::size_t i = 0; i < order.config.datasets.size(); ++i) {
    const DatasetSpec& dataset = order.config.datasets[i];
    const char* why = nullptr;
    if (dataset.type == DatasetType::kAccuracy && order.mode == RunMode::kPerf) {
      why = "is an accuracy data set and is not issued in perf mode";
    } else if (dataset.type == DatasetType::kPerformance && order.mode == RunMode::kAcc) {
      why = "is a performance data set and is neither read nor issued in acc mode";
    } else if (dataset.type == DatasetType::kPerformance && dataset.accuracy_config.present) {
      why = "has an accuracy_config, but replies of the performance phase are not scored";
    }
    if (why != nullptr) {
      warnings.push_back({{}, fmt::format("datasets.{}", i), dataset.name, why});
    }
  }
}

}  // namespace

GlobalFlags take_global_flags(std::vector<std::string>& args) {
  GlobalFlags flags;
  const auto is_global = [&flags](const std::string& arg) {
    const bool is_short =
        arg.size() > 1 && arg[0] == '-' && arg.find_first_not_of('v', 1) == std::string::npos;
    if (is_short) {
      flags.verbosity += static_cast<int>(arg.size()) - 1;
    } else if (arg == "--verbose") {
      ++flags.verbosity;
    } else if (arg == "-h" || arg == "--help") {
      flags.help = true;
    } else if (arg == "--version") {
      flags.version = true;
    } else {
      return false;
    }
    return true;
  };
  std::erase_if(args, is_global);
  return flags;
}

Ordering order_from_flags(TestType type, const std::vector<std::string>& args) {
  Findings findings;
  ParsedFlags parsed = parse_flags({true, false, true}, args, findings);
  const auto mode = mode_of(parsed.command, findings);
  Tree& document = parsed.document;
  for (const char* section : {"model_params", "endpoint_config"}) {
    if (document.find(section) == nullptr) {
      Tree map = Tree::map();
      map.where = document.where;
      document.set(section, std::move(map));
    }
  }
  put_type(document, type, findings);
  put_datasets(document, parsed.command.datasets);

  Order order;
  rename_old(document, findings);
  bind_config(document, order.config, findings);
  apply_rules(document, order.config, findings);
  name_missing_flags(parsed.command, findings);
  order.mode = mode.value_or(default_mode(order.config));
  if (!findings.problems.empty()) {
    const bool only_datasets =
        std::all_of(findings.problems.begin(), findings.problems.end(),
                    [](const base::Problem& problem) { return problem.where == kDatasetPlace; });
    return rejected(only_datasets ? base::ExitCode::kInput : base::ExitCode::kUsage,
                    std::move(findings));
  }
  warn_of_unissued(order, findings.warnings);
  order.warnings = std::move(findings.warnings);
  return order;
}

Ordering order_from_config(const std::vector<std::string>& args, const Environment& environment) {
  Findings findings;
  const ParsedFlags parsed = parse_flags({false, true, false}, args, findings);
  const auto mode = mode_of(parsed.command, findings);
  if (!parsed.command.config_path) {
    findings.wrong_at("command line", {}, "Required: --config [-c]");
  }
  if (!findings.problems.empty()) {
    return rejected(base::ExitCode::kUsage, std::move(findings));
  }
  auto reading = read_config_file(*parsed.command.config_path, environment, parsed.document);
  if (!reading) {
    return tl::unexpected<Rejected>(std::move(reading.error()));
  }
  Order order;
  order.config = std::move(reading->config);
  order.mode = mode.value_or(default_mode(order.config));
  order.warnings = std::move(reading->warnings);
  warn_of_unissued(order, order.warnings);
  return order;
}

}  // namespace tutti::spec
