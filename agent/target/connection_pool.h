#pragma once

// ConnectionPool: the sockets of a DirectTransport and their places in the epoll set: connecting,
// in TLS's handshake, busy with a call, or idle per frontend, last used first. An idle one is
// looked at before it is used again, unless its last read a moment ago told that nothing follows;
// one that is known to have spoken unasked or to be closed is never handed out (tickets and key
// updates of TLS are not speech). Connections are pooled objects found by descriptor, so nothing is
// allocated once as many stood before, but for what OpenSSL does. Every socket asks the kernel for
// receive stamps and for what a read leaves. Once it stands, it is watched on the edge. Owned by
// one worker thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "agent/target/chain.h"
#include "agent/target/sources.h"
#include "agent/target/tls_session.h"
#include "agent/target/warm_stock.h"
#include "common/base/fetch.h"
#include "common/base/time.h"
#include "common/sys/fd.h"
#include "common/sys/poller.h"

namespace tutti::target {

class DirectCall;

struct Connection {
  enum class State : std::uint8_t { kConnecting, kShaking, kBusy, kIdle };
  sys::Fd fd;
  DirectCall* call = nullptr;    // null when idle, or opened ahead of need
  base::Instant since{};         // connecting, shaking: connect begun; idle: last used
  base::Instant shaking_from{};  // TLS's handshake begun
  base::Instant quiet_at{};   // the last read left neither byte nor end; unset: it did, or unknown
  std::uint32_t watched = 0;  // what epoll has
  std::uint16_t frontend = 0;
  std::uint16_t source = kNoSource;
  State state = State::kBusy;
  bool was_open = false;  // stood before its present call came
  bool was_used = false;  // carried a call before its present one
  Connection* older = nullptr;
  Connection* newer = nullptr;
  TlsSession tls;  // open: of an https frontend. Large, so behind the others

  void fetch_lines() const { base::fetch_lines(this, sizeof *this); }
};

class ConnectionPool {
 public:
  ConnectionPool(std::size_t frontends, sys::Poller& poller, Sources& sources);

  // What a descriptor stands for, found without a look at the connection itself, which may be far.
  struct Place {
    Connection* connection = nullptr;
    DirectCall* asked = nullptr;  // its request went out, and its reply is all that is waited for
  };
  Place find(int fd) const;
  // The connection's call has sent its request, or a part of it.
  void note_asked(const Connection& connection);
  std::size_t open() const { return open_; }

  // A connected socket of the stock, or null with errno in `os_error`.
  Connection* adopt(StockedSocket socket, std::uint16_t frontend, int& os_error);
  // Connects without waiting. The state says whether it stands already.
  Connection* connect(const SocketAddress& address, std::uint16_t frontend, base::Instant now,
                      int& os_error);
  // A connecting one became ready: 0, EINPROGRESS, or what went wrong. After 0 it goes on by
  // stands() or shakes().
  static int finish_connect(const Connection& connection);
  // It is ready for its call.
  void stands(Connection& connection);
  // TLS's handshake comes next.
  void shakes(Connection& connection, base::Instant now);
  // Connecting or shaking, in the order in which they began.
  Connection* oldest_connecting() const { return connecting_.oldest(); }

  // Idle, and alive as far as this host knows. Null: none. Ages since the last use are checked
  // against `idle_max` when that is above 0; a few that are too old are closed on the way.
  Connection* take_idle(std::uint16_t frontend, base::Instant now, base::Duration idle_max);
  void keep(Connection& connection, base::Instant now);
  // Sends what its TLS has to send: 0, EAGAIN when some is left, or what went wrong.
  static int flush(Connection& connection);
  // An idle one became ready: it is closed, unless nothing is there to read after all.
  void look_at_idle(Connection& connection);
  // Closes the longest idle one of the frontend with most; false: none is idle.
  bool drop_idle();

  // On the edge: whoever is told of bytes takes all of them, or asks to look again.
  void watch(Connection& connection, std::uint32_t events);
  // Something may have been left lying: it is told of once more.
  void look_again(Connection& connection);
  void close(Connection& connection);

 private:
  Connection* place(StockedSocket socket, std::uint16_t frontend, Connection::State state,
                    int& os_error);
  Chain<Connection>& chain_of(const Connection& connection);
  static bool quiet(Connection& connection);
  Place& place_of(const Connection& connection);

  sys::Poller& poller_;
  Sources& sources_;
  std::deque<Connection> all_;
  std::vector<Connection*> spare_;
  std::vector<Place> by_fd_;
  std::vector<Chain<Connection>> idle_;  // by frontend
  Chain<Connection> connecting_;
  std::size_t idle_count_ = 0;
  std::size_t open_ = 0;
};

}  // namespace tutti::target
