#pragma once

// The output caching audit (MLPerf TEST04): two runs beside each other, one in the usual order and
// one that asks the same row for ever. A server that is faster at the second remembers its answers.
// Here is the judgement and its files; the runs are the caller's. Pure, apart from write_audit.

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/spec/config.h"

namespace tutti::audit {

struct Phase {
  std::int64_t requested = 0;
  std::int64_t completed = 0;  // failures included
  double qps = 0;              // completed per second, > 0
};

struct Verdict {
  bool passed = false;
  std::string reason;  // one sentence
};

// Passed when both phases completed at least requested · (1 − threshold), and the audit's rate is
// below the reference's · (1 + threshold).
Verdict judge(const Phase& reference, const Phase& audit, double threshold);

// audit_output_caching_test.json
std::string json_of(const Phase& reference, const Phase& audit, double threshold,
                    const Verdict& verdict);

// Into `folder`, which exists: the JSON first, then verify_OUTPUT_CACHING_TEST.txt, each whole or
// not at all.
base::Status write_audit(const std::string& folder, const std::string& json, bool passed);

}  // namespace tutti::audit
