#include "tests/support/test_proxy.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/base/check.h"
#include "common/text/base64.h"
#include "tests/support/certificate.h"
#include "tests/support/loopback.h"
#include "tests/support/raw_peer.h"

namespace tutti::support {
namespace {

// Exactly so many bytes, or fewer at the end of the connection.
std::string take(int fd, std::size_t count) {
  std::string got(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t n = recv(fd, got.data() + have, count - have, 0);
    if (n <= 0) {
      break;
    }
    have += static_cast<std::size_t>(n);
  }
  got.resize(have);
  return got;
}

std::string take_head(int fd) {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    const std::string byte = take(fd, 1);
    if (byte.empty()) {
      return {};
    }
    head += byte;
  }
  return head;
}

// Of names only localhost.
int connect_to(const std::string& host, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  const std::string digits = host == "localhost" ? "127.0.0.1" : host;
  if (inet_pton(AF_INET, digits.c_str(), &to.sin_addr) != 1) {
    return -1;
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

int connect_to(const std::string& authority) {
  const std::size_t colon = authority.rfind(':');
  return connect_to(authority.substr(0, colon),
                    static_cast<std::uint16_t>(std::atoi(authority.c_str() + colon + 1)));
}

bool pass_on(int from, int to) {
  char buffer[16'384];
  const ssize_t n = recv(from, buffer, sizeof buffer, 0);
  if (n <= 0) {
    return false;
  }
  RawPeer::write_all(to, std::string(buffer, static_cast<std::size_t>(n)));
  return true;
}

// Between a client behind TLS and a socket in the clear, until either side ends.
void pass_through(SSL* ssl, int client, int clear) {
  char buffer[16'384];
  pollfd both[2] = {{client, POLLIN, 0}, {clear, POLLIN, 0}};
  bool going = SSL_accept(ssl) == 1;
  while (going) {
    if (SSL_pending(ssl) == 0 && poll(both, 2, -1) <= 0) {
      break;
    }
    if (SSL_pending(ssl) > 0 || both[0].revents != 0) {
      const int n = SSL_read(ssl, buffer, sizeof buffer);
      going = n > 0;
      if (going) {
        RawPeer::write_all(clear, std::string(buffer, static_cast<std::size_t>(n)));
      }
    }
    if (going && both[1].revents != 0) {
      const ssize_t n = recv(clear, buffer, sizeof buffer, 0);
      going = n > 0 && SSL_write(ssl, buffer, static_cast<int>(n)) == n;
    }
    both[0].revents = both[1].revents = 0;
  }
  SSL_shutdown(ssl);
  SSL_free(ssl);
  shutdown(clear, SHUT_RDWR);
}

std::size_t length_of(const std::string& head) {
  const std::string name = "Content-Length: ";
  const std::size_t at = head.find(name);
  return at == std::string::npos
             ? 0
             : static_cast<std::size_t>(std::atol(head.c_str() + at + name.size()));
}

constexpr const char* kNeedsLogin =
    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"t\"\r\n"
    "Content-Length: 0\r\n\r\n";

}  // namespace

TestProxy::TestProxy(ProxyRules rules)
    : rules_(std::move(rules)),
      door_(nullptr, SSL_CTX_free),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (rules_.tls) {
    open_door();
  }
  port_ = bind_loopback(listener_.get());
  TUTTI_CHECK(listen(listener_.get(), 256) == 0);
  acceptor_ = std::thread([this] { accept_loop(); });
}

TestProxy::~TestProxy() {
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) {
      shutdown(fd, SHUT_RDWR);
    }
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

std::string TestProxy::label() const { return fmt::format("127.0.0.1:{}", port_); }

std::string TestProxy::url(const std::string& scheme, const std::string& login) const {
  return fmt::format("{}://{}{}{}", scheme, login, login.empty() ? "" : "@", label());
}

std::vector<std::string> TestProxy::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void TestProxy::note(std::string asked) {
  const std::lock_guard lock(mutex_);
  asked_.push_back(std::move(asked));
}

void TestProxy::open_door() {
  door_.reset(SSL_CTX_new(TLS_server_method()));
  const std::string file = fmt::format("/tmp/tutti-proxy-{}-{}.pem", getpid(), listener_.get());
  make_certificate({}, door_.get(), file);
  std::ifstream pem(file, std::ios::binary);
  certificate_.assign(std::istreambuf_iterator<char>(pem), {});
  std::filesystem::remove(file);
}

// The clear end of what comes from `client`. Under the lock of accept_loop().
int TestProxy::behind_door(int client) {
  int ends[2] = {-1, -1};
  TUTTI_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  SSL* const ssl = SSL_new(door_.get());
  SSL_set_fd(ssl, client);
  open_.push_back(client);
  threads_.emplace_back([this, ssl, client, clear = ends[0]] {
    pass_through(ssl, client, clear);
    close(clear);
    const std::lock_guard lock(mutex_);
    open_.erase(std::find(open_.begin(), open_.end(), client));
    close(client);
  });
  return ends[1];
}

void TestProxy::accept_loop() {
  while (true) {
    int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      return;
    }
    ++connections_;
    const std::lock_guard lock(mutex_);
    fd = door_ != nullptr ? behind_door(fd) : fd;
    open_.push_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void TestProxy::serve(int client) {
  rules_.socks ? serve_socks(client) : serve_http(client);
  const std::lock_guard lock(mutex_);
  open_.erase(std::find(open_.begin(), open_.end(), client));
  close(client);
}

// Until either side ends.
void TestProxy::relay(int client, int upstream) {
  pollfd both[2] = {{client, POLLIN, 0}, {upstream, POLLIN, 0}};
  while (poll(both, 2, -1) > 0) {
    if ((both[0].revents != 0 && !pass_on(client, upstream)) ||
        (both[1].revents != 0 && !pass_on(upstream, client))) {
      break;
    }
  }
  close(upstream);
}

bool TestProxy::may_pass(const std::string& head) const {
  const std::string login = text::base64(rules_.user + ":" + rules_.password);
  return rules_.user.empty() ||
         head.find("Proxy-Authorization: Basic " + login + "\r\n") != std::string::npos;
}

// A connection's plain requests all go to the frontend of the first one.
void TestProxy::serve_http(int client) {
  std::string head;
  int upstream = -1;
  while (!(head = take_head(client)).empty()) {
    note(head);
    const std::size_t space = head.find(' ');
    std::string target = head.substr(space + 1, head.find(' ', space + 1) - space - 1);
    const bool tunnel = head.starts_with("CONNECT ");
    const std::string body = take(client, length_of(head));
    if (!may_pass(head)) {
      RawPeer::write_all(client, kNeedsLogin);
      continue;
    }
    if (!tunnel) {
      target = target.substr(std::strlen("http://"));
    }
    const std::size_t slash = std::min(target.find('/'), target.size());
    upstream = upstream < 0 ? connect_to(target.substr(0, slash)) : upstream;
    if (upstream < 0) {
      RawPeer::write_all(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
      continue;
    }
    if (tunnel) {
      RawPeer::write_all(client, "HTTP/1.1 200 Connection established\r\n\r\n");
      relay(client, upstream);
      return;
    }
    RawPeer::write_all(upstream,
                       "POST " + target.substr(slash) + head.substr(head.find(" HTTP/")) + body);
    pollfd both[2] = {{client, POLLIN, 0}, {upstream, POLLIN, 0}};
    while (poll(both, 2, -1) > 0 && both[0].revents == 0) {
      if (!pass_on(upstream, client)) {
        close(upstream);
        return;
      }
    }
  }
  if (upstream >= 0) {
    close(upstream);
  }
}

// RFC 1928 and 1929, as far as a client that connects needs them.
void TestProxy::serve_socks(int client) {
  const std::string hello = take(client, 2);
  if (hello.size() != 2) {
    return;
  }
  take(client, static_cast<unsigned char>(hello[1]));
  const bool wants_login = !rules_.user.empty();
  RawPeer::write_all(client, {'\5', wants_login ? '\2' : '\0'});
  if (wants_login) {
    const auto field = [client] {
      const std::string size = take(client, 1);
      return size.empty() ? size : take(client, static_cast<unsigned char>(size[0]));
    };
    take(client, 1);
    const std::string user = field();
    const bool fits = field() == rules_.password && user == rules_.user;
    RawPeer::write_all(client, {'\1', fits ? '\0' : '\1'});
    if (!fits) {
      return;
    }
  }
  const std::string order = take(client, 4);
  if (order.size() != 4) {
    return;
  }
  std::string host;
  if (order[3] == '\1') {
    const std::string four = take(client, 4);
    char digits[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, four.data(), digits, sizeof digits);
    host = digits;
  } else {
    const std::string size = take(client, 1);
    host = take(client, static_cast<unsigned char>(size.at(0)));
  }
  const std::string port = take(client, 2);
  std::uint16_t number = 0;
  std::memcpy(&number, port.data(), 2);
  note(fmt::format("{}:{}", host, ntohs(number)));
  const int upstream = connect_to(host, ntohs(number));
  RawPeer::write_all(
      client, std::string{'\5', upstream < 0 ? '\5' : '\0', '\0', '\1'} + std::string(6, '\0'));
  if (upstream >= 0) {
    relay(client, upstream);
  }
}

}  // namespace tutti::support
