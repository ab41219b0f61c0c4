#pragma once

// Poller: an epoll set. Level-triggered unless a descriptor is watched with kOnEdge. Events carry
// the descriptor they are about. One owner thread; a descriptor that is closed leaves the set by
// itself.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/sys/fd.h"

namespace tutti::sys {

inline constexpr std::uint32_t kReadable = 0x1;  // EPOLLIN
inline constexpr std::uint32_t kWritable = 0x4;  // EPOLLOUT
inline constexpr std::uint32_t kBroken = 0x18;   // EPOLLERR | EPOLLHUP, always reported
// EPOLLET: told when something comes, and not again for what was left lying. Spares the kernel a
// second look at each descriptor, in the wait after the one that told of it.
inline constexpr std::uint32_t kOnEdge = 0x80000000;

struct Ready {
  int fd = -1;
  std::uint32_t events = 0;  // bits of the above
};

class Poller {
 public:
  explicit Poller(std::size_t events_per_wait);

  // `events`: kReadable, kWritable, kOnEdge. False with errno set (EMFILE-like limits, bad fd).
  bool add(int fd, std::uint32_t events);
  // Tells at once of what lies there already, on the edge too.
  bool change(int fd, std::uint32_t events);
  void remove(int fd);

  // Blocks up to `timeout_ms` (-1: for ever, 0: not at all). The span lives until the next wait.
  std::span<const Ready> wait(int timeout_ms);

  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
  std::vector<Ready> ready_;
  std::vector<std::uint64_t> raw_;  // room for struct epoll_event, kept out of this header
  std::size_t events_per_wait_;
};

}  // namespace tutti::sys
