#pragma once

// User and system time of this process so far, in seconds: what every client of a benchmark is
// judged by, read the same way in each.

#include <sys/resource.h>
#include <sys/time.h>

namespace tutti::bench {

inline double process_cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace tutti::bench
