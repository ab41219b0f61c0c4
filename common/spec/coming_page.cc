// docs/coming-from-inference-endpoint.md, made from the schema and the list of decisions below;
// tests/golden keeps the committed page and this file together.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "common/spec/dump.h"
#include "common/spec/legacy.h"
#include "common/spec/schema.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kIntroduction = R"(# Coming from inference-endpoint

<!-- Generated from the schema table and common/spec/coming_page.cc. Do not edit: change those, run
     the spec golden test with TUTTI_UPDATE_GOLDEN=1, commit both. -->

Scripts and YAML files for the MLPerf reference client stay as they are; the binary changes. An
installation has the name `inference-endpoint` too, a link to `tutti`. Commands, flags, exit codes
and the log lines that scripts look for are the reference's; `tests/conformance/config` holds them
as cases, each with what it comes to. A run is a rehearsal all the same: results of a submission
come from the reference client only, and reports say so.

What is different falls into four lists: what is refused, what is read and has no effect, old names,
and decisions. Nothing is ignored without a word.

## Refused by name

)";

// The choices where the reference's behaviour looks like a slip, or where both ways can be argued.
struct Decision {
  std::string_view topic;
  std::string_view ours;
};

constexpr Decision kDecisions[] = {
    {"`samples` of a data set", "applied: the first N rows; there it is read and not used"},
    {"a file called like a predefined set (`gpqa.jsonl`)",
     "the file is used; no name hijacks a path that is given"},
    {"types of JSON values", "kept as they are; no guessing of numbers in columns of text"},
    {"a file with `text_input` and no `prompt`", "the column is taken as the prompt"},
    {"files with `messages` only", "accepted"},
    {"lines of a stream that end in CRLF", "accepted, like every line end the format allows"},
    {"a row that cannot be sent",
     "is refused before the run, with its row; there it times out without a word"},
    {"streams cut by the connection",
     "failed queries, counted by cause (docs/decisions/004); there they are successes"},
    {"`{\"error\": …}` within a stream", "a failed query, counted by cause; there it is a success"},
    {"an endpoint that already ends in `/v1`", "the path is doubled as there, with a warning"},
    {"spellings of flags",
     "every dotted path, with and without `settings.`, beside the flat names"},
    {"bare `--early-stopping`, `--steady-state`, `--drain`", "accepted"},
    {"secrets in logs", "redacted, as in the written config"},
    {"accuracy data that cannot be loaded", "exit code 2 or 3 with a sentence, no traceback"},
    {"a scorer that fails",
     "cannot be: scorers are part of the program and total; a data set that was not reached has "
     "`score: null`, `complete: false`"},
    {"values of `--model-params.chat-template-kwargs.KEY`",
     "text as there; JSON literals with `--json-values`, the one switch that changes a request"},
    {"`probe` of several endpoints", "works: the queries are dealt round"},
    {"`probe` of `openai_completions` and `sglang`",
     "works; sglang is sent the ids of the prompt by the model's tokenizer (`--tokenizer`)"},
    {"SGLang meta fields that are null", "mean not said; they never fail a reply"},
    {"old names of fields and flags", "accepted with a warning (below)"},
    {"unquoted `streaming: on`", "means `'on'`; likewise `off`"},
};

void add_rows(const Schema& schema, Support support, std::string& page) {
  const std::string root = &schema == &config_schema() ? "" : "datasets[].";
  for (const Row& row : schema.rows()) {
    if (row.support == support) {
      page += fmt::format("- `{}{}`: {}.\n", root, row.path, row.instead);
    } else if (support == Support::kRefused && !row.later.empty()) {
      page +=
          fmt::format("- `{}{}`: {}; {}.\n", root, row.path, joined(row.later, ", "), row.instead);
    }
  }
}

void add_both(Support support, std::string& page) {
  add_rows(config_schema(), support, page);
  add_rows(dataset_schema(), support, page);
}

}  // namespace

std::string coming_from_markdown() {
  std::string page(kIntroduction);
  add_both(Support::kRefused, page);
  page +=
      "\nScorers that are programs of their own are refused when a run begins, each with what to "
      "do instead\n(`docs/accuracy.md`).\n\n## Read, without effect\n\nA value other than the "
      "default draws a warning.\n\n";
  add_both(Support::kInert, page);
  page += "\n## Old names\n\nTaken with a warning each; the written config has today's.\n\n";
  for (const OldName& name : old_names()) {
    page += fmt::format("- `{}` → `{}`\n", name.old_path, name.new_path);
  }
  page += "\n## Decisions\n\n| What | Here |\n|---|---|\n";
  for (const Decision& decision : kDecisions) {
    page += fmt::format("| {} | {} |\n", decision.topic, decision.ours);
  }
  page +=
      "\nAlso: `client.num_workers: -1` stays -1 in written files, so that they are the same on "
      "every host; accuracy data\nsets are not issued in `--mode perf`; a seed below zero counts "
      "by its magnitude, as the generators there take it; a\nrun whose every query failed ends "
      "with "
      "4, there with 0; a redacted `config.yaml` is refused "
      "until its key is put back.\n";
  return page;
}

}  // namespace tutti::spec
