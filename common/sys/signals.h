#pragma once

// StopSignals: SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 as readable events of an ordinary loop. Make it
// in main before any thread starts: threads inherit the blocked mask, so that the signals come here
// and nowhere else. Children inherit it too and must unblock. One owner thread.

#include <optional>

#include "common/sys/fd.h"

namespace tutti::sys {

class StopSignals {
 public:
  StopSignals();

  int fd() const { return fd_.get(); }
  // The number of a signal that arrived, one per call; nothing when there is none.
  std::optional<int> take();
  // "SIGTERM"
  static const char* name(int signal);

 private:
  Fd fd_;
};

}  // namespace tutti::sys
