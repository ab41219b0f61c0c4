#pragma once

// Method: how one data set's replies are scored, chosen from its accuracy_config. choose_methods()
// refuses by name, all at once, what is not scored here, so that no run is made whose answers
// nobody can judge. Pure.

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/spec/config.h"
#include "coordinator/accuracy/extract.h"

namespace tutti::accuracy {

enum class Rule : std::uint8_t { kPassAt1, kStringMatch, kCategoryF1, kRouge };

struct Method {
  Rule rule = Rule::kPassAt1;
  Extractor extractor = Extractor::kIdentity;
  std::string truth_column = "ground_truth";
  bool truth_column_is_given = false;
  std::string separator = " > ";  // kCategoryF1: between the levels of a category
};

// A data set of the config that is to be asked and scored.
struct Scored {
  std::size_t dataset = 0;  // index in Config::datasets
  Method method;
};

// The accuracy data sets in config order; none in perf mode. Fields are named "datasets.0.…".
// What is wrong with the scoring of conversations (scores_turns()) is told here, too.
tl::expected<std::vector<Scored>, base::Problems> choose_methods(const spec::Config& config,
                                                                 spec::RunMode mode);

// Whether the turns of the performance phase's conversations are compared with the recorded ones
// (agentic_inference_inline). It costs no request, so a perf run does it, too.
bool scores_turns(const spec::Config& config, spec::RunMode mode);

}  // namespace tutti::accuracy
