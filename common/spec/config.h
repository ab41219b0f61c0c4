#pragma once

// Config: everything a run was asked to do, after reading. Plain values in the file's own
// structure; defaults are the member initialisers and the schema table (schema.h) takes them from
// here. What a Config holds has been typed, bounded and cross-checked: `name` is set, `streaming`
// is never kAuto, seeds are pinned by the ruleset. nullopt means "none" (no limit, not sent), never
// "default".

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/vocabulary.h"
#include "common/spec/settings.h"
#include "common/spec/tree.h"

namespace tutti::spec {

enum class TestType : std::uint8_t { kOffline, kOnline, kEval, kSubmission };
enum class BenchmarkMode : std::uint8_t { kNone, kOffline, kOnline };
enum class Streaming : std::uint8_t { kAuto, kOn, kOff };
enum class DatasetType : std::uint8_t { kPerformance, kAccuracy };
enum class OslType : std::uint8_t { kOriginal, kFixed, kUniform, kNormal };
enum class EvalMethod : std::uint8_t { kNone, kExactMatch, kContains, kJudge };
enum class Scorer : std::uint8_t {
  kNone,
  kPassAt1,
  kStringMatch,
  kRouge,
  kCodeBench,
  kShopifyCategoryF1,
  kAgenticInline,
  kVbench,
  kBfclV4,
  kLegacyDeepseekR1,
  kSweBench
};
enum class RunMode : std::uint8_t { kPerf, kAcc, kBoth };  // --mode; not part of the file

using StringMap = std::vector<std::pair<std::string, std::string>>;

struct OslDistribution {
  bool present = false;
  OslType type = OslType::kOriginal;
  std::optional<std::int64_t> mean;
  std::optional<std::int64_t> std;
  std::int64_t min = 1;
  std::int64_t max = 2048;
};

struct ModelParams {
  std::string name;
  std::optional<double> temperature;
  std::optional<WholeNumber> seed;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  Tree chat_template_kwargs;  // null or a mapping
  std::int64_t max_new_tokens = 1024;
  std::int64_t min_new_tokens = 1;
  bool skip_special_tokens = true;
  OslDistribution osl_distribution;
  Streaming streaming = Streaming::kAuto;
  std::optional<std::string> tokenizer_name;
};

struct AccuracyConfig {
  bool present = false;
  Scorer eval_method = Scorer::kNone;
  std::optional<std::string> ground_truth;
  std::optional<std::string> extractor;
  std::int64_t num_repeats = 1;
  Tree extras;  // null or a mapping
};

struct AgenticInference {
  bool present = false;
  double turn_timeout_s = 86400.0;
  bool enable_salt = false;
  bool inject_tool_delay = false;
  std::vector<std::string> routing_headers{"X-Session-ID"};
  std::optional<std::int64_t> num_trajectories_to_issue;
  bool stop_issuing_on_first_user_complete = false;
};

struct DatasetSpec {
  std::string name;            // never empty after reading unless `path` is
  bool name_is_given = false;  // written by the user, not taken from the path
  DatasetType type = DatasetType::kPerformance;
  std::optional<std::string> path;
  std::optional<std::string> format;
  std::optional<std::int64_t> samples;  // first N rows; none: all
  EvalMethod eval_method = EvalMethod::kNone;
  StringMap parser;      // target → source column; empty: no remap
  Tree generate_params;  // null or a mapping
  AccuracyConfig accuracy_config;
  AgenticInference agentic_inference;
  Tree generation_config_override;  // null or a mapping, as written
  ModelParams model_params;         // the run's, with the override applied
};

struct EndpointConfig {
  std::vector<std::string> endpoints;  // at least one; may hold userinfo: print via redact_url
  std::optional<std::string> api_key;  // secret; "" means no Authorization header, like none
  base::ApiType api_type = base::ApiType::kOpenAiChat;
};

struct SubmissionRef {
  bool present = false;
  std::string model;
  std::string ruleset;
};

struct Audit {
  bool present = false;
  std::string test;
  bool only = false;
  std::int64_t samples = 1;
  std::optional<std::int64_t> audit_samples;
  std::int64_t sample_index = 0;
  double threshold = 0.10;
};

struct Config {
  std::string name;
  std::string version = "1.0";
  TestType type = TestType::kOffline;
  SubmissionRef submission_ref;
  BenchmarkMode benchmark_mode = BenchmarkMode::kNone;
  ModelParams model_params;
  std::vector<DatasetSpec> datasets;
  Settings settings;
  EndpointConfig endpoint_config;
  std::optional<std::string> report_dir;  // none: the caller makes one from the time of day
  bool verbose = false;
  bool enable_cpu_affinity = true;
  Audit audit;
  Distributed distributed;
};

// What the run behaves as: benchmark_mode for a submission, else offline or online by type; kNone
// for eval and for a submission without a mode.
BenchmarkMode effective_mode(const Config& config);

}  // namespace tutti::spec
