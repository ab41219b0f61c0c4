#pragma once

// AbsoluteTimer: a timerfd on CLOCK_MONOTONIC that becomes readable at an instant, never before it.
// One pending instant. One owner thread.

#include "common/base/time.h"
#include "common/sys/fd.h"

namespace tutti::sys {

class AbsoluteTimer {
 public:
  AbsoluteTimer();

  int fd() const { return fd_.get(); }
  // Fires at once when `at` is past; kFarFuture disarms. The same instant again: no system call.
  void set(base::Instant at);
  // As set(), but leaves an earlier pending instant alone: its wake-up will come for nothing, which
  // is cheaper than a system call at every change of mind.
  void set_at_latest(base::Instant at);
  // After it fired: makes the fd unreadable again.
  void quiet();

 private:
  Fd fd_;
  base::Instant at_ = base::kFarFuture;
};

}  // namespace tutti::sys
