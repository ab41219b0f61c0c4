#include "common/sys/limits.h"

#include <sys/resource.h>

#include <cstdio>

namespace tutti::sys {

OpenFilesLimit open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {};
  }
  return {limit.rlim_cur, limit.rlim_max};
}

OpenFilesLimit raise_open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return open_files_limit();
}

std::uint32_t ephemeral_ports() {
  std::FILE* file = std::fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
  if (file == nullptr) {
    return 0;
  }
  unsigned low = 0;
  unsigned high = 0;
  const int fields = std::fscanf(file, "%u %u", &low, &high);
  std::fclose(file);
  return fields == 2 && high >= low ? high - low + 1 : 0;
}

}  // namespace tutti::sys
