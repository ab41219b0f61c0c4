#include "common/spec/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/spec/bind.h"
#include "common/spec/redact.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kPatternField = "settings.load_pattern.type";

std::string type_name(const Config& config) {
  return config_schema().find("type")->names.at(static_cast<std::size_t>(config.type));
}

// ---- settings --------------------------------------------------------------------------------

void check_durations(const Tree& tree, const Config& config, Findings& findings) {
  const Runtime& runtime = config.settings.runtime;
  const LoadPattern& load = config.settings.load_pattern;
  const std::string min_field = "settings.runtime.min_issue_duration_ms";
  const std::string max_field = "settings.runtime.max_issue_duration_ms";
  if (runtime.min_issue_duration_ms && runtime.max_issue_duration_ms &&
      *runtime.max_issue_duration_ms < *runtime.min_issue_duration_ms) {
    findings.wrong_at(place_of(tree, max_field), max_field,
                      fmt::format("{} is less than min_issue_duration_ms {}; make it at least that",
                                  *runtime.max_issue_duration_ms, *runtime.min_issue_duration_ms));
  }
  const bool is_sized_poisson = load.type == Pattern::kPoisson && load.target_qps;
  if (runtime.min_issue_duration_ms && !is_sized_poisson &&
      findings.is_clean("settings.load_pattern")) {
    findings.wrong_at(place_of(tree, min_field), min_field,
                      "requires load_pattern.type poisson with an explicit target_qps; use "
                      "n_samples_to_issue (--num-samples) with other load patterns");
  }
}

void check_load_pattern(const Tree& tree, const Config& config, Findings& findings) {
  if (!findings.is_clean("settings.load_pattern")) {
    return;
  }
  const LoadPattern& load = config.settings.load_pattern;
  const std::string place = place_of(tree, kPatternField);
  if (load.type == Pattern::kPoisson && !load.target_qps) {
    findings.wrong_at(place, "settings.load_pattern.target_qps",
                      "Poisson requires --target-qps; set the mean requests per second");
  }
  if (load.type == Pattern::kConcurrency && !load.target_concurrency) {
    findings.wrong_at(place, "settings.load_pattern.target_concurrency",
                      "Concurrency requires --concurrency; set the requests in flight");
  }
  if (load.type == Pattern::kAgenticInference && !load.target_concurrency) {
    findings.wrong_at(place, "settings.load_pattern.target_concurrency",
                      "Agentic inference requires --concurrency; set the conversations at a time");
  }
}

// The one bus the reference knows; a file that names another would fail there too.
void check_bus(const Tree& tree, const Config& config, Findings& findings) {
  const std::string field = "settings.client.transport.type";
  if (config.settings.client.transport.type != "zmq" && findings.is_clean(field)) {
    findings.wrong(field, *tree.find_path(field), "must be zmq; remove the key");
  }
}

void check_audit(const Tree& tree, const Config& config, Findings& findings) {
  const std::string field = "audit.test";
  if (config.audit.present && config.audit.test != "output_caching_test" &&
      findings.is_clean(field)) {
    findings.wrong_at(place_of(tree, field), field, "must be output_caching_test");
  }
}

void check_warmup(const Tree& tree, const Config& config, Findings& findings) {
  const std::string field = "settings.warmup.drain";
  if (config.settings.warmup.enabled && !config.settings.warmup.drain &&
      tree.find_path(field) != nullptr) {
    findings.warn(field, tree,
                  "is not followed: tutti always waits for the last warm-up reply, so that nothing "
                  "of the warm-up runs beside the measured phase");
  }
}

// R9, R10. Runs after R7, so that a submission has a mode.
void check_mode(const Tree& tree, const Config& config, Findings& findings) {
  if (config.type == TestType::kSubmission && config.benchmark_mode == BenchmarkMode::kNone) {
    if (findings.is_clean("type") && findings.is_clean("benchmark_mode")) {
      findings.wrong_at(place_of(tree, "type"), "benchmark_mode",
                        "SUBMISSION configs must specify benchmark_mode: offline or online");
    }
    return;
  }
  if (!findings.is_clean("type") || !findings.is_clean(kPatternField)) {
    return;
  }
  const Pattern pattern = config.settings.load_pattern.type;
  const BenchmarkMode mode = effective_mode(config);
  if (mode == BenchmarkMode::kOffline && pattern != Pattern::kMaxThroughput) {
    findings.wrong_at(place_of(tree, kPatternField), kPatternField,
                      "Offline benchmarks must use 'max_throughput'; remove load_pattern or make "
                      "the run online");
  }
  if (mode == BenchmarkMode::kOnline && pattern == Pattern::kMaxThroughput) {
    findings.wrong_at(
        place_of(tree, kPatternField), kPatternField,
        "Online mode requires --load-pattern (poisson, concurrency or agentic_inference)");
  }
}

// ---- who is asked what -----------------------------------------------------------------------

void check_endpoints(const Tree& tree, const Config& config, Findings& findings) {
  const std::string field = "endpoint_config.endpoints";
  const std::vector<std::string>& endpoints = config.endpoint_config.endpoints;
  if (endpoints.empty() && findings.is_clean(field)) {
    findings.wrong_at(place_of(tree, field), field, "must name at least one endpoint");
  }
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const std::string item = fmt::format("{}.{}", field, i);
    const std::string& url = endpoints[i];
    const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
    if (!findings.is_clean(item)) {
      continue;
    }
    if (scheme == 0) {
      findings.wrong_at(place_of(tree, item), item,
                        fmt::format("Endpoint URL must include scheme (http:// or https://), got: "
                                    "'{}'",
                                    shown(item, Tree::of_string(url))));
    } else if (url.size() == scheme || url[scheme] == '/' || url[scheme] == ':') {
      findings.wrong_at(place_of(tree, item), item, "has no host after its scheme");
    }
  }
  if (config.endpoint_config.api_key == kRedacted) {
    findings.wrong_at(place_of(tree, "endpoint_config.api_key"), "endpoint_config.api_key",
                      "holds the placeholder of a written config; put the key back, best as "
                      "\"${API_KEY}\"");
  }
}

void derive_names(const Tree& tree, Config& config, Findings& findings) {
  if (config.name.empty()) {
    config.name = type_name(config) + "_benchmark";
  }
  for (DatasetSpec& dataset : config.datasets) {
    dataset.name_is_given = !dataset.name.empty();
    if (!dataset.name_is_given) {
      dataset.name = stem_of(dataset.path.value_or(""));
    }
  }
  const bool video = config.endpoint_config.api_type == base::ApiType::kVideogen &&
                     findings.is_clean("endpoint_config.api_type");
  if (video && config.model_params.streaming == Streaming::kOn &&
      findings.is_clean("model_params.streaming")) {
    findings.wrong_at(place_of(tree, "model_params.streaming"), "model_params.streaming",
                      "endpoint_config.api_type=videogen has no streams: leave it out, or off");
  }
  if (config.model_params.streaming == Streaming::kAuto) {
    config.model_params.streaming = video || effective_mode(config) == BenchmarkMode::kOffline
                                        ? Streaming::kOff
                                        : Streaming::kOn;
  }
  if (config.model_params.name.empty()) {
    config.model_params.name = config.submission_ref.model;
  }
  if (config.model_params.name.empty() && findings.is_clean("model_params.name") &&
      findings.is_clean("submission_ref")) {
    findings.wrong_at(place_of(tree, "model_params.name"), "model_params.name",
                      "Required: --model-params.name [--model]");
  }
}

void check_swe_bench(const Tree& tree, Config& config, Findings& findings) {
  const std::size_t endpoints = config.endpoint_config.endpoints.size();
  for (std::size_t i = 0; i < config.datasets.size(); ++i) {
    AccuracyConfig& accuracy = config.datasets[i].accuracy_config;
    if (accuracy.eval_method != Scorer::kSweBench) {
      continue;
    }
    const std::string field = fmt::format("datasets.{}.accuracy_config.eval_method", i);
    if (endpoints != 1 && findings.is_clean("endpoint_config")) {
      findings.wrong_at(
          place_of(tree, field), field,
          fmt::format("SWE-bench service mode supports exactly one endpoint URL; got {}",
                      endpoints));
    }
    const LoadPattern& load = config.settings.load_pattern;
    const Tree* workers = accuracy.extras.find("workers");
    const bool closed =
        load.type == Pattern::kConcurrency || load.type == Pattern::kAgenticInference;
    if (closed && load.target_concurrency && (workers == nullptr || workers->is_null())) {
      accuracy.extras.kind = Tree::Kind::kMap;
      accuracy.extras.set("workers", Tree::of_int(*load.target_concurrency));
    }
  }
}

// R5: controls that only the completions API has.
void check_completion_controls(const Tree& tree, const Config& config, Findings& findings) {
  if (config.endpoint_config.api_type == base::ApiType::kOpenAiCompletions ||
      !findings.is_clean("endpoint_config.api_type")) {
    return;
  }
  const auto check = [&](const ModelParams& params, const std::string& field,
                         const std::string& prefix) {
    std::vector<std::string> controls;
    if (params.min_new_tokens != 1) {
      controls.push_back(prefix + ".min_new_tokens");
    }
    if (!params.skip_special_tokens) {
      controls.push_back(prefix + ".skip_special_tokens");
    }
    if (controls.empty() || !findings.is_clean(field)) {
      return;
    }
    const std::string first = field + "." + std::string(leaf_of(controls[0]));
    findings.wrong_at(
        place_of(tree, first), first,
        fmt::format("{} {} endpoint_config.api_type=openai_completions", joined(controls, " and "),
                    controls.size() == 1 ? "requires" : "require"));
  };
  check(config.model_params, "model_params", "model_params");
  for (std::size_t i = 0; i < config.datasets.size(); ++i) {
    const DatasetSpec& dataset = config.datasets[i];
    if (dataset.generation_config_override.is_map() && findings.is_clean("model_params")) {
      check(dataset.model_params, fmt::format("datasets.{}.generation_config_override", i),
            fmt::format("datasets['{}'].generation_config_override", dataset.name));
    }
  }
}

// R8
void check_dataset_names(const Tree& tree, const Config& config, Findings& findings) {
  std::map<std::pair<std::string, DatasetType>, int> seen;
  for (std::size_t i = 0; i < config.datasets.size(); ++i) {
    const DatasetSpec& dataset = config.datasets[i];
    const std::string field = fmt::format("datasets.{}", i);
    if (++seen[{dataset.name, dataset.type}] == 2 && findings.is_clean(field)) {
      findings.wrong_at(
          place_of(tree, field), field,
          fmt::format("Duplicate dataset names: ['{} ({})']; give each a name of its own",
                      dataset.name,
                      dataset.type == DatasetType::kAccuracy ? "accuracy" : "performance"));
    }
  }
}

}  // namespace

BenchmarkMode effective_mode(const Config& config) {
  switch (config.type) {
    case TestType::kOffline:
      return BenchmarkMode::kOffline;
    case TestType::kOnline:
      return BenchmarkMode::kOnline;
    case TestType::kSubmission:
      return config.benchmark_mode;
    case TestType::kEval:
      break;
  }
  return BenchmarkMode::kNone;
}

std::string stem_of(std::string_view path) {
  while (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  const std::size_t slash = path.rfind('/');
  std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const std::size_t dot = name.rfind('.');
  const bool has_suffix = dot != std::string_view::npos && dot > 0 && dot + 1 < name.size() &&
                          name.find_first_not_of('.') < dot;
  return std::string(has_suffix ? name.substr(0, dot) : name);
}

void apply_rules(const Tree& tree, Config& config, Findings& findings) {
  check_load_pattern(tree, config, findings);
  check_durations(tree, config, findings);
  check_bus(tree, config, findings);
  check_audit(tree, config, findings);
  check_endpoints(tree, config, findings);
  derive_names(tree, config, findings);
  apply_overrides(tree, config, findings);
  check_swe_bench(tree, config, findings);
  check_completion_controls(tree, config, findings);
  check_warmup(tree, config, findings);
  check_mode(tree, config, findings);
  check_dataset_names(tree, config, findings);
  check_conversations(tree, config, findings);
  pin_seeds(tree, config, findings);
  check_distributed(tree, config, findings);
}

}  // namespace tutti::spec
