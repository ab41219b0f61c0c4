#include "agent/target/connection_pool.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/check.h"

namespace tutti::target {
namespace {

constexpr int kTrimmedPerTake = 4;
// A connection read this recently, to its last byte and with no end in sight, is as good as looked
// at: a slot that is refilled at once need not pay for another system call.
constexpr base::Duration kReadJustNow = base::Duration::micros(20);

void set_option(int fd, int level, int name) {
  const int one = 1;
  setsockopt(fd, level, name, &one, sizeof one);
}

// Nothing to read and no end: neither byte nor FIN nor error has come.
bool quiet(int fd) {
  char byte = 0;
  const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

ConnectionPool::ConnectionPool(std::size_t frontends, sys::Poller& poller)
    : poller_(poller), idle_(frontends) {}

Connection* ConnectionPool::find(int fd) const {
  const auto index = static_cast<std::size_t>(fd);
  return index < by_fd_.size() ? by_fd_[index] : nullptr;
}

Connection* ConnectionPool::place(sys::Fd fd, std::uint16_t frontend, Connection::State state,
                                  int& os_error) {
  const std::uint32_t events =
      sys::kHalfClosed |
      (state == Connection::State::kConnecting ? sys::kWritable : sys::kReadable);
  if (!poller_.add(fd.get(), events)) {
    os_error = errno;
    return nullptr;
  }
  const auto index = static_cast<std::size_t>(fd.get());
  if (index >= by_fd_.size()) {
    by_fd_.resize(std::max(index + 1, by_fd_.size() * 2), nullptr);
  }
  if (spare_.empty()) {
    spare_.push_back(&all_.emplace_back());
  }
  Connection& connection = *spare_.back();
  spare_.pop_back();
  by_fd_[index] = &connection;
  connection.fd = std::move(fd);
  connection.call = nullptr;
  connection.read_at = {};
  connection.frontend = frontend;
  connection.state = state;
  connection.watched = events;
  connection.was_open = false;
  ++open_;
  return &connection;
}

Connection* ConnectionPool::adopt(sys::Fd fd, std::uint16_t frontend, int& os_error) {
  set_option(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS);
  return place(std::move(fd), frontend, Connection::State::kBusy, os_error);
}

Connection* ConnectionPool::connect(const SocketAddress& address, std::uint16_t frontend,
                                    base::Instant now, int& os_error) {
  sys::Fd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) {
    os_error = errno;
    return nullptr;
  }
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY);
  set_option(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS);
  const int rc =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  if (rc != 0 && errno != EINPROGRESS) {
    os_error = errno;
    return nullptr;
  }
  Connection* connection =
      place(std::move(fd), frontend,
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
int ConnectionPool::finish_connect(Connection& connection) {
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
  connecting_.remove(connection);
  connection.state = Connection::State::kBusy;
  return 0;
}

Chain<Connection>& ConnectionPool::chain_of(const Connection& connection) {
  return connection.state == Connection::State::kIdle ? idle_[connection.frontend] : connecting_;
}

Connection* ConnectionPool::take_idle(std::uint16_t frontend, base::Instant now,
                                      base::Duration idle_max) {
  Chain<Connection>& idle = idle_[frontend];
  const auto too_old = [now, idle_max](const Connection* connection) {
    return idle_max.ns > 0 && now - connection->since > idle_max;
  };
  for (int left = kTrimmedPerTake; left > 0 && idle.size() > 0 && too_old(idle.oldest()); --left) {
    close(*idle.oldest());
  }
  while (idle.size() > 0 && !too_old(idle.newest())) {
    Connection& connection = *idle.newest();
    const bool just_read = connection.read_at.is_set() && now - connection.read_at <= kReadJustNow;
    if (!just_read && !quiet(connection.fd.get())) {
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
  connection.call = nullptr;
  connection.state = Connection::State::kIdle;
  connection.since = now;
  idle_[connection.frontend].add(connection);
  ++idle_count_;
}

void ConnectionPool::look_at_idle(Connection& connection) {
  if (!quiet(connection.fd.get())) {
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
  events |= sys::kHalfClosed;
  if (connection.watched != events) {
    TUTTI_CHECK(poller_.change(connection.fd.get(), events));
    connection.watched = events;
  }
}

void ConnectionPool::close(Connection& connection) {
  if (connection.state != Connection::State::kBusy) {
    chain_of(connection).remove(connection);
    idle_count_ -= connection.state == Connection::State::kIdle ? 1U : 0U;
  }
  by_fd_[static_cast<std::size_t>(connection.fd.get())] = nullptr;
  connection.fd.close();  // leaves the epoll set by itself
  connection.call = nullptr;
  spare_.push_back(&connection);
  --open_;
}

}  // namespace tutti::target
