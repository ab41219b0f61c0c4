#include "common/sys/limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

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

// The folder of our control group (version 2), of the root where its own cannot be seen.
std::string memory_group() {
  const std::string root = "/sys/fs/cgroup";
  std::string found = root;
  if (std::FILE* file = std::fopen("/proc/self/cgroup", "re"); file != nullptr) {
    char line[4096];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      std::string text(line);
      text.erase(text.find_last_not_of('\n') + 1);
      if (text.starts_with("0::/")) {
        found = root + text.substr(3);
      }
    }
    std::fclose(file);
  }
  return number_in((found + "/memory.max").c_str()) > 0 ? found : root;
}

// Bytes of file cache that a memory.stat tells of.
std::uint64_t file_cache_in(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) {
    return 0;
  }
  char name[64];
  unsigned long long bytes = 0;
  std::uint64_t sum = 0;
  while (std::fscanf(file, "%63s %llu", name, &bytes) == 2) {
    const std::string_view word(name);
    sum += word == "active_file" || word == "inactive_file" ? bytes : 0;
  }
  std::fclose(file);
  return sum;
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
  const std::string group = memory_group();
  const std::uint64_t limit = number_in((group + "/memory.max").c_str());
  if (limit > 0) {
    // Cached files are in what is used, and are given up when memory is wanted.
    const std::uint64_t used = number_in((group + "/memory.current").c_str());
    const std::uint64_t cached = file_cache_in((group + "/memory.stat").c_str());
    const std::uint64_t left = limit - std::min(limit, used - std::min(used, cached));
    available = available == 0 ? left : std::min(available, left);
  }
  return available;
}

}  // namespace tutti::sys
