#pragma once

// MeasurementWindow: when a measured phase began and ended, told to power telemetry through a file
// in SRT_MEASUREMENT_WINDOW_DIR, beside a result file of the same name in the run folder. Written
// when the phase starts ("running") and again at the end; never for a warm-up. Main thread only.

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/time.h"
#include "common/spec/config.h"
#include "coordinator/launch/srt.h"
#include "coordinator/report/report.h"

namespace tutti {

class MeasurementWindow {
 public:
  // Nothing when the variable names no folder, or, with a warning, when the load has no
  // concurrency: windows are filed by it.
  static std::optional<MeasurementWindow> open(const launch::Environment& environment,
                                               const spec::Config& config,
                                               const std::string& folder);

  void phase_starts(const report::PhaseFacts& phase, const base::Clock& clock);
  // Writes the result file and the final window. A failure is a warning: the run stands without.
  void ended(const report::Report& report);

 private:
  MeasurementWindow() = default;
  void write(const launch::Window& window) const;

  std::string folder_;       // of the run
  std::string window_path_;  // in the telemetry's folder
  std::string result_file_;  // in the run folder
  launch::Window window_;
  bool running_ = false;
};

}  // namespace tutti
