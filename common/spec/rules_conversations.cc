// Rules of multi-turn data sets: what goes with them and what does not.

#include <fmt/format.h>

#include <algorithm>

#include "common/spec/bind.h"
#include "common/spec/rules.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kPatternField = "settings.load_pattern.type";

class ConversationRules {
 public:
  ConversationRules(const Tree& tree, const Config& config, Findings& findings)
      : tree_(tree), config_(config), findings_(findings) {}

  void check() {
    const bool plays = config_.settings.load_pattern.type == Pattern::kAgenticInference;
    bool any = false;
    for (std::size_t i = 0; i < config_.datasets.size(); ++i) {
      const DatasetSpec& dataset = config_.datasets[i];
      if (dataset.agentic_inference.present) {
        check_dataset(dataset, fmt::format("datasets.{}.", i), plays);
        any = any || dataset.type == DatasetType::kPerformance;
      }
    }
    if (!plays || !findings_.is_clean(kPatternField)) {
      return;
    }
    if (!any && findings_.is_clean("datasets")) {  // R12
      wrong(kPatternField,
            "requires the performance dataset to have agentic_inference config; give it the block");
    }
    if (config_.settings.runtime.n_samples_to_issue) {  // R13
      wrong("settings.runtime.n_samples_to_issue",
            "is not supported with agentic_inference; use the data set's "
            "num_trajectories_to_issue");
    }
    if (config_.distributed.prefetch > 0) {
      wrong("distributed.prefetch",
            "agentic_inference hands out one conversation for one free slot; remove it");
    }
    if (config_.audit.present) {
      wrong("audit.test", "asks one row for ever, which conversations cannot; remove the audit");
    }
  }

 private:
  void check_dataset(const DatasetSpec& dataset, const std::string& at, bool plays) {
    const std::string block = at + "agentic_inference";
    if (dataset.type != DatasetType::kPerformance) {  // R11
      wrong(block, "is only supported on performance datasets; remove the block");
      return;
    }
    if (!plays && findings_.is_clean(kPatternField)) {  // R14
      wrong(block, "requires load_pattern.type=agentic_inference");
    }
    if (config_.endpoint_config.api_type != base::ApiType::kOpenAiChat) {
      wrong(block, "requires endpoint_config.api_type=openai: conversations are chat messages");
    } else if (dataset.model_params.min_new_tokens != 1 ||
               !dataset.model_params.skip_special_tokens) {  // R6
      wrong(block,
            "text-completion controls (min_new_tokens, skip_special_tokens) are not supported for "
            "agentic datasets");
    }
    check_headers(dataset.agentic_inference.routing_headers, block + ".routing_headers");
  }

  void check_headers(const std::vector<std::string>& names, const std::string& field) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string problem = header_name_problem(names[i]);
      if (problem.empty() && names[i] == config_.distributed.affinity_header) {
        problem = "is distributed.affinity_header too; keep one of them";
      }
      if (!problem.empty()) {
        wrong(fmt::format("{}.{}", field, i), fmt::format("'{}' {}", names[i], problem));
      }
    }
  }

  void wrong(std::string_view field, const std::string& remedy) {
    if (findings_.is_clean(field)) {
      findings_.wrong_at(place_of(tree_, std::string(field)), field, remedy);
    }
  }

  const Tree& tree_;
  const Config& config_;
  Findings& findings_;
};

}  // namespace

void check_conversations(const Tree& tree, const Config& config, Findings& findings) {
  ConversationRules(tree, config, findings).check();
}

}  // namespace tutti::spec
