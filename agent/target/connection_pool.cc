#include "agent/target/connection_pool.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/sys/socket_io.h"

namespace tutti::target {
namespace {

constexpr int kTrimmedPerTake = 4;
// A connection whose read (TCP_INQ) told this recently that neither byte nor end follows is as good
// as looked at: a slot that is refilled with its handful need not pay for another system call. What
// came later epoll tells of, at the next turn; and in less than a round trip no look sees it.
constexpr base::Duration kQuietJustNow = base::Duration::millis(1);

void set_option(int fd, int level, int name) {
  const int one = 1;
  setsockopt(fd, level, name, &one, sizeof one);
}

// What a read tells beside its bytes: when they came, and whether more or the end follows.
void ask_asides(int fd) {
  set_option(fd, SOL_SOCKET, SO_TIMESTAMPNS);
  set_option(fd, IPPROTO_TCP, TCP_INQ);
}

}  // namespace

ConnectionPool::ConnectionPool(std::size_t frontends, sys::Poller& poller, Sources& sources)
    : poller_(poller), sources_(sources), idle_(frontends) {}

// Nothing to read and no end: neither byte nor FIN nor error has come. Of TLS: no byte that would
// be part of a reply; what else came is taken in and answered.
bool ConnectionPool::quiet(Connection& connection) {
  const int fd = connection.fd.get();
  if (!connection.tls.is_open()) {
    char byte = 0;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  std::array<char, 4096> bytes;
  while (true) {
    const ssize_t n = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n <= 0) {
      return n < 0 && errno == EAGAIN;
    }
    std::string_view plain;
    const auto reading = connection.tls.decrypt({bytes.data(), static_cast<std::size_t>(n)}, plain);
    if (reading != TlsSession::Reading::kMore || !plain.empty() || flush(connection) != 0) {
      return false;
    }
  }
}

int ConnectionPool::flush(Connection& connection) {
  while (!connection.tls.to_send().empty()) {
    const std::string_view bytes = connection.tls.to_send();
    const ssize_t n = sys::send_bytes(connection.fd.get(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      return errno;
    }
    connection.tls.mark_sent(static_cast<std::size_t>(n));
  }
  return 0;
}

ConnectionPool::Place ConnectionPool::find(int fd) const {
  const auto index = static_cast<std::size_t>(fd);
  return index < by_fd_.size() ? by_fd_[index] : Place{};
}

ConnectionPool::Place& ConnectionPool::place_of(const Connection& connection) {
  return by_fd_[static_cast<std::size_t>(connection.fd.get())];
}

void ConnectionPool::note_asked(const Connection& connection) {
  place_of(connection).asked = connection.call;
}

Connection* ConnectionPool::place(StockedSocket socket, std::uint16_t frontend,
                                  Connection::State state, int& os_error) {
  const std::uint32_t events =
      state == Connection::State::kConnecting ? sys::kWritable : sys::kReadable | sys::kOnEdge;
  if (!poller_.add(socket.fd.get(), events)) {
    os_error = errno;
    sources_.closed(frontend, socket.source);
    return nullptr;
  }
  const auto index = static_cast<std::size_t>(socket.fd.get());
  if (index >= by_fd_.size()) {
    by_fd_.resize(std::max(index + 1, by_fd_.size() * 2));
  }
  if (spare_.empty()) {
    spare_.push_back(&all_.emplace_back());
  }
  Connection& connection = *spare_.back();
  spare_.pop_back();
  by_fd_[index] = {&connection, nullptr};
  connection.fd = std::move(socket.fd);
  connection.source = socket.source;
  connection.call = nullptr;
  connection.quiet_at = {};
  connection.frontend = frontend;
  connection.state = state;
  connection.watched = events;
  connection.was_open = false;
  connection.was_used = false;
  ++open_;
  return &connection;
}

Connection* ConnectionPool::adopt(StockedSocket socket, std::uint16_t frontend, int& os_error) {
  ask_asides(socket.fd.get());
  return place(std::move(socket), frontend, Connection::State::kBusy, os_error);
}

Connection* ConnectionPool::connect(const SocketAddress& address, std::uint16_t frontend,
                                    base::Instant now, int& os_error) {
  StockedSocket fresh;
  fresh.fd = sources_.open(address.storage.ss_family, frontend, fresh.source, os_error);
  if (!fresh.fd.is_open()) {
    return nullptr;
  }
  const sys::Fd& fd = fresh.fd;
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY);
  ask_asides(fd.get());
  const int rc =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  if (rc != 0 && errno != EINPROGRESS) {
    os_error = errno;
    sources_.closed(frontend, fresh.source);
    return nullptr;
  }
  Connection* connection =
      place(std::move(fresh), frontend,
            rc == 0 ? Connection::State::kBusy : Connection::State::kConnecting, os_error);
  if (connection != nullptr) {
    connection->since = now;
    if (rc != 0) {
      connecting_.add(*connection);
    }
  }
  return connection;
}

// Whether it stands is asked, not taken from the event: that one may have been meant for a
// descriptor that was closed meanwhile and had this number.
int ConnectionPool::finish_connect(const Connection& connection) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  int error = 0;
  socklen_t error_size = sizeof error;
  if (getsockopt(connection.fd.get(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) {
    return errno;
  }
  if (error != 0) {
    return error;
  }
  if (getpeername(connection.fd.get(), reinterpret_cast<sockaddr*>(&peer), &length) != 0) {
    return errno == ENOTCONN ? EINPROGRESS : errno;
  }
  return 0;
}

void ConnectionPool::stands(Connection& connection) {
  connecting_.remove(connection);
  connection.state = Connection::State::kBusy;
}

void ConnectionPool::shakes(Connection& connection, base::Instant now) {
  connection.shaking_from = now;
  if (connection.state == Connection::State::kBusy) {  // stood at once, or from elsewhere
    connection.since = now;
    connecting_.add(connection);
  }
  connection.state = Connection::State::kShaking;
}

Chain<Connection>& ConnectionPool::chain_of(const Connection& connection) {
  return connection.state == Connection::State::kIdle ? idle_[connection.frontend] : connecting_;
}

Connection* ConnectionPool::take_idle(std::uint16_t frontend, base::Instant now,
                                      base::Duration idle_max) {
  Chain<Connection>& idle = idle_[frontend];
  const auto too_old = [now, idle_max](const Connection* connection) {
    return idle_max.ns > 0 && connection->was_used && now - connection->since > idle_max;
  };
  for (int left = kTrimmedPerTake; left > 0 && idle.size() > 0 && too_old(idle.oldest()); --left) {
    close(*idle.oldest());
  }
  while (idle.size() > 0) {
    // Opened ahead of need, they do not age; they lie behind those that were used since.
    Connection& connection = *(too_old(idle.newest()) ? idle.oldest() : idle.newest());
    if (too_old(&connection)) {
      break;
    }
    const bool known_quiet =
        connection.quiet_at.is_set() && now - connection.quiet_at <= kQuietJustNow;
    if (!known_quiet && !quiet(connection)) {
      close(connection);
      continue;
    }
    idle.remove(connection);
    --idle_count_;
    connection.state = Connection::State::kBusy;
    connection.was_open = true;
    return &connection;
  }
  return nullptr;
}

void ConnectionPool::keep(Connection& connection, base::Instant now) {
  TUTTI_CHECK(connection.state == Connection::State::kBusy);
  connection.was_used = connection.was_used || connection.call != nullptr;
  connection.call = nullptr;
  place_of(connection).asked = nullptr;
  connection.state = Connection::State::kIdle;
  connection.since = now;
  idle_[connection.frontend].add(connection);
  ++idle_count_;
}

void ConnectionPool::look_at_idle(Connection& connection) {
  if (!quiet(connection)) {
    close(connection);
  }
}

bool ConnectionPool::drop_idle() {
  if (idle_count_ == 0) {
    return false;
  }
  const auto fullest = std::max_element(
      idle_.begin(), idle_.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  close(*fullest->oldest());
  return true;
}

void ConnectionPool::watch(Connection& connection, std::uint32_t events) {
  events |= sys::kOnEdge;
  if (connection.watched != events) {
    TUTTI_CHECK(poller_.change(connection.fd.get(), events));
    connection.watched = events;
  }
}

void ConnectionPool::look_again(Connection& connection) {
  TUTTI_CHECK(poller_.change(connection.fd.get(), connection.watched));
}

void ConnectionPool::close(Connection& connection) {
  if (connection.state != Connection::State::kBusy) {
    chain_of(connection).remove(connection);
    idle_count_ -= connection.state == Connection::State::kIdle ? 1U : 0U;
  }
  if (connection.tls.is_open()) {
    connection.tls.say_goodbye();
    flush(connection);  // as far as the socket takes it
    connection.tls.close();
  }
  place_of(connection) = {};
  connection.fd.close();  // leaves the epoll set by itself
  sources_.closed(connection.frontend, connection.source);
  connection.call = nullptr;
  spare_.push_back(&connection);
  --open_;
}

}  // namespace tutti::target
