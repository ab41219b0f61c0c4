#pragma once

// RawPeer: a loopback listener whose every connection is handled by the test's own function, byte
// by byte, one after the other on one thread. For what a well-behaved server never does. Construct
// and destroy on the test's thread.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/sys/fd.h"
#include "tests/support/loopback.h"

namespace tutti::support {

class RawPeer {
 public:
  // `handle` gets the connection and its number, from 0; the peer closes it afterwards.
  // `receive_buffer` above 0 bounds what the kernel takes in before `handle` reads.
  explicit RawPeer(std::function<void(int fd, std::size_t number)> handle, int receive_buffer = 0)
      : handle_(std::move(handle)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      setsockopt(listener_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    port_ = bind_loopback(listener_.get());
    TUTTI_CHECK(listen(listener_.get(), 64) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  ~RawPeer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::string url(const char* host = "127.0.0.1") const {
    return fmt::format("http://{}:{}/v1/chat/completions", host, port_);
  }
  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return connections_; }

  // Until the bytes hold `end`, or the other side closes.
  static std::string read_until(int fd, const std::string& end) {
    std::string got;
    char buffer[16'384];
    while (got.find(end) == std::string::npos) {
      const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
      if (n <= 0) {
        break;
      }
      got.append(buffer, static_cast<std::size_t>(n));
    }
    return got;
  }
  static void write_all(int fd, const std::string& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n <= 0) {
        return;
      }
      done += static_cast<std::size_t>(n);
    }
  }

 private:
  void serve() {
    while (true) {
      const sys::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.is_open()) {
        return;
      }
      handle_(fd.get(), connections_++);
    }
  }

  std::function<void(int, std::size_t)> handle_;
  sys::Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> connections_{0};
  std::thread thread_;
};

}  // namespace tutti::support
