#pragma once

// The rows of one data set of the config, as a run asks them and as its replies are scored. Reads
// files; may fetch from the hub. Errors carry the exit code of the reference's table.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/data/dataset.h"
#include "common/spec/config.h"
#include "coordinator/accuracy/method.h"

namespace tutti::conduct {

// A data set whose replies are scored, and how.
struct AccuracyInput {
  std::string name;  // of its phase, too
  data::Dataset dataset;
  accuracy::Method method;
  std::uint64_t repeats = 1;
  std::uint32_t phase = 0;  // index among the run's phases
};

// `truth_column`: of right answers, kept in Dataset::truths.
base::Result<data::Dataset> read_dataset(const spec::Config& config,
                                         const spec::DatasetSpec& wanted,
                                         std::optional<std::string> truth_column = std::nullopt);

// All but the phase. `scored` is of `config`.
base::Result<AccuracyInput> read_accuracy_set(const spec::Config& config,
                                              const accuracy::Scored& scored);

}  // namespace tutti::conduct
