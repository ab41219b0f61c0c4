// benchmark offline | online | from-config: one run, one folder, one verdict.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "common/base/time.h"
#include "common/model/chat_template.h"
#include "common/spec/dump.h"
#include "common/spec/flags.h"
#include "common/spec/redact.h"
#include "common/sys/process.h"
#include "common/sys/signals.h"
#include "coordinator/audit.h"
#include "coordinator/commands.h"
#include "coordinator/conduct/reach.h"
#include "coordinator/launch/srt.h"
#include "coordinator/measurement_window.h"
#include "coordinator/report/atomic_file.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_folder.h"
#include "coordinator/run_setup.h"
#include "coordinator/scoring.h"
#include "coordinator/token_counting.h"

namespace tutti {
namespace {

using base::ExitCode;

ExitCode fail_with(const base::Error& error) {
  base::log_error("benchmark", error.message);
  return error.code;
}

// <temp>/reports_YYYYmmdd_HHMMSS, local time, as the reference does.
std::string default_folder(const base::Clock& clock) {
  const std::time_t now = clock.wall_unix_ns() / 1'000'000'000;
  std::tm local{};
  localtime_r(&now, &local);
  char name[64];
  std::strftime(name, sizeof name, "reports_%Y%m%d_%H%M%S", &local);
  return (std::filesystem::temp_directory_path() / name).string();
}

base::Result<std::string> open_folder(const spec::Config& config, const base::Clock& clock) {
  const std::string folder = config.report_dir.value_or(default_folder(clock));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("report folder {}: {}; give another with --report-dir", folder,
                                  error.message()));
  }
  if (auto status = report::write_atomically(folder + "/config.yaml", spec::config_yaml(config));
      !status) {
    return tl::unexpected(status.error());
  }
  return folder;
}

// The reference's line, Python's spelling of the values included: scripts read it.
std::string mode_line(const spec::Order& order) {
  static constexpr const char* kNames[] = {"PERF", "ACC", "BOTH"};
  const auto& qps = order.config.settings.load_pattern.target_qps;
  const std::string rate = !qps                                      ? "None"
                           : *qps == std::floor(*qps) && *qps < 1e15 ? fmt::format("{:.1f}", *qps)
                                                                     : fmt::format("{}", *qps);
  return fmt::format("Mode: TestMode.{}, Target QPS: {}, Responses: {}",
                     kNames[static_cast<std::size_t>(order.mode)], rate,
                     order.mode == spec::RunMode::kPerf ? "False" : "True");
}

void say_what_runs(const spec::Order& order, const conduct::RunInput& input,
                   const conduct::HostSettings& settings) {
  const spec::Config& config = order.config;
  const bool streaming = config.model_params.streaming == spec::Streaming::kOn;
  base::log_info("benchmark", "tutti " TUTTI_VERSION
                              ", not the MLPerf reference client: this run is a rehearsal");
  base::log_info("benchmark",
                 fmt::format("Streaming: {}", streaming ? "enabled (on)" : "disabled (off)"));
  const auto say_dataset = [](const char* what, const data::Dataset& dataset) {
    base::log_info("benchmark",
                   fmt::format("{}: {} rows from {}", what, dataset.rows.size(), dataset.path));
  };
  if (!input.dataset.rows.empty()) {
    say_dataset("Data set", input.dataset);
  }
  for (const auto& each : input.accuracy) {
    say_dataset("Accuracy data set", each.dataset);
  }
  for (const auto& note : input.notes) {
    base::log_info("benchmark", note);
  }
  const spec::Warmup& warmup = config.settings.warmup;
  if (warmup.enabled && !warmup.salt && order.mode != spec::RunMode::kAcc) {
    base::log_warning("benchmark",
                      "warm-up without salt: the server's prefix cache will know the measured "
                      "prompts; settings.warmup.salt (--warmup-salt) keeps them apart");
  }
  for (const auto& phase : input.phases) {
    base::log_info("benchmark", fmt::format("Phase {}: {} queries", phase.name, phase.spec.total));
  }
  base::log_info("benchmark", mode_line(order));
  base::log_info("benchmark",
                 fmt::format("Connecting: ['{}']", fmt::join(settings.frontends, "', '")));
  base::log_info("benchmark", fmt::format("Agents: {} ({} started here)",
                                          settings.plan.agents_expected, settings.local_agents));
}

// A full disk must not take the result along: what the run folder does not take goes elsewhere.
base::Status write_or_rescue(const report::Report& report, const report::PromptSource& prompts,
                             const ledger::Ledger& ledger, const std::string& folder) {
  const auto status = report::write_run_folder(report, ledger, prompts, folder);
  if (status) {
    return {};
  }
  const std::string rescue = (std::filesystem::temp_directory_path() /
                              ("tutti-rescued-" + report.facts.run.hex().substr(0, 8)))
                                 .string();
  const auto rescued = report::write_run_folder(report, ledger, prompts, rescue);
  return base::fail(ExitCode::kExecution,
                    fmt::format("{}; {}", status.error().message,
                                rescued ? "all files of the run are in " + rescue
                                        : "nor elsewhere: " + rescued.error().message));
}

struct Counter {
  std::optional<RunTokenizer> tokens;  // nothing: none are counted by a tokenizer
  sys::StopSignals& signals;           // end the counting
};

report::TokenCounts count_with(const Counter& counter, const spec::Config& config,
                               const conduct::RunInput& input, const report::RunFacts& facts,
                               const ledger::Ledger& ledger) {
  const base::SystemClock clock;
  CountingTerms terms = counting_terms(config);
  terms.interrupted = [&counter] { return counter.signals.take().has_value(); };
  const base::Instant began_at = clock.mono();
  auto counts = count_tokens(&counter.tokens->counter, facts, ledger, &input, terms, clock);
  base::log_info(
      "tokens",
      fmt::format("{} prompts and {} replies counted in {:.1f} s{}{}", counts.prompts,
                  counts.replies, (clock.mono() - began_at).to_seconds(),
                  counts.by_agents > 0
                      ? fmt::format(", {} of the replies before, by the agents", counts.by_agents)
                      : "",
                  counts.pending > 0 ? fmt::format("; {} queries pending", counts.pending) : ""));
  return counts;
}

// What an audit changes of a run, and wants of it.
struct Twist {
  std::optional<std::int64_t> single_row;  // every query asks this one
  std::int64_t rows_min = 0;               // the data set must have
  report::Summary summary = {};            // out: of a run that started a phase
};

// kSetup when the data set has not what the audit asks for.
base::Status apply_twist(const Twist& twist, conduct::RunInput& input) {
  const auto rows = static_cast<std::int64_t>(input.dataset.rows.size());
  if (twist.rows_min > rows) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("audit.samples {} is more than the {} rows of the data set",
                                  twist.rows_min, rows));
  }
  if (!twist.single_row) {
    return {};
  }
  if (*twist.single_row >= rows) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("audit.sample_index {} is no row of the data set's {}",
                                  *twist.single_row, rows));
  }
  for (auto& phase : input.phases) {
    phase.spec.order = plan::OrderKind::kSingle;
    phase.spec.single_row = static_cast<base::SampleIndex>(*twist.single_row);
  }
  return {};
}

LengthTerms length_terms(const spec::Config& config, const Counter& counter) {
  LengthTerms out;
  out.counter = counter.tokens ? &counter.tokens->counter : nullptr;
  out.threads = counting_terms(config).threads;
  out.interrupted = [&counter] { return counter.signals.take().has_value(); };
  return out;
}

// Report and folder of a run that started a phase; the verdict's exit code.
ExitCode report_run(const spec::Config& config, const conduct::RunInput& input,
                    const conduct::HostSettings& settings, const conduct::RunOutcome& outcome,
                    std::optional<MeasurementWindow>& window, const Counter& counter,
                    Twist& twist) {
  const report::RunFacts facts = run_facts(config, settings, outcome);
  std::optional<report::TokenCounts> counts;
  if (counter.tokens) {
    counts = count_with(counter, config, input, facts, outcome.ledger);
  }
  auto made =
      report::make_report(facts, outcome.ledger, verdict::Rules{}, counts ? &*counts : nullptr);
  if (!made) {
    return fail_with(made.error());
  }
  Scores scores = score_run(input, outcome, length_terms(config, counter));
  made->accuracy = std::move(scores.entries);
  made->turn_scores = std::move(scores.turns);
  twist.summary = made->summary;
  const SentPrompts prompts(input);
  const auto status = write_or_rescue(*made, prompts, outcome.ledger, settings.folder);
  if (window) {
    window->ended(*made);
  }
  std::fputs(("\n" + report::console_text(*made) + "\n").c_str(), stdout);
  if (status) {
    std::fputs(fmt::format("Run folder: {}\n", settings.folder).c_str(), stdout);
  }
  std::fflush(stdout);
  if (!status) {
    return fail_with(status.error());
  }
  const ExitCode by_verdict = made->verdict.exit_code;
  return by_verdict == ExitCode::kOk ? outcome.outcome.exit : by_verdict;
}

// A pool of agents that srt-slurm started for us is used when the config names no agents.
base::Status adopt_pool(spec::Config& config) {
  spec::Distributed& distributed = config.distributed;
  if (!distributed.agents.empty() || distributed.listen || distributed.local_agents > 0) {
    return {};
  }
  auto agents = launch::srt_agents(spec::process_environment);
  if (!agents) {
    return tl::unexpected(agents.error());
  }
  if (!agents->empty()) {
    base::log_info("benchmark",
                   fmt::format("Agents of SRT_SERVICE_AGENTS_IPS: {}", fmt::join(*agents, ", ")));
  }
  distributed.agents = std::move(*agents);
  distributed.expect = static_cast<std::int64_t>(distributed.agents.size());
  return {};
}

ExitCode run_order(spec::Order order, const conduct::PhaseWatch& watch, Twist& twist) {
  if (const auto scored = accuracy::choose_methods(order.config, order.mode); !scored) {
    base::log_error("benchmark", "Accuracy cannot be scored:\n" + spec::to_text(scored.error()));
    return ExitCode::kInput;
  }
  if (order.mode == spec::RunMode::kAcc) {
    for (const auto& sentence : conduct::force_single_stream(order.config)) {
      base::log_info("benchmark", sentence);
    }
  }
  sys::StopSignals signals;  // before any thread
  const base::SystemClock clock;
  if (auto status = adopt_pool(order.config); !status) {
    return fail_with(status.error());
  }
  auto keys = read_run_keys(order.config.distributed);
  if (!keys) {
    return fail_with(keys.error());
  }
  const std::vector<std::string> secrets = conduct::secrets_of(order.config);
  if (keys->own || !secrets.empty() || order.config.distributed.client_key_file) {
    sys::keep_memory_private();
  }
  for (const std::string& secret : secrets) {
    sys::hide_in_environment(secret);
  }
  const auto folder = open_folder(order.config, clock);
  if (!folder) {
    return fail_with(folder.error());
  }
  std::string no_tokens;
  auto tokens = tokenizer_of(order.config, no_tokens);
  if (!tokens) {
    return fail_with(tokens.error());
  }
  const Counter counter{tokens->has_value() ? std::move(*tokens) : std::nullopt, signals};
  auto input =
      conduct::prepare(order, *folder, model::local_seconds(clock.wall_unix_ns() / 1'000'000'000));
  if (!input) {
    return fail_with(input.error());
  }
  if (auto status = apply_twist(twist, *input); !status) {
    return fail_with(status.error());
  }
  conduct::HostSettings settings =
      host_settings(order.config, *input, *folder, counter.tokens ? &*counter.tokens : nullptr);
  settings.keys = std::move(keys->own);
  settings.agent_keys = std::move(keys->agents);
  auto window = MeasurementWindow::open(spec::process_environment, order.config, *folder);
  settings.watch = [&](const report::PhaseFacts& phase, std::uint64_t stored,
                       std::uint64_t failed) {
    if (window) {
      window->phase_starts(phase, clock);
    }
    if (watch) {
      watch(phase, stored, failed);
    }
  };
  say_what_runs(order, *input, settings);
  if (!no_tokens.empty()) {
    base::log_info("benchmark", "Tokens will not be counted: " + no_tokens);
  }
  const auto outcome = conduct::conduct_run(settings, clock, signals);
  std::error_code ignored;
  std::filesystem::remove(input->bodies_path, ignored);
  if (!outcome) {
    return fail_with(outcome.error());
  }
  const auto& reasons = outcome->outcome.reasons;
  for (auto at = reasons.begin(); at != reasons.end(); ++at) {
    if (std::find(reasons.begin(), at, *at) == at) {
      const bool no_connection = at->find("cannot reach http") != std::string::npos;
      base::log_error("benchmark", (no_connection ? "Failed to connect to endpoint: " : "") + *at);
    }
  }
  if (!outcome->outcome.any_phase) {
    base::log_error("benchmark", fmt::format("no phase was started; {} holds config.yaml and logs",
                                             settings.folder));
    return outcome->outcome.exit;
  }
  return report_run(order.config, *input, settings, *outcome, window, counter, twist);
}

struct AuditRun {
  ExitCode exit = ExitCode::kOk;
  audit::Phase phase;
};

// One of the audit's two runs, whole, in a folder of its own.
AuditRun audit_run(spec::Order order, const std::string& folder, std::int64_t requests,
                   Twist twist) {
  spec::Config& config = order.config;
  config.report_dir = folder;
  config.audit.present = false;
  config.settings.runtime.n_samples_to_issue = requests;
  order.mode = spec::RunMode::kPerf;
  AuditRun out;
  out.exit = run_order(std::move(order), {}, twist);
  out.phase = {requests, twist.summary.n_completed, twist.summary.qps.value_or(0)};
  if (out.exit == ExitCode::kOk && !(out.phase.qps > 0)) {
    base::log_error("audit", folder + ": no rate could be measured");
    out.exit = ExitCode::kExecution;
  }
  return out;
}

ExitCode run_audit(const spec::Order& order, const std::string& folder) {
  const spec::Audit& wanted = order.config.audit;
  if (order.config.settings.load_pattern.type == spec::Pattern::kPoisson) {
    base::log_error("audit",
                    "output_caching_test compares rates: load_pattern.type must be max_throughput "
                    "or concurrency");
    return ExitCode::kSetup;
  }
  const auto reference = audit_run(order, folder + "/audit/reference", wanted.samples,
                                   {.single_row = {}, .rows_min = wanted.samples});
  if (reference.exit != ExitCode::kOk) {
    return reference.exit;
  }
  const auto repeated =
      audit_run(order, folder + "/audit/output_caching",
                wanted.audit_samples.value_or(wanted.samples), {.single_row = wanted.sample_index});
  if (repeated.exit != ExitCode::kOk) {
    return repeated.exit;
  }
  const auto verdict = audit::judge(reference.phase, repeated.phase, wanted.threshold);
  const auto status = audit::write_audit(
      folder + "/audit", audit::json_of(reference.phase, repeated.phase, wanted.threshold, verdict),
      verdict.passed);
  if (!status) {
    return fail_with(status.error());
  }
  if (!verdict.passed) {
    base::log_error("audit", "Compliance audit output_caching_test FAILED: " + verdict.reason);
    return ExitCode::kUsage;
  }
  base::log_info("audit", "Compliance audit output_caching_test passed: " + verdict.reason);
  return ExitCode::kOk;
}

// The run, and the audit after it; `only` leaves the run out.
ExitCode run_all(spec::Order order, const conduct::PhaseWatch& watch) {
  if (!order.config.report_dir) {
    order.config.report_dir = default_folder(base::SystemClock{});
  }
  const std::string folder = *order.config.report_dir;
  ExitCode exit = ExitCode::kOk;
  if (!order.config.audit.present || !order.config.audit.only) {
    Twist none;
    exit = run_order(order, watch, none);
  }
  return exit == ExitCode::kOk && order.config.audit.present ? run_audit(order, folder) : exit;
}

ExitCode take(spec::Ordering ordering, const std::string& command, bool from_file,
              const conduct::PhaseWatch& watch) {
  const auto& warnings = ordering ? ordering->warnings : ordering.error().warnings;
  for (const auto& warning : warnings) {
    base::log_warning("config", spec::to_text(warning));
  }
  if (ordering) {
    return run_all(std::move(*ordering), watch);
  }
  const std::string problems = spec::to_text(ordering.error().problems);
  if (from_file && ordering.error().code != ExitCode::kUsage) {
    base::log_error("config", "Config error:\n" + problems);
    return ordering.error().code;
  }
  std::fputs(fmt::format("Error:\n{}\nTry `tutti {} --help`.\n", problems, command).c_str(),
             stderr);
  return ordering.error().code;
}

}  // namespace

ExitCode benchmark_command(const Words& words) { return watched_benchmark(words, {}); }

ExitCode watched_benchmark(const Words& words, const conduct::PhaseWatch& watch) {
  const std::string kind = words.empty() ? "" : words[0];
  const Words rest(words.empty() ? words.end() : words.begin() + 1, words.end());
  if (kind == "offline") {
    return take(spec::order_from_flags(spec::TestType::kOffline, rest), "benchmark offline", false,
                watch);
  }
  if (kind == "online") {
    return take(spec::order_from_flags(spec::TestType::kOnline, rest), "benchmark online", false,
                watch);
  }
  if (kind == "from-config") {
    return take(spec::order_from_config(rest, spec::process_environment), "benchmark from-config",
                true, watch);
  }
  return usage_error(
      fmt::format("benchmark needs offline, online or from-config, got \"{}\"", kind), "benchmark");
}

}  // namespace tutti
