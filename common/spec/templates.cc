// The files `init` writes. offline, online and concurrency are dumps of a default config, so they
// show every field; eval and submission are written by hand, with comments.

#include "common/spec/dump.h"
#include "common/spec/yaml_writer.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kEval =
    R"(# Accuracy evaluation. Fill in the model, the data set and the endpoint.
# A data set is scored only with an accuracy_config (eval_method, extractor, ground_truth).
name: accuracy-eval
version: "1.0"
type: eval
model_params:
  name: meta-llama/Llama-3.1-8B-Instruct
  temperature: 0.0
  max_new_tokens: 2048
datasets:
  - name: gpqa
    type: accuracy
    path: datasets/gpqa.jsonl
    samples: 500
    eval_method: exact_match   # kept for the reference client; it has no effect
settings:
  runtime:
    scheduler_random_seed: 42
    dataloader_random_seed: 42
  load_pattern:
    type: max_throughput
  client:
    num_workers: 4
endpoint_config:
  endpoints:
    - http://localhost:8000
  api_key: null                # or "${API_KEY}"
  api_type: openai
)";

constexpr std::string_view kSubmission =
    R"(# An MLPerf-style submission point: one performance data set, accuracy beside it.
# submission_ref.ruleset replaces all seeds below with the published ones.
name: llama-2-70b-submission
version: "1.0"
type: submission
benchmark_mode: offline        # or online, with a load_pattern of its own
submission_ref:
  model: llama-2-70b
  ruleset: mlperf-inference-v6.1
model_params:
  name: meta-llama/Llama-2-70B-Chat-HF
  temperature: 0.7
  top_k: 50
  top_p: 0.9
  max_new_tokens: 2048
  osl_distribution:            # read, and without effect on requests
    type: normal
    mean: 1000
    std: 200
    min: 512
    max: 2048
datasets:
  - name: performance-test
    type: performance
    path: datasets/openorca.jsonl
    samples: 5000
  - name: gpqa-accuracy
    type: accuracy
    path: datasets/gpqa.jsonl
    samples: 500
    eval_method: exact_match
  - name: aime-accuracy
    type: accuracy
    path: datasets/aime.jsonl
    samples: 300
    eval_method: exact_match
settings:
  runtime:
    max_issue_duration_ms: 1800000   # stop issuing after 30 minutes
    scheduler_random_seed: 42
    dataloader_random_seed: 42
  load_pattern:
    type: max_throughput
    target_qps: 100
  client:
    num_workers: 4
endpoint_config:
  endpoints:
    - http://localhost:8000
  api_key: null
  api_type: openai
)";

Config blank(TestType type) {
  Config config;
  config.type = type;
  config.name = type == TestType::kOffline ? "offline_benchmark" : "online_benchmark";
  config.model_params.name = "<MODEL_NAME>";
  config.model_params.streaming = type == TestType::kOffline ? Streaming::kOff : Streaming::kOn;
  DatasetSpec dataset;
  dataset.name = "<DATASET_PATH>";
  dataset.path = "<DATASET_PATH>";
  config.datasets.push_back(dataset);
  config.endpoint_config.endpoints = {"http://localhost:8000"};
  return config;
}

}  // namespace

const std::vector<std::string>& template_kinds() {
  static const std::vector<std::string> kKinds{"concurrency", "eval", "offline", "online",
                                               "submission"};
  return kKinds;
}

std::optional<std::string> template_yaml(std::string_view kind) {
  if (kind == "eval") {
    return std::string(kEval);
  }
  if (kind == "submission") {
    return std::string(kSubmission);
  }
  if (kind == "offline") {
    return to_yaml(config_tree(blank(TestType::kOffline)));
  }
  Config config = blank(TestType::kOnline);
  LoadPattern& load = config.settings.load_pattern;
  if (kind == "online") {
    load.type = Pattern::kPoisson;
    load.target_qps = 10.0;
    return to_yaml(config_tree(config));
  }
  if (kind == "concurrency") {
    config.name = "concurrency_benchmark";
    load.type = Pattern::kConcurrency;
    load.target_concurrency = 32;
    return to_yaml(config_tree(config));
  }
  return std::nullopt;
}

}  // namespace tutti::spec
