#include "common/sys/timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>

#include "common/base/check.h"

namespace tutti::sys {

AbsoluteTimer::AbsoluteTimer() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  TUTTI_CHECK(fd_.is_open());
}

void AbsoluteTimer::set(base::Instant at) {
  if (at == at_) {
    return;
  }
  at_ = at;
  itimerspec spec{};
  if (at != base::kFarFuture) {
    // {0, 0} would disarm instead of firing at once.
    const std::int64_t ns = at.ns > 0 ? at.ns : 1;
    spec.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    spec.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  }
  TUTTI_CHECK(timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
}

void AbsoluteTimer::set_at_latest(base::Instant at) {
  if (at < at_) {
    set(at);
  }
}

void AbsoluteTimer::quiet() {
  std::uint64_t expirations = 0;
  if (read(fd_.get(), &expirations, sizeof expirations) > 0) {
    at_ = base::kFarFuture;
  }
}

}  // namespace tutti::sys
