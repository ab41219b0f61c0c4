#pragma once

// What a process has used so far, from /proc: CPU of all its threads (nanoseconds, by the
// scheduler), of its main thread, and its peak of resident memory. Zeros when it is gone. Cold
// path.

#include <sys/types.h>

#include <cstdint>

namespace tutti::centre {

struct ProcessUse {
  double cpu_s = 0;
  double main_cpu_s = 0;
  std::uint64_t peak_rss_kb = 0;
};

ProcessUse use_of(pid_t pid);

}  // namespace tutti::centre
