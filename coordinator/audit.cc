#include "coordinator/audit.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "coordinator/report/atomic_file.h"

namespace tutti::audit {
namespace {

bool completed_enough(const Phase& phase, double threshold) {
  return static_cast<double>(phase.completed) >=
         static_cast<double>(phase.requested) * (1 - threshold);
}

}  // namespace

Verdict judge(const Phase& reference, const Phase& audit, double threshold) {
  if (!completed_enough(reference, threshold) || !completed_enough(audit, threshold)) {
    return {false, fmt::format("too few requests completed: reference {}/{}, audit {}/{}",
                               reference.completed, reference.requested, audit.completed,
                               audit.requested)};
  }
  const double limit = reference.qps * (1 + threshold);
  const bool passed = audit.qps < limit;
  return {
      passed,
      fmt::format("audit {:.2f} requests/s {} {:.2f}, the reference's {:.2f} and {:g} %", audit.qps,
                  passed ? "is below" : "is not below", limit, reference.qps, threshold * 100)};
}

std::string json_of(const Phase& reference, const Phase& audit, double threshold,
                    const Verdict& verdict) {
  nlohmann::ordered_json out;
  out["test"] = "output_caching_test";
  out["passed"] = verdict.passed;
  out["ref_qps"] = reference.qps;
  out["audit_qps"] = audit.qps;
  out["threshold"] = threshold;
  out["ref_completed"] = reference.completed;
  out["ref_requested"] = reference.requested;
  out["audit_completed"] = audit.completed;
  out["audit_requested"] = audit.requested;
  out["reason"] = verdict.reason;
  return out.dump(2) + "\n";
}

base::Status write_audit(const std::string& folder, const std::string& json, bool passed) {
  auto status = report::write_atomically(folder + "/audit_output_caching_test.json", json);
  return status ? report::write_atomically(
                      folder + "/verify_OUTPUT_CACHING_TEST.txt",
                      fmt::format("Performance check pass: {}\n", passed ? "True" : "False"))
                : status;
}

}  // namespace tutti::audit
