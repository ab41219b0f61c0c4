#include "common/base/time.h"

#include <time.h>

namespace tutti::base {
namespace {

std::int64_t read_clock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}

}  // namespace

Instant SystemClock::mono() const { return {read_clock(CLOCK_MONOTONIC)}; }

std::int64_t SystemClock::wall_unix_ns() const { return read_clock(CLOCK_REALTIME); }

}  // namespace tutti::base
