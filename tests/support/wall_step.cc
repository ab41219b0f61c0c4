// A library for LD_PRELOAD: a process whose wall clock steps, as when somebody sets the date or a
// time service steps it. The step comes once the file WALL_STEP_FILE exists; it is WALL_STEP_S
// seconds. With WALL_STEP_STAMPS=1 the kernel's receive stamps step along, as they do on a host
// whose clock is really set; without, only this process sees another wall time than its kernel.
// The monotonic clock never steps. With WALL_STEP_SUSPEND=1 the clock that counts sleep steps
// along, as on a host that was suspended for that long.

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

int real_clock(clockid_t id, timespec* out) {
  static auto* const real = next<int(clockid_t, timespec*)>("clock_gettime");
  return real(id, out);
}

// Seconds to add now. The file is looked for at most every 5 ms.
std::int64_t step_s() {
  static const char* const file = std::getenv("WALL_STEP_FILE");
  static const char* const seconds = std::getenv("WALL_STEP_S");
  static std::atomic<bool> stepped{false};
  static std::atomic<std::int64_t> look_at_ns{0};
  if (file == nullptr || seconds == nullptr) {
    return 0;
  }
  if (!stepped.load()) {
    timespec mono{};
    real_clock(CLOCK_MONOTONIC, &mono);
    const std::int64_t now_ns = std::int64_t{mono.tv_sec} * 1'000'000'000 + mono.tv_nsec;
    if (now_ns < look_at_ns.load()) {
      return 0;
    }
    look_at_ns.store(now_ns + 5'000'000);
    if (access(file, F_OK) != 0) {
      return 0;
    }
    stepped.store(true);
  }
  return std::atoll(seconds);
}

// What recvmsg() got, with its stamp where the kernel's would be.
ssize_t stepped_along(ssize_t got, msghdr& message) {
  static const bool stamps = std::getenv("WALL_STEP_STAMPS") != nullptr;
  if (got <= 0 || !stamps) {
    return got;
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) {
      timespec at{};
      std::memcpy(&at, CMSG_DATA(part), sizeof at);
      at.tv_sec += step_s();
      std::memcpy(CMSG_DATA(part), &at, sizeof at);
    }
  }
  return got;
}

bool is_wall(clockid_t id) { return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t id, timespec* out) noexcept {
  const int rc = real_clock(id, out);
  static const bool suspend = std::getenv("WALL_STEP_SUSPEND") != nullptr;
  if (rc == 0 && (is_wall(id) || (suspend && id == CLOCK_BOOTTIME))) {
    out->tv_sec += step_s();
  }
  return rc;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) {
    *out = now.tv_sec;
  }
  return now.tv_sec;
}

int gettimeofday(timeval* out, void* zone) noexcept {
  static auto* const real = next<int(timeval*, void*)>("gettimeofday");
  const int rc = real(out, zone);
  if (rc == 0) {
    out->tv_sec += step_s();
  }
  return rc;
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static auto* const real = next<ssize_t(int, msghdr*, int)>("recvmsg");
  return stepped_along(real(fd, message, flags), *message);
}

// The agent's hot path goes to the kernel this way. All calls have six words at most.
long syscall(long number, ...) noexcept {
  static auto* const real = next<long(long, ...)>("syscall");
  std::va_list words;
  va_start(words, number);
  long a[6];
  for (long& word : a) {
    word = va_arg(words, long);
  }
  va_end(words);
  const long got = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  return number == SYS_recvmsg ? stepped_along(got, *reinterpret_cast<msghdr*>(a[1])) : got;
}

}  // extern "C"
