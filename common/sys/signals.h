#pragma once

// StopSignals: SIGINT and SIGTERM as readable events of an ordinary loop. Make it in main before
// any thread starts: threads inherit the blocked mask, so that the signals come here and nowhere
// else. One owner thread.

#include <optional>

#include "common/sys/fd.h"

namespace tutti::sys {

class StopSignals {
 public:
  StopSignals();

  int fd() const { return fd_.get(); }
  // The number of a signal that arrived, one per call; nothing when there is none.
  std::optional<int> take();

 private:
  Fd fd_;
};

}  // namespace tutti::sys
