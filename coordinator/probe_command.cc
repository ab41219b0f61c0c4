// probe: a few queries to each frontend, through the same coordinator, agent and engine as a run,
// and what came back. It is a burst run of one prompt without a report folder.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <CLI/CLI.hpp>

#include "common/base/log.h"
#include "common/base/time.h"
#include "common/model/chat_template.h"
#include "common/model/tokenizer.h"
#include "common/spec/redact.h"
#include "common/sys/signals.h"
#include "common/text/json_read.h"
#include "coordinator/commands.h"
#include "coordinator/conduct/harmony_rows.h"
#include "coordinator/conduct/token_rows.h"
#include "coordinator/ledger/texts.h"
#include "coordinator/run_setup.h"

namespace tutti {
namespace {

using base::ExitCode;

constexpr double kDeadlineS = 60.0;
constexpr std::size_t kSampleColumns = 100;
constexpr std::size_t kErrorsShown = 3;
constexpr std::uint64_t kSamplesShown = 10;
constexpr std::uint64_t kRequestsMax = 1'000'000;

struct ProbeOptions {
  std::string endpoints;
  std::string model;
  std::string api_type = "openai";
  std::string tokenizer;
  std::uint64_t requests = 10;
  std::string prompt = "Hello! Please answer in one short sentence.";
  bool insecure = false;
};

void describe(CLI::App& app, ProbeOptions& options) {
  app.description(
      "Sends a few queries to each frontend at once, without streaming, and shows latencies and\n"
      "answers. Exit code 0 when at least half of them succeed, 4 when fewer do.");
  app.add_option("--endpoints", options.endpoints, "base URLs, separated by commas")->required();
  app.add_option("--model", options.model, "model name to ask for");
  app.add_option("--api-type", options.api_type, "openai (chat), openai_completions or sglang")
      ->capture_default_str();
  app.add_option("--tokenizer", options.tokenizer,
                 "of sglang, which is sent token ids: a folder or org/name (default: the model)");
  app.add_option("--requests", options.requests, "queries in all, dealt round the frontends")
      ->check(CLI::Range(std::uint64_t{1}, kRequestsMax))
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "what to ask")->capture_default_str();
  app.add_flag("--insecure", options.insecure, "do not verify TLS certificates");
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) {
      out.push_back(text.substr(start, end - start));
    }
    start = end + 1;
  }
  return out;
}

base::Result<spec::Config> config_of(const ProbeOptions& options) {
  spec::Config config;
  config.type = spec::TestType::kOffline;
  config.model_params.name = options.model;
  config.model_params.streaming = spec::Streaming::kOff;
  config.settings.client.insecure = options.insecure;
  config.distributed.balance = base::Balance::kRoundRobin;
  config.distributed.local_agents = 1;
  config.distributed.request_timeout_s = kDeadlineS;
  config.settings.client.warmup_connections = 0;
  if (options.model.empty()) {
    return base::fail(ExitCode::kInput, "Model required: --model NAME");
  }
  if (options.api_type == "openai_completions") {
    config.endpoint_config.api_type = base::ApiType::kOpenAiCompletions;
  } else if (options.api_type == "sglang") {
    config.endpoint_config.api_type = base::ApiType::kSglang;
  } else if (options.api_type == "videogen") {
    return base::fail(ExitCode::kInput,
                      "--api-type videogen: cannot be probed, as one video may take longer than a "
                      "probe waits; run `tutti benchmark offline` with one row instead");
  } else if (options.api_type != "openai") {
    return base::fail(ExitCode::kInput,
                      fmt::format("--api-type {}: is unknown; use openai, openai_completions or "
                                  "sglang",
                                  options.api_type));
  }
  if (!options.tokenizer.empty()) {
    if (config.endpoint_config.api_type != base::ApiType::kSglang) {
      return base::fail(ExitCode::kInput,
                        "--tokenizer is for --api-type sglang: others are sent the text");
    }
    config.model_params.tokenizer_name = options.tokenizer;
  }
  config.endpoint_config.endpoints = split(options.endpoints, ',');
  for (const auto& url : config.endpoint_config.endpoints) {
    if (url.rfind("http://", 0) != 0 && url.rfind("https://", 0) != 0) {
      return base::fail(
          ExitCode::kInput,
          fmt::format("Endpoint URL must include scheme (http:// or https://), got: '{}'",
                      spec::redact_url(url)));
    }
  }
  if (config.endpoint_config.endpoints.empty()) {
    return base::fail(ExitCode::kInput, "--endpoints names no URL");
  }
  return config;
}

// SGLang is sent the ids of the prompt, without special tokens; of gpt-oss models in Harmony's
// form.
base::Status take_ids(const spec::Config& config, std::int64_t local_seconds,
                      data::Dataset& dataset) {
  if (conduct::wants_harmony(config)) {
    return conduct::tell_in_harmony(config, local_seconds, dataset);
  }
  const auto files = conduct::read_tokenizer(
      config.model_params.tokenizer_name.value_or(config.model_params.name));
  const auto tokenizer = files ? model::Tokenizer::open(files->tokenizer_json, files->name)
                               : tl::unexpected(files.error());
  if (!tokenizer) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("sglang is sent token ids, which need the model's tokenizer: {}; "
                                  "give it with --tokenizer",
                                  tokenizer.error().message));
  }
  data::Row& row = dataset.rows.front();
  const auto ids = tokenizer->encode(row.cells.find("prompt")->as_string());
  if (!ids) {
    return tl::unexpected(ids.error());
  }
  row.cells = text::JsonValue::of_object({{"input_tokens", conduct::json_of(*ids)}});
  return {};
}

base::Result<conduct::RunInput> input_of(const spec::Config& config, const ProbeOptions& options,
                                         const std::string& folder, std::int64_t local_seconds) {
  conduct::RunInput input;
  data::Row row;
  row.cells = text::JsonValue::of_object({{"prompt", text::JsonValue::of_string(options.prompt)}});
  input.dataset.path = "--prompt";
  input.dataset.rows.push_back(std::move(row));
  if (config.endpoint_config.api_type == base::ApiType::kSglang) {
    if (auto status = take_ids(config, local_seconds, input.dataset); !status) {
      return tl::unexpected(status.error());
    }
  }
  data::BodyParams params;
  params.api = config.endpoint_config.api_type;
  params.model = config.model_params.name;
  params.write_stream_false = true;
  auto bodies = conduct::write_bodies(input.dataset, params, folder + "/bodies");
  if (!bodies) {
    return tl::unexpected(bodies.error());
  }
  input.bodies = std::move(*bodies);
  conduct::PhaseInput phase;
  phase.name = "probe";
  phase.spec.kind = base::PhaseKind::kPerformance;
  phase.spec.pacing = base::Pacing::kBurst;
  phase.spec.total = options.requests;
  phase.spec.dataset_rows = 1;
  phase.drain_timeout = base::Duration::from_seconds(kDeadlineS + 5);
  input.phases.push_back(std::move(phase));
  input.target = conduct::target_of(config);
  return input;
}

std::string shortened(const std::string& text) {
  if (text.empty()) {
    return "<EMPTY>";
  }
  return text.size() <= kSampleColumns ? text : text.substr(0, kSampleColumns) + "...";
}

ExitCode tell(const ledger::Ledger& ledger, std::uint64_t requests,
              const std::vector<std::string>& frontends) {
  std::vector<std::string> samples;
  std::vector<std::string> errors;
  std::int64_t total_ns = 0;
  std::int64_t least_ns = INT64_MAX;
  std::int64_t most_ns = 0;
  std::uint64_t succeeded = 0;
  ledger::Texts texts;
  for (std::uint64_t seq = 0; seq < requests; ++seq) {
    const ledger::Fact* fact = ledger.find(0, seq);
    const std::string id = fmt::format("probe-{}", seq);
    if (fact == nullptr || !ledger.texts(*fact, texts)) {
      errors.push_back(fmt::format("{}: no record", id));
      continue;
    }
    if (!fact->ok()) {
      errors.push_back(
          fmt::format("{} at {}: {}", id, frontends[fact->frontend], texts.error_message));
      continue;
    }
    const std::uint64_t step = std::max<std::uint64_t>(1, requests / 10);
    const std::string output = texts.output.content_first + texts.output.content_rest;
    if ((seq + 1) % step == 0 || seq + 1 == requests) {
      base::log_info("probe", fmt::format("  Processed {}/{} responses : {} : {}", seq + 1,
                                          requests, id, output.substr(0, kSampleColumns)));
    }
    const std::int64_t latency_ns = (fact->done_at - fact->issued_at).ns;
    ++succeeded;
    total_ns += latency_ns;
    least_ns = std::min(least_ns, latency_ns);
    most_ns = std::max(most_ns, latency_ns);
    if (samples.size() < kSamplesShown) {
      samples.push_back(fmt::format("[{}] {}", id, shortened(output)));
    }
  }
  base::log_info("probe", fmt::format("Completed: {}/{} successful", succeeded, requests));
  if (succeeded > 0) {
    const double mean_ms = static_cast<double>(total_ns) / static_cast<double>(succeeded) / 1e6;
    base::log_info("probe", fmt::format("Avg latency: {:.0f}ms", mean_ms));
    base::log_info("probe",
                   fmt::format("Range: {:.0f}ms - {:.0f}ms", static_cast<double>(least_ns) / 1e6,
                               static_cast<double>(most_ns) / 1e6));
    base::log_info("probe", fmt::format("Sample responses ({} collected):", samples.size()));
    for (const auto& sample : samples) {
      base::log_info("probe", "  " + sample);
    }
  }
  if (!errors.empty()) {
    base::log_warning("probe", fmt::format("Errors: {}", errors.size()));
    for (std::size_t i = 0; i < std::min(errors.size(), kErrorsShown); ++i) {
      base::log_warning("probe", "  " + errors[i]);
    }
    if (errors.size() > kErrorsShown) {
      base::log_warning("probe", fmt::format("  ... +{} more", errors.size() - kErrorsShown));
    }
  }
  if (succeeded * 2 < requests) {
    base::log_error(
        "probe", fmt::format("Probe failed: only {}/{} requests successful", succeeded, requests));
    return ExitCode::kExecution;
  }
  base::log_info("probe", "Probe successful");
  return ExitCode::kOk;
}

// The whole burst is handed out when its phase starts; the lines are those scripts wait for.
void say_issued(std::uint64_t requests) {
  const std::uint64_t step = std::max<std::uint64_t>(1, requests / 10);
  for (std::uint64_t i = 1; i <= requests; ++i) {
    if (i % step == 0 || i == requests) {
      base::log_info("probe", fmt::format("  Issued {}/{} requests", i, requests));
    }
  }
  base::log_info("probe", fmt::format("Waiting for {} responses...", requests));
}

ExitCode run_probe(const ProbeOptions& options, const std::string& folder) {
  const auto config = config_of(options);
  if (!config) {
    base::log_error("probe", config.error().message);
    return config.error().code;
  }
  sys::StopSignals signals;  // before any thread
  const base::SystemClock clock;
  const auto input = input_of(*config, options, folder,
                              model::local_seconds(clock.wall_unix_ns() / 1'000'000'000));
  if (!input) {
    base::log_error("probe", "Probe setup failed: " + input.error().message);
    return ExitCode::kSetup;
  }
  conduct::HostSettings settings = host_settings(*config, *input, folder);
  settings.show_progress = false;
  bool said_issued = false;
  settings.watch = [&](const report::PhaseFacts&, std::uint64_t, std::uint64_t) {
    if (!std::exchange(said_issued, true)) {
      say_issued(options.requests);
    }
  };
  base::log_info("probe", fmt::format("Probing: {}", fmt::join(settings.frontends, ", ")));
  base::log_info("probe", fmt::format("Sending {} requests...", options.requests));
  const auto outcome = conduct::conduct_run(settings, clock, signals);
  if (!outcome) {
    base::log_error("probe", "Probe setup failed: " + outcome.error().message);
    return ExitCode::kSetup;
  }
  for (const auto& reason : outcome->outcome.reasons) {
    base::log_error("probe", reason);
  }
  if (!outcome->outcome.any_phase) {
    return outcome->outcome.exit;
  }
  if (outcome->interrupted_by_user) {
    return ExitCode::kInterrupted;
  }
  return tell(outcome->ledger, options.requests, settings.frontends);
}

}  // namespace

std::string probe_help() {
  ProbeOptions options;
  CLI::App app("", "tutti probe");
  describe(app, options);
  return app.help();
}

ExitCode probe_command(const Words& words) {
  ProbeOptions options;
  CLI::App app("", "tutti probe");
  describe(app, options);
  Words reversed(words.rbegin(), words.rend());  // CLI11 takes them from the back
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& e) {
    return usage_error(e.what(), "probe");
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("tutti-probe-{}", getpid());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const ExitCode code = run_probe(options, folder);
  std::filesystem::remove_all(folder, error);
  return code;
}

}  // namespace tutti
