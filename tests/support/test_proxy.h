#pragma once

// TestProxy: an HTTP proxy (whole URLs and CONNECT), in the clear or behind TLS, or a SOCKS5 one on
// loopback, with threads for each connection, with or without a login. It keeps what it was asked,
// byte for byte, and answers 502 where it cannot connect. Construct and destroy on the test's
// thread.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/sys/fd.h"

struct ssl_ctx_st;

namespace tutti::support {

struct ProxyRules {
  bool socks = false;
  std::string user{};  // empty: no login wanted
  std::string password{};
  bool tls = false;  // with a certificate of its own for 127.0.0.1: certificate()
};

class TestProxy {
 public:
  explicit TestProxy(ProxyRules rules = {});
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;
  ~TestProxy();

  std::uint16_t port() const { return port_; }
  std::string label() const;
  std::string url(const std::string& scheme = "http", const std::string& login = "") const;
  // Heads of requests and of CONNECT; of SOCKS: HOST:PORT of each connection.
  std::vector<std::string> asked() const;
  std::size_t connections() const { return connections_; }
  const std::string& certificate() const { return certificate_; }  // PEM; empty without TLS

 private:
  void accept_loop();
  void open_door();
  int behind_door(int client);
  void serve(int client);
  void serve_http(int client);
  void serve_socks(int client);
  void relay(int client, int upstream);
  bool may_pass(const std::string& head) const;
  void note(std::string asked);

  ProxyRules rules_;
  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> door_;  // null without TLS
  std::string certificate_;
  sys::Fd listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::atomic<std::size_t> connections_{0};
  std::thread acceptor_;
};

}  // namespace tutti::support
