#pragma once

// What a suspended host leaves behind: a machine that slept, or a virtual one that was saved. The
// monotonic clock stands still then, so nobody who goes by it can see the gap, and its distance to
// the clocks of other hosts is not what was measured. The clock that counts sleep goes on.
// SuspendWatch is pure and belongs to one thread.

#include "common/base/time.h"

namespace tutti::sys {

// How long this host has been suspended since it booted. The two clocks cannot be read at once.
struct SuspendReading {
  base::Duration at_least{};
  base::Duration at_most{};
};
SuspendReading read_suspended();

class SuspendWatch {
 public:
  static constexpr base::Duration kLeast =
      base::Duration::millis(100);  // a host sleeps for seconds

  // How long the host was suspended since the last answer that was not zero, or the first call.
  base::Duration look(const SuspendReading& now) {
    if (!begun_) {
      begun_ = true;
      before_ = now.at_most;
    }
    const base::Duration grown = now.at_least - before_;
    if (grown < kLeast) {
      return {};
    }
    before_ = now.at_most;
    return grown;
  }

 private:
  bool begun_ = false;
  base::Duration before_{};
};

}  // namespace tutti::sys
