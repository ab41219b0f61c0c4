#pragma once

// Sockets of tests on 127.0.0.1. Pure but for the calls; any thread.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "common/base/check.h"

namespace tutti::support {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Binds to a free port, and gives it.
inline std::uint16_t bind_loopback(int fd) {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  TUTTI_CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0);
  TUTTI_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  return ntohs(address.sin_port);
}

}  // namespace tutti::support
