#pragma once

// One step of `tutti calibrate`: a whole run (coordinator, local agents, real transport) against
// the null server, and what was seen inside its window. Main thread only; blocks for the step.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"
#include "common/sys/signals.h"
#include "coordinator/calibrate_search.h"

namespace tutti {

// The same for all steps of a calibration.
struct CalibrationRig {
  const base::Clock* clock = nullptr;
  sys::StopSignals* signals = nullptr;
  std::string folder;  // ours, emptied at the end
  std::uint32_t agents = 1;
  std::uint32_t workers = 0;  // of each agent; 0: the agents' default
  base::Way way = base::Way::kAuto;
};

struct StepLoad {
  std::vector<std::string> urls;
  bool streaming = true;
  bool stamps = false;  // the null server's text is its stamps (--text stamp)
  // Arrivals at `per_s` (Poisson), or a concurrency held.
  double per_s = 0;
  std::uint32_t concurrency = 0;
  double offered_per_s = 0;  // events of a concurrency; of arrivals it is what was started
  // Before the window, and the window: whole seconds from the phase's start, as the agents'
  // intervals of health are.
  base::Duration settle{};
  base::Duration window{};
  base::Duration drain{};  // the longest reply, with room
};

// Client stamp less server stamp, over the window's tokens.
struct StampError {
  std::uint64_t count = 0;
  base::Duration p50{};
  base::Duration p99{};
  base::Duration p999{};
};

struct StepResult {
  StepSeen seen;
  bool interrupted = false;
  std::string broke;  // the run itself did not go through; empty: it did
  base::Duration lag_p50{};
  StampError first_tokens;
  StampError later_tokens;
};

// An error when the run could not begin (kSetup, …).
base::Result<StepResult> run_step(const CalibrationRig& rig, const StepLoad& load);

}  // namespace tutti
