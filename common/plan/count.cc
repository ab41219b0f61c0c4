#include "common/plan/count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tutti::plan {
namespace {

constexpr double kPadding = 1.1;

tl::unexpected<base::Error> refuse(std::string message) {
  return base::fail(base::ExitCode::kInput, std::move(message));
}

base::Result<base::Seq> padded(std::uint32_t rows, double target_qps, std::int64_t min_issue_ms) {
  const double seconds = static_cast<double>(min_issue_ms) / 1000.0;
  const double wanted = std::max(1.0, std::ceil((target_qps * seconds) * kPadding));
  if (!(wanted <= static_cast<double>(kTotalMax))) {
    return refuse(
        fmt::format("target_qps {} for {} ms makes more than {} queries; lower one of them "
                    "or give n_samples_to_issue",
                    target_qps, min_issue_ms, kTotalMax));
  }
  const auto least = static_cast<std::uint64_t>(wanted);
  return (least + rows - 1) / rows * rows;
}

}  // namespace

base::Result<base::Seq> total_samples(const CountSpec& spec) {
  if (spec.dataset_rows == 0) {
    return refuse("the data set is empty; a phase needs at least one row");
  }
  if (spec.asked) {
    if (*spec.asked == 0 || *spec.asked > kTotalMax) {
      return refuse(
          fmt::format("n_samples_to_issue: {} must be between 1 and {}", *spec.asked, kTotalMax));
    }
    return *spec.asked;
  }
  if (!spec.min_issue_ms || *spec.min_issue_ms == 0) {
    return base::Seq{spec.dataset_rows};
  }
  if (*spec.min_issue_ms < 0) {
    return refuse(
        fmt::format("min_issue_duration_ms: {} must not be negative", *spec.min_issue_ms));
  }
  if (!spec.target_qps) {
    return refuse(
        "min_issue_duration_ms: a least duration needs a poisson load with target_qps; give "
        "n_samples_to_issue instead");
  }
  if (!std::isfinite(*spec.target_qps) || *spec.target_qps <= 0.0) {
    return refuse(fmt::format("target_qps: {} must be a finite rate above 0", *spec.target_qps));
  }
  return padded(spec.dataset_rows, *spec.target_qps, *spec.min_issue_ms);
}

}  // namespace tutti::plan
