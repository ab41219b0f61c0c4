// srt mlperf: srt-slurm's benchmark command, natively: what its driver script for MLPerf clients
// does around one, from the same variables to the same files.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <CLI/CLI.hpp>

#include "common/base/log.h"
#include "common/base/time.h"
#include "common/spec/read.h"
#include "common/spec/yaml_text.h"
#include "common/spec/yaml_writer.h"
#include "coordinator/commands.h"
#include "coordinator/launch/nginx_servers.h"
#include "coordinator/launch/srt.h"
#include "coordinator/report/atomic_file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

using base::ExitCode;

// The key of the client's config travels in our own environment, so that no copy of it is left in
// a log folder.
constexpr const char* kKeyVariable = "TUTTI_SRT_API_KEY";

struct SrtOptions {
  std::string logs = "/logs";
  std::string frontends = "env";
  Words more;  // for `benchmark from-config`
};

void describe(CLI::App& app, SrtOptions& options) {
  app.add_option("--logs", options.logs, "srt-slurm's log folder")->capture_default_str();
  app.add_option("--frontends", options.frontends,
                 "env: MLPERF_ENDPOINTS, else SRT_FRONTEND_HOST and _PORT; nginx: the servers "
                 "behind it, from nginx.conf in the log folder")
      ->check(CLI::IsMember({"env", "nginx"}))
      ->capture_default_str();
}

base::Result<std::string> text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    return base::fail(ExitCode::kUsage, fmt::format("{} cannot be read", path));
  }
  return text.str();
}

base::Result<std::vector<std::string>> frontends_of(const SrtOptions& options) {
  if (options.frontends == "env") {
    return launch::srt_frontends(spec::process_environment);
  }
  const auto config = text_of(options.logs + "/nginx.conf");
  if (!config) {
    return tl::unexpected(config.error());
  }
  auto servers = launch::nginx_servers(*config);
  if (!servers) {
    return base::fail(ExitCode::kUsage,
                      fmt::format("{}/nginx.conf: {}", options.logs, servers.error().message));
  }
  return launch::with_scheme(*servers);
}

// The client's config with endpoints and report_dir replaced, everything else as it is written.
base::Result<std::string> resolved_config(const std::string& path,
                                          const std::vector<std::string>& endpoints,
                                          const std::string& report_dir) {
  const auto text = text_of(path);
  if (!text) {
    return tl::unexpected(text.error());
  }
  base::Problems problems;
  base::Problems warnings;
  spec::Tree tree = spec::tree_from_yaml(*text, path, problems, warnings);
  if (!problems.empty() || !tree.is_map()) {
    return base::fail(ExitCode::kInput, problems.empty()
                                            ? fmt::format("{}: is no mapping", path)
                                            : "Config error:\n" + spec::to_text(problems));
  }
  for (const auto& warning : warnings) {
    base::log_warning("config", spec::to_text(warning));
  }
  const spec::Tree* given = tree.find("endpoint_config");
  spec::Tree block = given != nullptr && given->is_map() ? *given : spec::Tree::map();
  spec::Tree list = spec::Tree::list();
  for (const auto& url : endpoints) {
    list.items.push_back(spec::Tree::of_string(url));
  }
  block.set("endpoints", std::move(list));
  const spec::Tree* key = block.find("api_key");
  if (key != nullptr && key->kind == spec::Tree::Kind::kString && !key->text.empty() &&
      key->text.find('$') == std::string::npos) {
    setenv(kKeyVariable, key->text.c_str(), 1);
    block.set("api_key", spec::Tree::of_string(fmt::format("${{{}}}", kKeyVariable)));
  }
  tree.set("endpoint_config", std::move(block));
  tree.set("report_dir", spec::Tree::of_string(report_dir));
  return spec::to_yaml(tree);
}

std::optional<text::JsonValue> json_at(const std::string& path) {
  const auto text = fs::exists(path) ? text_of(path) : base::Result<std::string>("");
  if (!text || text->empty()) {
    return std::nullopt;
  }
  auto value = text::read_json(*text);
  return value && value->is_object() ? std::optional(std::move(*value)) : std::nullopt;
}

std::vector<std::string> files_under(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->is_regular_file(error)) {
      out.push_back(fs::relative(at->path(), folder).generic_string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// benchmark-rollup.json at every stage: a killed run leaves the newest.
class Rollup {
 public:
  Rollup(std::string path, launch::RollupFacts facts)
      : path_(std::move(path)), facts_(std::move(facts)) {}

  void starting() { write("starting"); }
  void running(const report::PhaseFacts& phase, std::uint64_t stored, std::uint64_t failed) {
    const double elapsed_s = (clock_.mono() - phase.start_at).to_seconds();
    facts_.live = launch::LiveCounts{phase.name, stored, failed, std::max(0.0, elapsed_s)};
    write("running");
  }
  void ended(ExitCode code) {
    const std::string& folder = facts_.report_dir;
    facts_.exit_code = static_cast<std::int64_t>(code);
    facts_.live.reset();
    facts_.summary = json_at(folder + "/performance/result_summary.json");
    facts_.accuracy = json_at(folder + "/accuracy/accuracy_results.json");
    facts_.report_files = files_under(folder);
    write("ended");
  }

 private:
  void write(const std::string& state) {
    facts_.state = state;
    facts_.timestamp = launch::utc_seconds(clock_.wall_unix_ns());
    // While the run lasts its loop writes this, and must not wait for a slow disk.
    const std::string json = launch::rollup_json(facts_);
    const auto status =
        facts_.live ? report::replace_quickly(path_, json) : report::write_atomically(path_, json);
    if (!status) {
      base::log_warning("srt", status.error().message);
    }
  }

  std::string path_;
  launch::RollupFacts facts_;
  base::SystemClock clock_;
};

ExitCode fail_with(const base::Error& error) {
  base::log_error("srt", error.message);
  return error.code;
}

// A finished report is not overwritten by a job that Slurm has put back and started again.
base::Status check_restart(const std::string& report_dir) {
  const auto count = spec::process_environment("SLURM_RESTART_COUNT");
  if (count && *count != "0" &&
      (fs::exists(report_dir + "/performance/result_summary.json") ||
       fs::exists(report_dir + "/accuracy/accuracy_results.json"))) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("this job was restarted (SLURM_RESTART_COUNT={}) and {} holds a "
                                  "finished report: move it away, or submit with --no-requeue",
                                  *count, report_dir));
  }
  return {};
}

ExitCode mlperf(const SrtOptions& options) {
  const auto environment = spec::process_environment;
  const std::string config = environment("MLPERF_CLIENT_CONFIG").value_or("");
  std::error_code error;
  if (config.empty() || !fs::is_regular_file(config, error)) {
    return fail_with({ExitCode::kUsage,
                      fmt::format("MLPERF_CLIENT_CONFIG: \"{}\" is no file; set it to the client's "
                                  "YAML as this container sees it",
                                  config)});
  }
  if (config.rfind("/configs/", 0) == 0) {
    base::log_warning("srt", config + ": /configs is srt-slurm's own; mount yours elsewhere");
  }
  const std::string mode = environment("MLPERF_MODE").value_or("both");
  if (mode != "perf" && mode != "acc" && mode != "both") {
    return fail_with(
        {ExitCode::kUsage, fmt::format("MLPERF_MODE: \"{}\" must be perf, acc or both", mode)});
  }
  const auto frontends = frontends_of(options);
  if (!frontends) {
    return fail_with(frontends.error());
  }
  const std::string report_dir = options.logs + "/mlperf";
  if (auto status = check_restart(report_dir); !status) {
    return fail_with(status.error());
  }
  const std::string resolved = report_dir + "/client_config_resolved.yaml";
  const auto yaml = resolved_config(config, *frontends, report_dir);
  if (!yaml) {
    return fail_with(yaml.error());
  }
  if (auto status = report::write_atomically(resolved, *yaml); !status) {
    return fail_with(status.error());
  }
  chmod(resolved.c_str(), 0600);
  const std::string node = environment("SLURMD_NODENAME").value_or("this host");
  base::log_info("srt",
                 fmt::format("client on {}, frontends {}", node, fmt::join(*frontends, ", ")));

  launch::RollupFacts facts;
  facts.mode = mode;
  facts.client_config = config;
  facts.report_dir = report_dir;
  facts.endpoints = *frontends;
  Rollup rollup(options.logs + "/benchmark-rollup.json", std::move(facts));
  rollup.starting();
  Words words{"from-config", "-c", resolved, "--mode", mode};
  words.insert(words.end(), options.more.begin(), options.more.end());
  const ExitCode code = watched_benchmark(
      words, [&rollup](const report::PhaseFacts& phase, std::uint64_t stored,
                       std::uint64_t failed) { rollup.running(phase, stored, failed); });
  rollup.ended(code);
  return code;
}

}  // namespace

std::string srt_help() {
  SrtOptions options;
  CLI::App app;
  app.set_help_flag();
  describe(app, options);
  const std::string text = app.help();
  return "Usage: tutti srt mlperf [OPTIONS] [-- FLAGS of benchmark from-config]\n"
         "\n"
         "srt-slurm's benchmark command, in place of its driver script for MLPerf clients. Reads\n"
         "MLPERF_CLIENT_CONFIG (required), MLPERF_MODE (both), MLPERF_ENDPOINTS or "
         "SRT_FRONTEND_HOST\n"
         "and _PORT; writes mlperf/ and benchmark-rollup.json into the log folder, the rollup from "
         "the\n"
         "start on, so that a killed run leaves one. SRT_SERVICE_AGENTS_IPS (a pool service named\n"
         "agents that runs `tutti-agent --listen`; port: TUTTI_AGENT_PORT, 5870) and\n"
         "SRT_MEASUREMENT_WINDOW_DIR count for every `tutti benchmark`.\n"
         "\n" +
         text.substr(text.find("Options:"));
}

ExitCode srt_command(const Words& words) {
  if (words.empty() || words[0] != "mlperf") {
    return usage_error(fmt::format("srt needs mlperf, got \"{}\"", words.empty() ? "" : words[0]),
                       "srt");
  }
  const auto dashes = std::find(words.begin(), words.end(), "--");
  SrtOptions options;
  options.more.assign(dashes == words.end() ? dashes : dashes + 1, words.end());
  Words own(words.begin() + 1, dashes);
  std::reverse(own.begin(), own.end());  // as CLI11 takes a vector
  CLI::App app;
  describe(app, options);
  try {
    app.parse(own);
  } catch (const CLI::ParseError& e) {
    return usage_error(e.what(), "srt");
  }
  return mlperf(options);
}

}  // namespace tutti
