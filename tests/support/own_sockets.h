#pragma once

// sockets_to(): this process's own sockets, found from outside the code that holds them, so that a
// test can break one of them in ways no peer can. Any thread.

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <vector>

namespace tutti::support {

// Our sockets that are connected to `port`.
inline std::vector<int> sockets_to(std::uint16_t port) {
  std::vector<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) {
      found.push_back(fd);
    }
  }
  return found;
}

}  // namespace tutti::support
