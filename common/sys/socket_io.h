#pragma once

// The socket calls of the hot path. glibc's own are cancellation points: in a process with threads
// each of them takes two atomic steps for a pthread_cancel() that nobody here calls. These go to
// the kernel without. Results and errno as the calls of the same name, but for EINTR, after which
// sockets are asked again; what would block is EAGAIN, under either name. Any thread.

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace tutti::sys {

static_assert(EWOULDBLOCK == EAGAIN);

// `call()` until no signal came between.
template <class Call>
ssize_t unless_interrupted(Call&& call) {
  ssize_t n = call();
  while (n < 0 && errno == EINTR) {
    n = call();
  }
  return n;
}

inline ssize_t send_bytes(int fd, std::string_view bytes, int flags) {
  return unless_interrupted([&]() -> ssize_t {
    return ::syscall(SYS_sendto, fd, bytes.data(), bytes.size(), flags, nullptr, 0);
  });
}

inline ssize_t send_message(int fd, const msghdr& message, int flags) {
  return unless_interrupted(
      [&]() -> ssize_t { return ::syscall(SYS_sendmsg, fd, &message, flags); });
}

inline ssize_t receive_message(int fd, msghdr& message, int flags) {
  return unless_interrupted(
      [&]() -> ssize_t { return ::syscall(SYS_recvmsg, fd, &message, flags); });
}

inline int wait_for_events(int epoll_fd, epoll_event* events, int events_max, int timeout_ms) {
  return static_cast<int>(
      ::syscall(SYS_epoll_pwait, epoll_fd, events, events_max, timeout_ms, nullptr, 0));
}

}  // namespace tutti::sys
