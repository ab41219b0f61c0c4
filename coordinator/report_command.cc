// report --from-spools: a run folder from what the agents kept, when the coordinator was lost.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "common/spec/read.h"
#include "common/sys/process.h"
#include "coordinator/commands.h"
#include "coordinator/report/rebuild.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_folder.h"
#include "coordinator/scoring.h"
#include "coordinator/token_counting.h"

namespace tutti {
namespace {

using base::ExitCode;

struct Asked {
  std::vector<std::string> spools;
  std::string folder;
  std::string run;
  std::string config;
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
    } else if (word == "--config" && has_value && out.config.empty()) {
      out.config = words[++i];
    } else {
      const bool known = word == "--from-spools" || word == "--report-dir" || word == "--run" ||
                         word == "--config";
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
         "                                  [--config FILE]\n"
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
         "  --config FILE       the run's config.yaml, to score its accuracy data sets or turns "
         "of\n"
         "                      conversations; the data sets must be here (default: the one in "
         "the\n"
         "                      report folder)\n"
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

// The config whose data sets have the right answers, or the recorded turns; nothing: the run asked
// none, or it is not here, which is not said twice.
static base::Result<std::optional<spec::Config>> config_to_score(
    const Asked& asked, const report::SpoolSurvey& survey) {
  const auto& phases = survey.planned.phases;
  const bool asks = std::any_of(phases.begin(), phases.end(), [](const report::PhaseFacts& phase) {
    return phase.kind == base::PhaseKind::kAccuracy ||
           (phase.plays && phase.kind == base::PhaseKind::kPerformance);
  });
  const std::string path = asked.config.empty() ? asked.folder + "/config.yaml" : asked.config;
  if (asked.config.empty() && (!asks || !std::filesystem::exists(path))) {
    if (asks) {
      base::log_warning("report", fmt::format("accuracy, or turns of conversations, are not "
                                              "scored: {} is not there; give the run's "
                                              "config.yaml with --config",
                                              path));
    }
    return std::nullopt;
  }
  if (!asks) {
    base::log_warning(
        "report", "the run has no accuracy data set and no conversations: --config is not needed");
    return std::nullopt;
  }
  // Nobody is asked: the key that a written config has not got is not wanted.
  spec::Tree endpoint = spec::Tree::map();
  endpoint.set("api_key", spec::Tree());
  spec::Tree overlay = spec::Tree::map();
  overlay.set("endpoint_config", std::move(endpoint));
  const auto reading = spec::read_config_file(path, spec::process_environment, overlay);
  if (!reading) {
    return base::fail(ExitCode::kInput, fmt::format("{} cannot be read:\n{}", path,
                                                    spec::to_text(reading.error().problems)));
  }
  return reading->config;
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
  const auto config = config_to_score(*asked, *survey);
  if (!config) {
    return fail_with(config.error(), ExitCode::kInput);
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
  auto made = report::make_report(rebuilt->facts, rebuilt->ledger, verdict::Rules{},
                                  counts ? &*counts : nullptr);
  if (!made) {
    return fail_with(made.error(), ExitCode::kSetup);
  }
  if (*config) {
    Scores scores = score_rebuilt(**config, *rebuilt);
    made->accuracy = std::move(scores.entries);
    made->turn_scores = std::move(scores.turns);
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
