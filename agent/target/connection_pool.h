#pragma once

// ConnectionPool: the plain sockets of a DirectTransport and their places in the epoll set:
// connecting, busy with a call, or idle per frontend, last used first. An idle one is looked at
// before it is used again; one that speaks unasked or was closed is never handed out. Connections
// are pooled objects found by descriptor, so nothing is allocated once as many stood before. Every
// socket asks the kernel for receive stamps. Owned by one worker thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "agent/target/chain.h"
#include "agent/target/sources.h"
#include "agent/target/warm_stock.h"
#include "common/base/time.h"
#include "common/sys/fd.h"
#include "common/sys/poller.h"

namespace tutti::target {

class DirectCall;

struct Connection {
  enum class State : std::uint8_t { kConnecting, kBusy, kIdle };
  sys::Fd fd;
  DirectCall* call = nullptr;  // null when idle
  base::Instant since{};       // connecting: begun; idle: last used
  std::uint32_t watched = 0;   // what epoll has
  std::uint16_t frontend = 0;
  std::uint16_t source = kNoSource;
  State state = State::kBusy;
  bool was_open = false;  // stood before its present call came
  Connection* older = nullptr;
  Connection* newer = nullptr;
};

class ConnectionPool {
 public:
  ConnectionPool(std::size_t frontends, sys::Poller& poller, Sources& sources);

  Connection* find(int fd) const;
  std::size_t open() const { return open_; }

  // A connected socket of the stock, or null with errno in `os_error`.
  Connection* adopt(StockedSocket socket, std::uint16_t frontend, int& os_error);
  // Connects without waiting. The state says whether it stands already.
  Connection* connect(const SocketAddress& address, std::uint16_t frontend, base::Instant now,
                      int& os_error);
  // A connecting one became ready: 0 (busy now), EINPROGRESS, or what went wrong.
  int finish_connect(Connection& connection);
  const Connection* oldest_connecting() const { return connecting_.oldest(); }

  // Idle, and alive as far as this host knows. Null: none. Ages are checked against `idle_max` when
  // that is above 0; a few that are too old are closed on the way.
  Connection* take_idle(std::uint16_t frontend, base::Instant now, base::Duration idle_max);
  void keep(Connection& connection, base::Instant now);
  // An idle one became ready: it is closed, unless nothing is there to read after all.
  void look_at_idle(Connection& connection);
  // Closes the longest idle one of the frontend with most; false: none is idle.
  bool drop_idle();

  void watch(Connection& connection, std::uint32_t events);
  void close(Connection& connection);

 private:
  Connection* place(StockedSocket socket, std::uint16_t frontend, Connection::State state,
                    int& os_error);
  Chain<Connection>& chain_of(const Connection& connection);

  sys::Poller& poller_;
  Sources& sources_;
  std::deque<Connection> all_;
  std::vector<Connection*> spare_;
  std::vector<Connection*> by_fd_;
  std::vector<Chain<Connection>> idle_;  // by frontend
  Chain<Connection> connecting_;
  std::size_t idle_count_ = 0;
  std::size_t open_ = 0;
};

}  // namespace tutti::target
