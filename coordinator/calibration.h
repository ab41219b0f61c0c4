#pragma once

// Calibration: the searches of `tutti calibrate`, one after the other, each within its share of the
// time: requests, events of streams, streams held, then the stamps. Starts and ends the null
// servers. Main thread only.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "coordinator/calibrate_search.h"
#include "coordinator/calibrate_step.h"
#include "coordinator/null_server.h"

namespace tutti {

// What one search found, in words for the table.
struct Finding {
  double best = 0;
  bool at_least = false;  // no load was tried that fell short, or not all that could be told was
  std::string above;      // why not more
};

class Calibration {
 public:
  // About `duration_s` for all of it.
  Calibration(CalibrationRig rig, double duration_s);

  // Logs each step, says what went wrong.
  base::ExitCode run();
  std::string text() const;  // the table, once run() was well
  const Finding& requests() const { return requests_; }
  const Finding& events() const { return events_; }
  const Finding& streams() const { return streams_; }

 private:
  base::Instant now() const { return rig_.clock->mono(); }

  // Loads up to `until`; `load_of` makes a step of a number. Fails when a run broke.
  template <class LoadOf>
  bool search(const char* what, LoadSearch& search, base::Instant until, LoadOf load_of,
              Finding& out);
  bool step(const StepLoad& load, StepResult& out);
  bool serve(std::size_t processes, const std::vector<std::string>& flags);
  bool find_requests(base::Instant until);
  bool find_events(base::Instant until);
  bool find_streams(base::Instant until);
  bool compare_stamps();
  std::size_t null_processes() const;
  StepLoad streams_of(double events_per_s) const;

  CalibrationRig rig_;
  double duration_s_;
  base::Duration window_;
  NullServer server_;
  Finding requests_;
  Finding events_;
  Finding streams_;
  StepResult stamps_;
  std::uint64_t queries_ = 0;  // sent in all steps
  std::uint64_t failed_ = 0;
  base::ExitCode failure_ = base::ExitCode::kOk;
};

}  // namespace tutti
