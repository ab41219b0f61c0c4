// report --from-spools: a run folder from what the agents kept, when the coordinator was lost.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "common/base/log.h"
#include "common/sys/process.h"
#include "coordinator/commands.h"
#include "coordinator/report/rebuild.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_folder.h"
#include "coordinator/token_counting.h"

namespace tutti {
namespace {

using base::ExitCode;

struct Asked {
  std::vector<std::string> spools;
  std::string folder;
  std::string run;
};

bool is_run_id(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

base::Result<Asked> read_words(const Words& words) {
  Asked out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool has_value = i + 1 < words.size() && words[i + 1].rfind("--", 0) != 0;
    if (word == "--from-spools" && has_value) {
      while (i + 1 < words.size() && words[i + 1].rfind("--", 0) != 0) {
        out.spools.push_back(words[++i]);
      }
    } else if (word == "--report-dir" && has_value && out.folder.empty()) {
      out.folder = words[++i];
    } else if (word == "--run" && has_value && out.run.empty()) {
      out.run = words[++i];
    } else {
      const bool known = word == "--from-spools" || word == "--report-dir" || word == "--run";
      return base::fail(ExitCode::kUsage, known ? fmt::format("{} needs a value, once", word)
                                                : fmt::format("report knows no \"{}\"", word));
    }
  }
  if (out.spools.empty()) {
    return base::fail(ExitCode::kUsage,
                      "report needs --from-spools with the agents' spool folders");
  }
  if (!out.run.empty() && !is_run_id(out.run)) {
    return base::fail(ExitCode::kUsage,
                      fmt::format("--run \"{}\" is not a run's id of 32 hex digits", out.run));
  }
  return out;
}

base::Status open_folder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder + "/report.txt", error)) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("{} holds a report already; give another --report-dir", folder));
  }
  std::filesystem::create_directories(folder, error);
  if (error) {
    return base::fail(ExitCode::kSetup, fmt::format("report folder {}: {}; give another with "
                                                    "--report-dir",
                                                    folder, error.message()));
  }
  return {};
}

// The data set is not at hand, so the event file quotes no prompt.
class NoPrompts final : public report::PromptSource {
 public:
  void prompt(std::uint32_t /*phase*/, base::Seq /*seq*/, base::SampleIndex /*sample*/,
              report::Prompt& out) const override {
    out = {};
  }
};

ExitCode fail_with(const base::Error& error, ExitCode code) {
  base::log_error("report", error.message);
  return code;
}

}  // namespace

std::string report_help() {
  return "Usage: tutti report --from-spools DIR… [--run ID] [--report-dir OUT]\n"
         "\n"
         "Rebuilds the run folder of a run whose coordinator was lost, from the spool folders of "
         "its\n"
         "agents (tutti-agent --spool-dir; on several hosts: copy them here first). Give all of "
         "them.\n"
         "The same spool twice counts once; damaged places are stepped over and named.\n"
         "\n"
         "  --from-spools DIR…  spool folders, or single .spool files\n"
         "  --run ID            which run, when the folders hold several\n"
         "  --report-dir OUT    folder to write; may be the lost run's own, which then has its\n"
         "                      config.yaml (default: rebuilt_ and the run's id in the temporary "
         "folder)\n"
         "\n"
         "The report is marked INVALID. Which queries the coordinator had given out and nobody "
         "recorded\n"
         "is not in any spool: the report says so and counts only records. Nothing is deleted.\n"
         "\n"
         "Exit codes: 4 rebuilt (the run is INVALID), 1 usage, 2 no spool of one run is there, 3 "
         "the\n"
         "folder cannot be written.\n";
}

// As the run would have counted them: what its agents counted, and the rest where the same
// tokenizer is on this host. Prompts are in no spool: only replies are counted.
static std::optional<report::TokenCounts> count_rebuilt(const report::Rebuilt& run) {
  const report::ConfigFacts& config = run.facts.config;
  if (config.token_source != report::TokenSource::kTokenizer) {
    return std::nullopt;
  }
  const auto here = open_tokenizer(config.tokenizer, false);
  const bool same = here && (config.model_hash.empty() || here->hash == config.model_hash);
  if (!same) {
    base::log_warning(
        "report", "tokens are not counted here: " +
                      (here ? fmt::format("the files of {} on this host are not those of the run",
                                          config.tokenizer)
                            : here.error().message));
    if (run.ledger.token_counts() == 0) {
      return std::nullopt;
    }
  }
  CountingTerms terms;
  terms.threads = sys::usable_cores();
  return count_tokens(same ? &here->counter : nullptr, run.facts, run.ledger, nullptr, terms,
                      base::SystemClock());
}

ExitCode report_command(const Words& words) {
  auto asked = read_words(words);
  if (!asked) {
    return usage_error(asked.error().message, "report");
  }
  const auto survey = report::survey_spools(asked->spools, asked->run);
  if (!survey) {
    return fail_with(survey.error(), ExitCode::kInput);
  }
  const std::string id = survey->planned.run.hex();
  if (asked->folder.empty()) {
    asked->folder = (std::filesystem::temp_directory_path() / ("rebuilt_" + id)).string();
  }
  if (const auto status = open_folder(asked->folder); !status) {
    return fail_with(status.error(), ExitCode::kSetup);
  }
  base::log_info("report",
                 fmt::format("run {}: rebuilding from the spools of {} of {} agents", id,
                             survey->agents.size(),
                             std::max(survey->planned.agents.size(), survey->agents.size())));
  const auto rebuilt = report::rebuild(*survey, asked->folder);
  if (!rebuilt) {
    return fail_with(rebuilt.error(), ExitCode::kSetup);
  }
  const auto counts = count_rebuilt(*rebuilt);
  const auto made = report::make_report(rebuilt->facts, rebuilt->ledger, verdict::Rules{},
                                        counts ? &*counts : nullptr);
  if (!made) {
    return fail_with(made.error(), ExitCode::kSetup);
  }
  const auto status = report::write_run_folder(*made, rebuilt->ledger, NoPrompts{}, asked->folder);
  std::fputs(("\n" + report::console_text(*made) + "\n").c_str(), stdout);
  std::fputs(fmt::format("Run folder: {}\n", asked->folder).c_str(), stdout);
  std::fflush(stdout);
  if (!status) {
    return fail_with(status.error(), ExitCode::kSetup);
  }
  return made->verdict.exit_code;
}

}  // namespace tutti
