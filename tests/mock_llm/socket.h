#pragma once

// The few socket calls the mock makes, plain or through TLS, with their outcomes as values. Sockets
// are non-blocking. OpenSSL stays in the .cc.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace tutti::mock_llm {

// A file descriptor closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Listener {
  Fd fd;
  std::uint16_t port = 0;  // the one really bound
};

// `host` is an address or a name, IPv4 or IPv6. TCP_NODELAY is set, and accepted sockets inherit
// it.
base::Result<Listener> listen_on(const std::string& host, std::uint16_t port);

// Raises RLIMIT_NOFILE to its hard limit; the limit now in force.
std::uint64_t raise_fd_limit();

// One TLS session on one socket; the handshake happens inside the first reads.
class TlsSession {
 public:
  explicit TlsSession(void* ssl) : ssl_(ssl) {}
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

 private:
  friend struct SocketCalls;
  void* ssl_;
};

class TlsServer {
 public:
  static base::Result<std::unique_ptr<TlsServer>> open(const std::string& cert_file,
                                                       const std::string& key_file);
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer();
  // Null when OpenSSL has no memory left.
  std::unique_ptr<TlsSession> start(int fd) const;

 private:
  explicit TlsServer(void* context) : context_(context) {}
  void* context_;
};

enum class Io : std::uint8_t { kDone, kBlocked, kClosed, kFailed };

struct IoResult {
  Io io = Io::kDone;
  std::size_t bytes = 0;
};

struct SocketCalls {
  // `tls` may be null. kDone has bytes > 0; kClosed: the peer sent FIN.
  static IoResult receive(int fd, TlsSession* tls, char* buffer, std::size_t size);
  static IoResult send(int fd, TlsSession* tls, std::string_view bytes);
  // FIN after what was sent; with `polite`, TLS says goodbye before.
  static void finish_sending(int fd, TlsSession* tls, bool polite);
  // The close that follows will be a reset.
  static void make_close_a_reset(int fd);
};

}  // namespace tutti::mock_llm
