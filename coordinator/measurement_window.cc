#include "coordinator/measurement_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "common/base/log.h"
#include "coordinator/report/atomic_file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLogs = "/logs/";

// The result file as the telemetry wants it named: from the log folder, which is /logs in a
// container and elsewhere the folder that run and windows have in common.
std::string path_from_logs(const fs::path& result, const fs::path& windows) {
  if (result.string().rfind(kLogs, 0) == 0 && windows.string().rfind(kLogs, 0) == 0) {
    return fs::relative(result, kLogs).generic_string();
  }
  fs::path common;
  auto theirs = windows.begin();
  for (const fs::path& part : result) {
    if (theirs == windows.end() || *theirs != part) {
      break;
    }
    common /= part;
    ++theirs;
  }
  return fs::relative(result, common).generic_string();
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

std::optional<MeasurementWindow> MeasurementWindow::open(const launch::Environment& environment,
                                                         const spec::Config& config,
                                                         const std::string& folder) {
  const auto windows = environment("SRT_MEASUREMENT_WINDOW_DIR");
  std::error_code error;
  if (!windows || !fs::is_directory(*windows, error)) {
    return std::nullopt;
  }
  const auto& concurrency = config.settings.load_pattern.target_concurrency;
  if (!concurrency) {
    base::log_warning("window",
                      "SRT_MEASUREMENT_WINDOW_DIR is set, but this load has no target_concurrency "
                      "to file a window under: none is written");
    return std::nullopt;
  }
  MeasurementWindow out;
  const std::string name = fmt::format("measurement_c{}.json", *concurrency);
  out.folder_ = folder;
  out.result_file_ = "performance/" + name;
  out.window_path_ = *windows + "/" + name;
  out.window_.concurrency = *concurrency;
  out.window_.result_path =
      path_from_logs(fs::absolute(folder + "/" + out.result_file_), fs::absolute(*windows));
  return out;
}

void MeasurementWindow::write(const launch::Window& window) const {
  if (auto status = report::replace_quickly(window_path_, launch::window_json(window)); !status) {
    base::log_warning("window", status.error().message);
  }
}

void MeasurementWindow::phase_starts(const report::PhaseFacts& phase, const base::Clock& clock) {
  if (phase.kind != base::PhaseKind::kPerformance || running_) {
    return;
  }
  running_ = true;
  window_.status = "running";
  window_.start_unix_s = seconds(clock.wall_unix_ns() + (phase.start_at - clock.mono()).ns);
  write(window_);
}

void MeasurementWindow::ended(const report::Report& report) {
  const auto& phases = report.facts.phases;
  const auto measured = std::find_if(phases.begin(), phases.end(), [](const auto& phase) {
    return phase.kind == base::PhaseKind::kPerformance;
  });
  if (measured == phases.end()) {
    return;
  }
  const std::int64_t start_ns =
      report.facts.started_wall_ns + (measured->start_at - report.facts.started_at).ns;
  window_.start_unix_s = seconds(start_ns);
  window_.end_unix_s = seconds(start_ns + report.summary.duration_ns.value_or(0));
  if (report.verdict.valid) {
    window_.status = "completed";
  } else if (report.facts.interrupted_by_user) {
    window_.status = "interrupted";
  } else {
    window_.status = "failed";
    window_.reason =
        report.verdict.reasons.empty() ? "the run is INVALID" : report.verdict.reasons.front().text;
  }
  // The same numbers in both files, to the bit.
  launch::Window result = window_;
  result.result_path = "result_summary.json";
  if (auto status =
          report::write_atomically(folder_ + "/" + result_file_, launch::window_json(result));
      !status) {
    base::log_warning("window", status.error().message);
  }
  write(window_);
}

}  // namespace tutti
