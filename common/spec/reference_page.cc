// docs/config.md, made from the schema; tests/golden keeps the committed page and this file
// together.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "common/spec/dump.h"
#include "common/spec/flag_names.h"
#include "common/spec/legacy.h"
#include "common/spec/schema.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kIntroduction = R"(# Configuration

<!-- Generated from the schema table (common/spec/schema_*.cc). Do not edit: change the table, run
     the spec golden test with TUTTI_UPDATE_GOLDEN=1, commit both. -->

The file is the YAML of the MLPerf reference client `inference-endpoint`, read the way that client
reads it; the block `distributed` is ours. Every field outside `datasets` is also a flag of `tutti
benchmark offline` and `tutti benchmark online`.

## How a file is read

- **Types are YAML 1.1.** `on`, `off`, `yes`, `no` without quotes are bools; `010` is 8; `1:30` is
  90; `1e5` is text (and becomes a number where one is wanted), `1.0e+5` a float. A text field
  takes text only: write `version: "1.0"`, not `version: 1.0`.
- **Lenient where it is safe.** `"5"`, `5.0` and `"1_000"` are whole numbers; `"yes"` and `1` are
  bools.
- **The environment** fills string values: `${NAME}`, `$NAME`, `${NAME:-default}`. `$$` is one
  dollar. A variable that is not set and has no default is an error. Keys are never touched.
- **Durations** (`*_issue_duration_ms`) are milliseconds, or `500ms`, `30s`, `1.5m`. All other
  times are seconds, or named otherwise.
- **Unknown keys are errors**, with a suggestion. Of duplicate keys the last one counts, with a
  warning.
- **All mistakes are reported at once**, each with file, line, field, value and what would be
  right.
- **Limits**: 4 MiB, 64 levels, 100,000 values, one document.

On a command line a flag is the field's dotted path in kebab or snake case, with or without
`settings.`, or one of the names below. `--flag value` and `--flag=value` are the same; a bool is
`--flag`, `--no-flag` or `--flag=false`; a list flag is repeated (`--agents` also splits at
commas); a section takes a JSON mapping (`--runtime '{"n_samples_to_issue": 100}'`).

Fields marked **no effect** are accepted so that the reference's files load; a value other than
the default draws a warning. Fields marked **not yet** are refused unless they have their default.
)";

constexpr std::string_view kDatasetText = R"(
A data set may also be one line of text, in `datasets` or as `--dataset`:

    [perf|acc:]PATH[,KEY=VALUE]*

The line is split at every comma; keys are dotted paths of the fields below, values are typed like
the file's, later keys win. Examples: `data.jsonl`, `acc:eval.jsonl`,
`d.jsonl,samples=500,parser.prompt=article`. In this form `parser` may rename to `prompt` and
`system` only.
)";

std::string cell(std::string text) {
  std::string result;
  for (const char c : text) {
    result += c == '|' ? "\\|" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return result;
}

std::string meaning(const Row& row) {
  std::string text = row.help;
  const std::string bounds = bounds_text(row);
  if (!bounds.empty()) {
    text += fmt::format(" Must be {}.", bounds);
  }
  if (row.support == Support::kInert) {
    text += fmt::format(" **No effect**: {}.", row.instead);
  } else if (row.support == Support::kRefused) {
    text += fmt::format(" **Not yet**: {}.", row.instead);
  } else if (!row.later.empty()) {
    text += fmt::format(" **Not yet**: {}; {}.", joined(row.later, ", "), row.instead);
  }
  if (row.is_secret()) {
    text += " Never written or logged.";
  }
  return cell(text);
}

std::string flags_of(const Schema& schema, const Row& row) {
  if (&schema != &config_schema() || row.kind == FieldKind::kIgnored ||
      row.kind == FieldKind::kDatasets || row.path == "type" || row.path == "version" ||
      row.path == "verbose") {
    return "";  // said by the command word, or by global flags
  }
  std::vector<std::string> names = flag_aliases(row);
  names.insert(names.begin(), flag_name(row));
  for (std::string& name : names) {
    name = fmt::format("`--{}`", name);
  }
  return joined(names, ", ");
}

void add_table(const Schema& schema, const std::vector<const Row*>& rows, std::string& page) {
  const bool has_flags = &schema == &config_schema();
  page += has_flags ? "\n| Field | Type | Default | Flags | Meaning |\n|---|---|---|---|---|\n"
                    : "\n| Field | Type | Default | Meaning |\n|---|---|---|---|\n";
  for (const Row* row : rows) {
    const std::string initial = default_text(schema, *row);
    page += fmt::format("| `{}` | {} | {} |", leaf_of(row->path), cell(type_text(*row)),
                        initial.empty() ? "" : cell(fmt::format("`{}`", initial)));
    page += has_flags ? fmt::format(" {} |", flags_of(schema, *row)) : "";
    page += fmt::format(" {} |\n", meaning(*row));
  }
}

void add_section(const Schema& schema, const std::string& section, const std::string& title,
                 std::string& page) {
  std::vector<const Row*> rows;
  std::vector<const Row*> sections;
  for (const Row* row : schema.children(section)) {
    (row->kind == FieldKind::kSection ? sections : rows).push_back(row);
  }
  if (const Row* head = schema.find(section); head != nullptr) {
    page += fmt::format("\n## `{}`\n\n{}\n", title, meaning(*head));
  }
  if (!rows.empty()) {
    add_table(schema, rows, page);
  }
  const std::string prefix = schema.find(section) == nullptr ? title : title + ".";
  for (const Row* row : sections) {
    add_section(schema, row->path, prefix + std::string(leaf_of(row->path)), page);
    if (row->path == "model_params") {
      page += fmt::format("\n## `datasets[]`\n{}", kDatasetText);
      add_section(dataset_schema(), "", "datasets[].", page);
    }
  }
}

void add_old_names(std::string& page) {
  page +=
      "\n## Old names\n\nNames of earlier versions of the reference client. They are accepted "
      "with a warning; files are written\nwith today's names only.\n\n"
      "| Old | Today |\n|---|---|\n";
  for (const OldName& name : old_names()) {
    std::string note;
    if (name.rule != OldName::Rule::kCopy) {
      note = "; 0 becomes null";
    }
    if (name.rule == OldName::Rule::kOnlyPoisson) {
      note += "; dropped unless the run is Poisson with a `target_qps`";
    }
    page += fmt::format("| `{}` | `{}`{} |\n", name.old_path, name.new_path, note);
  }
}

}  // namespace

std::string config_reference_markdown() {
  std::string page(kIntroduction);
  page += "\n## Top level\n";
  add_section(config_schema(), "", "", page);
  add_old_names(page);
  return page;
}

}  // namespace tutti::spec
