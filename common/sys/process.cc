#include "common/sys/process.h"

#include <dirent.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

namespace tutti::sys {
namespace {

base::Duration read_cpu(clockid_t id) {
  timespec ts{};
  if (clock_gettime(id, &ts) != 0) {
    return {};
  }
  return {static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec};
}

}  // namespace

std::uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) {
    return 0;
  }
  unsigned long long total = 0;
  unsigned long long resident = 0;
  const int fields = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  const long page = sysconf(_SC_PAGESIZE);
  return fields == 2 && page > 0 ? resident * static_cast<std::uint64_t>(page) : 0;
}

std::uint32_t open_descriptors() {
  struct stat facts {};
  if (stat("/proc/self/fd", &facts) == 0 && facts.st_size > 0) {
    return static_cast<std::uint32_t>(facts.st_size);
  }
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) {
    return 0;
  }
  std::uint32_t entries = 0;
  while (readdir(directory) != nullptr) {
    ++entries;
  }
  closedir(directory);
  return entries >= 3 ? entries - 3 : 0;  // ".", ".." and the listing itself
}

base::Duration thread_cpu(pthread_t thread) {
  clockid_t id{};
  return pthread_getcpuclockid(thread, &id) == 0 ? read_cpu(id) : base::Duration{};
}

base::Duration thread_cpu() { return read_cpu(CLOCK_THREAD_CPUTIME_ID); }

std::uint32_t usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0) {
    return static_cast<std::uint32_t>(CPU_COUNT(&mask));
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<std::uint32_t>(online) : 1;
}

void keep_memory_private() {
  prctl(PR_SET_DUMPABLE, 0);  // also where a core would go to another program
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

void hide_in_environment(std::string_view secret) {
  constexpr std::size_t kShortest = 6;  // "x", "none": no secrets, and parts of other words
  for (char** entry = environ; secret.size() >= kShortest && *entry != nullptr; ++entry) {
    char* const value = std::strchr(*entry, '=');
    const std::size_t length = value == nullptr ? 0 : std::strlen(value);  // with the '='
    if (length <= secret.size()) {
      continue;
    }
    char* const last = value + length - secret.size();
    // The whole value, or its last word ("Bearer …"); elsewhere it may be part of a path.
    if (secret == last && (last[-1] == '=' || last[-1] == ' ')) {
      std::memset(last, '*', secret.size());
    }
  }
}

void take_spare_time() {
  const sched_param none{};
  if (pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) != 0) {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);  // of this thread alone on Linux
  }
}

void name_this_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

}  // namespace tutti::sys
