#pragma once

// Http2Front: nghttpx (Debian's nghttp2-proxy) as an HTTP/2 frontend before an HTTP/1.1 server on
// loopback, plain or TLS. Tests that need one say so and are skipped where it is not installed.
// Killed with its owner. One thread.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "common/base/check.h"
#include "common/sys/fd.h"
#include "tests/support/program.h"
#include "tests/support/scripted_server.h"

namespace tutti::support {

struct Http2Shape {
  int streams_max = 100;  // of one connection, as its SETTINGS say
  std::string cert_file{};
  std::string key_file{};  // both empty: without TLS
};

class Http2Front {
 public:
  static constexpr const char* kProgram = "/usr/sbin/nghttpx";
  static bool is_there() { return access(kProgram, X_OK) == 0; }

  explicit Http2Front(std::uint16_t backend_port, const Http2Shape& shape = {})
      : tls_(!shape.cert_file.empty()), port_(closed_port()) {
    std::vector<std::string> words{kProgram,
                                   "--conf=/dev/null",
                                   "--single-process",
                                   "-n1",
                                   fmt::format("-f127.0.0.1,{}{}", port_, tls_ ? "" : ";no-tls"),
                                   fmt::format("-b127.0.0.1,{}", backend_port),
                                   fmt::format("-c{}", shape.streams_max),
                                   "--no-ocsp"};
    if (tls_) {
      words.insert(words.end(), {shape.key_file, shape.cert_file});
    }
    program_ = std::make_unique<testing_support::Program>(std::move(words));
    bool up = false;
    for (int tries = 0; tries < 500 && !up; ++tries) {
      up = answers();
      std::this_thread::sleep_for(std::chrono::milliseconds(up ? 0 : 10));
    }
    TUTTI_CHECK(up);
  }

  std::uint16_t port() const { return port_; }
  std::string base() const {
    return fmt::format("{}://127.0.0.1:{}", tls_ ? "https" : "http", port_);
  }
  std::string url() const { return base() + "/v1/chat/completions"; }

 private:
  bool answers() const {
    const sys::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }

  bool tls_;
  std::uint16_t port_;
  std::unique_ptr<testing_support::Program> program_;
};

}  // namespace tutti::support
