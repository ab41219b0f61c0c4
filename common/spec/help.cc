// Texts of `benchmark … --help`, made from the schema.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/flag_names.h"
#include "common/spec/flags.h"
#include "common/spec/schema.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::size_t kHelpWidth = 92;

struct Group {
  std::string_view title;
  std::string_view section;  // rows directly or further below it
};

constexpr std::array<Group, 11> kGroups{{
    {"Frontends", "endpoint_config"},
    {"Model", "model_params"},
    {"Load", "settings.load_pattern"},
    {"Length and seeds", "settings.runtime"},
    {"Agents (tutti's own; not known to the reference client)", "distributed"},
    {"Warm-up", "settings.warmup"},
    {"Connections", "settings.client"},
    {"Timeouts (seconds)", "settings.timeouts"},
    {"Token counts", "settings.metrics_tokenizer_workers"},
    {"Results", "settings.early_stopping"},
    {"Output", "report_dir"},
}};

std::string wrapped(const std::string& text, std::string_view indent) {
  std::string result;
  std::string line(indent);
  for (const std::string& word : split(text, ' ')) {
    if (line.size() + 1 + word.size() > kHelpWidth && line.size() > indent.size()) {
      result += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
  }
  return result + line + "\n";
}

std::string_view placeholder(const Row& row) {
  switch (row.kind) {
    case FieldKind::kBool:
      return "";
    case FieldKind::kInt:
    case FieldKind::kIntOrNull:
    case FieldKind::kSeed:
    case FieldKind::kWholeOrNull:
      return " N";
    case FieldKind::kDuration:
      return " DURATION";
    case FieldKind::kFloat:
    case FieldKind::kFloatOrNull:
      return " X";
    case FieldKind::kEnum:
      return " WORD";
    case FieldKind::kTree:
      return ".KEY VALUE";
    default:
      return " TEXT";
  }
}

// A row nobody should read about here: hidden itself or inside something hidden or refused.
bool is_left_out(const Row& row) {
  for (std::string_view path = row.path; !path.empty(); path = parent_of(path)) {
    const Row* outer = config_schema().find(path);
    if (outer != nullptr && (outer->is_hidden || outer->support == Support::kRefused)) {
      return true;
    }
  }
  return row.kind == FieldKind::kSection || row.kind == FieldKind::kDatasets;
}

std::string flag_help(const Row& row) {
  std::vector<std::string> names = flag_aliases(row);
  if (names.empty() || flag_name(row).find('.') == std::string::npos) {
    names.insert(names.begin(), flag_name(row));
  } else {
    names.push_back(flag_name(row));
  }
  std::string head = "  ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    head += (i == 0 ? "--" : ", --") + names[i];
  }
  head += placeholder(row);
  if (row.kind == FieldKind::kBool) {
    head += ", --no-…";
  }
  std::string note;
  if (row.kind == FieldKind::kEnum) {
    std::vector<std::string> words = row.names;
    std::erase(words, "");
    note = joined(words, " | ");
  } else {
    note = bounds_text(row);
  }
  const std::string initial = default_text(config_schema(), row);
  if (row.is_required) {
    note = "required";
  } else if (initial != "null" && initial != "''" && initial != "[]") {
    note += (note.empty() ? "" : "; ") + fmt::format("default {}", initial);
  }
  return head + "\n" + wrapped(row.help + (note.empty() ? "" : " [" + note + "]"), "        ");
}

std::string group_help(const Group& group) {
  std::string text;
  for (const Row& row : config_schema().rows()) {
    const bool is_inside =
        row.path == group.section || row.path.starts_with(std::string(group.section) + ".");
    if (is_inside && !is_left_out(row) && row.support == Support::kFull) {
      text += flag_help(row);
    }
  }
  return fmt::format("\n{}:\n{}", group.title, text);
}

std::string inert_help() {
  std::vector<std::string> names;
  for (const Row& row : config_schema().rows()) {
    if (!is_left_out(row) && row.support == Support::kInert) {
      names.push_back("--" + flag_name(row));
    }
  }
  return "\nKnown from the reference client, accepted, without effect here (a warning says "
         "why):\n" +
         wrapped(joined(names, " "), "  ");
}

constexpr std::string_view kModeHelp =
    "  --mode perf|acc|both\n"
    "        What to run: the performance data set, the accuracy data sets (one query at a time;\n"
    "        docs/accuracy.md says what is scored), or both. [default perf; both for a "
    "submission]\n"
    "  --accuracy-only\n"
    "        The same as --mode acc.\n";

}  // namespace

std::string benchmark_help(TestType type) {
  const std::string word = config_schema().find("type")->names.at(static_cast<std::size_t>(type));
  std::string text = fmt::format(
      "usage: tutti benchmark {0} --endpoints URL [--endpoints URL]… --model NAME --dataset PATH "
      "[flags]\n\n",
      word);
  text += wrapped(
      type == TestType::kOffline
          ? "Issues the whole data set at once and measures how fast the frontends get through it."
          : "Issues requests at a rate (--load-pattern poisson --target-qps X) or keeps a number "
            "of them in flight (--load-pattern concurrency --concurrency N), streaming, and "
            "measures what a user would see.",
      "");
  text += "\n" + wrapped(
                     "Every field of the config file is a flag: its dotted path, with or without "
                     "settings., in kebab or snake case. Without agents named, local ones are "
                     "started. docs/config.md describes each field.",
                     "");
  text += "\nCommand:\n";
  text += "  --dataset [perf|acc:]PATH[,KEY=VALUE]*\n" +
          wrapped(
              "A data set, e.g. data.jsonl,samples=500,parser.prompt=question. Repeatable. "
              "[required]",
              "        ");
  text += kModeHelp;
  text += "  --json-values\n" + wrapped(
                                    "Read values of free-form keys (--model-params."
                                    "chat-template-kwargs.KEY) as JSON, so that false is a "
                                    "bool. Without it they are text, as in the reference.",
                                    "        ");
  for (const Group& group : kGroups) {
    text += group_help(group);
  }
  return text + inert_help();
}

std::string from_config_help() {
  std::string text = "usage: tutti benchmark from-config --config FILE [flags]\n\n";
  text += wrapped(
      "Runs the benchmark a YAML file describes. `tutti init concurrency` writes one to "
      "start from, `tutti validate-yaml -c FILE` checks one, docs/config.md describes "
      "every field.",
      "");
  text += "\nCommand:\n";
  text += "  -c, --config FILE\n        The file. [required]\n";
  text += kModeHelp;
  text += flag_help(*config_schema().find("settings.timeouts.run_timeout_s"));
  text += flag_help(*config_schema().find("report_dir"));
  const auto* agents = std::find_if(kGroups.begin(), kGroups.end(), [](const Group& group) {
    return group.section == "distributed";
  });
  return text + group_help(*agents);
}

}  // namespace tutti::spec
