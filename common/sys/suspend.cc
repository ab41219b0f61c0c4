#include "common/sys/suspend.h"

#include <time.h>

namespace tutti::sys {
namespace {

base::Instant read_clock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return {std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec};
}

}  // namespace

SuspendReading read_suspended() {
  const base::Instant before = read_clock(CLOCK_MONOTONIC);
  const base::Instant all = read_clock(CLOCK_BOOTTIME);
  const base::Instant after = read_clock(CLOCK_MONOTONIC);
  return {all - after, all - before};
}

}  // namespace tutti::sys
