#include "tests/mock_llm/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace tutti::mock_llm {
namespace {

constexpr int kBacklog = 65535;  // the kernel cuts it to net.core.somaxconn

SSL* as_ssl(void* ssl) { return static_cast<SSL*>(ssl); }

std::string tls_reason() {
  char text[256];
  const unsigned long code = ERR_get_error();
  if (code == 0) {
    return "no reason given";
  }
  ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

IoResult tls_outcome(SSL* ssl, int returned) {
  const int error = SSL_get_error(ssl, returned);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    return {Io::kBlocked, 0};
  }
  return {error == SSL_ERROR_ZERO_RETURN ? Io::kClosed : Io::kFailed, 0};
}

base::Error setup_error(std::string message) {
  return base::Error{base::ExitCode::kSetup, std::move(message)};
}

std::uint16_t bound_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  }
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

base::Result<Listener> listen_on(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (const int code = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found); code != 0) {
    return tl::unexpected(
        setup_error(fmt::format("--host: \"{}\": {}", host, ::gai_strerror(code))));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  Listener listener{Fd(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
                    0};
  const int fd = listener.fd.get();
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (fd < 0 || ::bind(fd, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd, kBacklog) != 0) {
    const int error = errno;
    return tl::unexpected(
        setup_error(fmt::format("--port: {}: cannot listen on {}:{}: {}; choose another port, or 0",
                                port, host, port, std::strerror(error))));
  }
  listener.port = bound_port(fd);
  return listener;
}

std::uint64_t raise_fd_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 0;
  }
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

TlsSession::~TlsSession() { SSL_free(as_ssl(ssl_)); }

base::Result<std::unique_ptr<TlsServer>> TlsServer::open(const std::string& cert_file,
                                                         const std::string& key_file) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) {
    return tl::unexpected(setup_error("TLS cannot start: " + tls_reason()));
  }
  std::unique_ptr<TlsServer> server(new TlsServer(context));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context, cert_file.c_str()) != 1) {
    return tl::unexpected(setup_error(fmt::format(
        "--tls-cert: \"{}\" is no readable PEM certificate: {}", cert_file, tls_reason())));
  }
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return tl::unexpected(
        setup_error(fmt::format("--tls-key: \"{}\" is no readable PEM key of the certificate: {}",
                                key_file, tls_reason())));
  }
  return server;
}

TlsServer::~TlsServer() { SSL_CTX_free(static_cast<SSL_CTX*>(context_)); }

std::unique_ptr<TlsSession> TlsServer::start(int fd) const {
  SSL* ssl = SSL_new(static_cast<SSL_CTX*>(context_));
  if (ssl == nullptr) {
    return nullptr;
  }
  auto session = std::make_unique<TlsSession>(ssl);
  if (SSL_set_fd(ssl, fd) != 1) {
    return nullptr;
  }
  SSL_set_accept_state(ssl);
  return session;
}

IoResult SocketCalls::receive(int fd, TlsSession* tls, char* buffer, std::size_t size) {
  if (tls != nullptr) {
    SSL* ssl = as_ssl(tls->ssl_);
    const int got = SSL_read(ssl, buffer, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    return got > 0 ? IoResult{Io::kDone, static_cast<std::size_t>(got)} : tls_outcome(ssl, got);
  }
  const ssize_t got = ::recv(fd, buffer, size, 0);
  if (got > 0) {
    return {Io::kDone, static_cast<std::size_t>(got)};
  }
  if (got == 0) {
    return {Io::kClosed, 0};
  }
  return {errno == EAGAIN || errno == EINTR ? Io::kBlocked : Io::kFailed, 0};
}

IoResult SocketCalls::send(int fd, TlsSession* tls, std::string_view bytes) {
  if (tls != nullptr) {
    SSL* ssl = as_ssl(tls->ssl_);
    const int size = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
    const int put = SSL_write(ssl, bytes.data(), size);
    return put > 0 ? IoResult{Io::kDone, static_cast<std::size_t>(put)} : tls_outcome(ssl, put);
  }
  const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (put >= 0) {
    return {Io::kDone, static_cast<std::size_t>(put)};
  }
  return {errno == EAGAIN || errno == EINTR ? Io::kBlocked : Io::kFailed, 0};
}

void SocketCalls::finish_sending(int fd, TlsSession* tls, bool polite) {
  if (tls != nullptr && polite) {
    SSL_shutdown(as_ssl(tls->ssl_));
    ERR_clear_error();
  }
  ::shutdown(fd, SHUT_WR);
}

void SocketCalls::make_close_a_reset(int fd) {
  const linger hard{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

}  // namespace tutti::mock_llm
