#include "coordinator/accuracy/method.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tutti::accuracy {
namespace {

// Names a phase of every run has.
constexpr std::string_view kTakenNames[] = {"warmup", "performance"};

// Why a scorer is not here, and what to do; empty for those that are.
std::string why_refused(spec::Scorer scorer) {
  constexpr std::string_view kByHand =
      "run this data set with eval_method string_match and identity_extractor and score "
      "events.jsonl with ";
  switch (scorer) {
    case spec::Scorer::kPassAt1:
    case spec::Scorer::kStringMatch:
    case spec::Scorer::kShopifyCategoryF1:
    case spec::Scorer::kRouge:
      return {};
    case spec::Scorer::kNone:
      return "an accuracy data set needs a scorer: pass_at_1, string_match, shopify_category_f1 or "
             "rouge";
    case spec::Scorer::kCodeBench:
      return fmt::format(
          "code_bench_scorer runs generated code in a container of its own, which "
          "tutti does not talk to; {}the reference's lcb-service",
          kByHand);
    case spec::Scorer::kAgenticInline:
      return "agentic_inference_inline compares the turns of conversations with recorded ones; it "
             "goes with the performance data set that has agentic_inference";
    case spec::Scorer::kVbench:
      return "vbench judges videos with a program of its own and is not supported; use the "
             "reference client for this data set";
    case spec::Scorer::kBfclV4:
      return fmt::format(
          "bfcl_v4 needs the checker of bfcl-eval, which is not part of tutti; {}"
          "bfcl-eval",
          kByHand);
    case spec::Scorer::kLegacyDeepseekR1:
      return fmt::format(
          "legacy_mlperf_deepseek_r1 runs the evaluation of the MLPerf DeepSeek-R1 "
          "task, which is not part of tutti; {}that",
          kByHand);
    case spec::Scorer::kSweBench:
      return "swe_bench_scorer drives a SWE-bench service that sends requests itself; tutti does "
             "not talk to it: use the reference client for this data set";
  }
  return "is not supported";
}

// Of a scorer that is not refused.
Rule rule_of(spec::Scorer scorer) {
  switch (scorer) {
    case spec::Scorer::kStringMatch:
      return Rule::kStringMatch;
    case spec::Scorer::kShopifyCategoryF1:
      return Rule::kCategoryF1;
    case spec::Scorer::kRouge:
      return Rule::kRouge;
    default:
      return Rule::kPassAt1;
  }
}

bool wants_turns(const spec::DatasetSpec& dataset) {
  return dataset.type == spec::DatasetType::kPerformance && dataset.accuracy_config.present &&
         dataset.accuracy_config.eval_method == spec::Scorer::kAgenticInline;
}

class Chooser {
 public:
  Chooser(const spec::Config& config, spec::RunMode mode) : config_(config), mode_(mode) {}

  tl::expected<std::vector<Scored>, base::Problems> choose() {
    for (std::size_t i = 0; i < config_.datasets.size(); ++i) {
      const spec::DatasetSpec& dataset = config_.datasets[i];
      if (dataset.type == spec::DatasetType::kAccuracy) {
        if (mode_ != spec::RunMode::kPerf) {
          take(i, dataset);
        }
      } else if (wants_turns(dataset)) {
        check_turns(i, dataset);
      } else if (dataset.accuracy_config.present && mode_ == spec::RunMode::kBoth) {
        problem(i, "accuracy_config", "",
                "replies of the performance phase are not scored; give the file once more as "
                "`type: accuracy`, or conversations the eval_method agentic_inference_inline");
      }
    }
    if (mode_ == spec::RunMode::kAcc && out_.empty() && problems_.empty()) {
      problems_.push_back(
          {"--mode", "datasets", "",
           "--accuracy-only requires at least one accuracy dataset: give one `type: "
           "accuracy` and an accuracy_config"});
    }
    if (!problems_.empty()) {
      return tl::unexpected<base::Problems>(std::move(problems_));
    }
    return std::move(out_);
  }

 private:
  void check_turns(std::size_t i, const spec::DatasetSpec& dataset) {
    const spec::AccuracyConfig& wanted = dataset.accuracy_config;
    if (!dataset.agentic_inference.present) {
      problem(i, "accuracy_config.eval_method", "agentic_inference_inline",
              "needs a data set of conversations; give it the block agentic_inference");
    }
    if (wanted.extractor) {
      problem(i, "accuracy_config.extractor", *wanted.extractor,
              "agentic_inference_inline has its own; remove it");
    }
    for (const spec::Tree::Entry& extra : wanted.extras.entries) {
      const std::string field = "accuracy_config.extras." + extra.key;
      problem(i, field.c_str(), "", "this scorer has no such argument; remove it");
    }
  }

  void problem(std::size_t i, const char* field, std::string value, std::string remedy) {
    problems_.push_back({"", fmt::format("datasets.{}.{}", i, field), std::move(value),
                         fmt::format("{} (data set '{}')", remedy, config_.datasets[i].name)});
  }

  void take(std::size_t i, const spec::DatasetSpec& dataset) {
    const spec::AccuracyConfig& wanted = dataset.accuracy_config;
    for (const std::string_view taken : kTakenNames) {
      if (dataset.name == taken) {
        problem(i, "name", dataset.name, "is the name of a phase of its own; give it another");
      }
    }
    if (wanted.eval_method == spec::Scorer::kNone) {
      problem(i, "accuracy_config.eval_method", "",
              fmt::format("Dataset '{}' requires accuracy_config with eval_method: {}",
                          dataset.name, why_refused(wanted.eval_method)));
      return;
    }
    if (std::string why = why_refused(wanted.eval_method); !why.empty()) {
      problem(i, "accuracy_config.eval_method", "", std::move(why));
      return;
    }
    Scored scored;
    scored.dataset = i;
    scored.method.rule = rule_of(wanted.eval_method);
    take_extractor(i, wanted, scored.method);
    take_extras(i, wanted, scored.method);
    if (wanted.ground_truth) {
      scored.method.truth_column = *wanted.ground_truth;
      scored.method.truth_column_is_given = true;
    }
    out_.push_back(std::move(scored));
  }

  void take_extractor(std::size_t i, const spec::AccuracyConfig& wanted, Method& method) {
    constexpr const char* kField = "accuracy_config.extractor";
    if (!wanted.extractor) {
      problem(
          i, kField, "",
          fmt::format("names a scorer which requires an extractor: one of {}", extractor_names()));
    } else if (const auto known = extractor_named(*wanted.extractor); known) {
      method.extractor = *known;
    } else {
      problem(
          i, kField, *wanted.extractor,
          fmt::format("is unknown: Extractor '{}' is not registered - available extractors: [{}]",
                      *wanted.extractor, extractor_names()));
    }
  }

  void take_extras(std::size_t i, const spec::AccuracyConfig& wanted, Method& method) {
    for (const spec::Tree::Entry& extra : wanted.extras.entries) {
      const std::string field = "accuracy_config.extras." + extra.key;
      if (method.rule != Rule::kCategoryF1 || extra.key != "category_separator") {
        problem(i, field.c_str(), "", "this scorer has no such argument; remove it");
      } else if (extra.value.kind != spec::Tree::Kind::kString || extra.value.text.empty()) {
        problem(i, field.c_str(), "", "must be a text that is not empty, like \" > \"");
      } else {
        method.separator = extra.value.text;
      }
    }
  }

  const spec::Config& config_;
  const spec::RunMode mode_;
  std::vector<Scored> out_;
  base::Problems problems_;
};

}  // namespace

tl::expected<std::vector<Scored>, base::Problems> choose_methods(const spec::Config& config,
                                                                 spec::RunMode mode) {
  return Chooser(config, mode).choose();
}

bool scores_turns(const spec::Config& config, spec::RunMode mode) {
  return mode != spec::RunMode::kAcc &&
         std::any_of(config.datasets.begin(), config.datasets.end(), wants_turns);
}

}  // namespace tutti::accuracy
