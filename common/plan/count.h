#pragma once

// How many queries a performance phase issues (runtime rules of the reference client's mainline,
// first match wins): the count asked for; else, for a timed phase with a least duration, the target
// rate times that duration, padded by 10 % and rounded up to whole passes over the data set; else
// one pass. Vectors: tests/conformance/sample_count.json. Pure; no owner.

#include <cstdint>
#include <optional>

#include "common/base/result.h"
#include "common/base/vocabulary.h"

namespace tutti::plan {

struct CountSpec {
  std::uint32_t dataset_rows = 0;            // ≥ 1
  std::optional<std::uint64_t> asked;        // n_samples_to_issue: taken as it is, ≥ 1
  std::optional<double> target_qps;          // > 0, finite
  std::optional<std::int64_t> min_issue_ms;  // ≥ 0; 0 as if absent; needs target_qps
};

// Far above any real run, and exact in a double.
inline constexpr std::uint64_t kTotalMax = std::uint64_t{1} << 53;

// r = max(1, ceil((q · (ms / 1000)) · 1.1)), in IEEE double and in that order: 10 qps for 600 s
// gives 6601, since the product is 6600.000000000001. Refuses (kInput) what it cannot count, with
// the remedy.
base::Result<base::Seq> total_samples(const CountSpec& spec);

}  // namespace tutti::plan
