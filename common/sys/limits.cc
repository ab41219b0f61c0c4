#include "common/sys/limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

namespace tutti::sys {
namespace {

// The number a file begins with; 0: none ("max"), or no file.
std::uint64_t number_in(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) {
    return 0;
  }
  unsigned long long number = 0;
  const int fields = std::fscanf(file, "%llu", &number);
  std::fclose(file);
  return fields == 1 ? number : 0;
}

}  // namespace

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

std::uint64_t available_memory() {
  std::uint64_t available = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "re"); file != nullptr) {
    char line[256];
    unsigned long long kib = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "MemAvailable: %llu", &kib) == 1) {
        available = kib * 1024;
        break;
      }
    }
    std::fclose(file);
  }
  const std::uint64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit > 0) {
    const std::uint64_t left = limit - std::min(limit, used);
    available = available == 0 ? left : std::min(available, left);
  }
  return available;
}

}  // namespace tutti::sys
