#pragma once

// Sockets: frames as bytes between processes, over ZeroMQ. Who binds is a ROUTER (ListenSocket),
// who dials a DEALER (DialSocket), whichever of the two is the coordinator. Sending and receiving
// never block; every queue has a bound, and a message that found no room is reported, not kept.
// Nothing here is reliable: a broken connection loses what was in it, and Link makes good for that.
// A socket belongs to one thread. SocketContext is shared, outlived by nothing it serves (sockets
// hold on to it), and runs the key check in a thread of its own.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/wire/curve.h"

namespace tutti::wire {

class SocketContext {
 public:
  SocketContext();

  // The public keys that may connect to ListenSockets with keys; nobody else, and nobody before the
  // first call. Replaces the list; connections that exist stay.
  void allow(const std::vector<std::string>& public_keys);

  // How often a peer was turned away for its key, and who was last ("KEY from ADDRESS").
  std::uint64_t denied() const;
  std::string last_denied() const;

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

struct SocketOptions {
  int queue_max = 4096;  // messages per peer and direction; more than a Link's window
  base::Duration linger = base::Duration::seconds(1);  // for unsent messages when the socket ends
  base::Duration reconnect_first = base::Duration::millis(100);  // with jitter, doubles …
  base::Duration reconnect_max = base::Duration::seconds(2);     // … up to here
  std::optional<KeyPair> keys;  // ours; without, only loopback and ipc endpoints are taken …
  bool insecure = false;        // … unless the user insists
  std::string listener_key;     // DialSocket with keys: the public key of the other side
};

// ipc://…, tcp://127.x.y.z:…, tcp://[::1]:…, tcp://localhost:…: does not leave this host.
bool is_loopback_endpoint(std::string_view endpoint);

enum class SendResult : std::uint8_t {
  kSent,
  kFull,    // no room, nothing taken
  kNoPeer,  // the peer is not connected (any more), nothing taken
};

// What ListenSocket and DialSocket share. ZeroMQ's descriptor tells of changes, not of a state:
// before sleeping on fd(), has_input() must have said false after the last send or receive, and
// when fd() becomes readable stir() has to be called. wait_input() does both; an epoll loop of its
// own has to.
class Socket {
 public:
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;
  ~Socket();

  int fd() const;
  bool has_input();
  // False: nothing can have come since receive() or has_input() found nothing, as wait_input()
  // would have seen it. Asking costs nothing, a receive() in vain several system calls.
  bool may_have_input() const;
  void stir();
  // As bound or dialled; a wildcard port is resolved.
  const std::string& endpoint() const;
  // Messages dropped because they were not of one part.
  std::uint64_t malformed() const;

 protected:
  struct Core;
  explicit Socket(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

class ListenSocket : public Socket {
 public:
  // endpoint: tcp://ADDRESS:PORT (PORT * chooses one), ipc://PATH. An ipc socket is open to
  // processes of the same user only.
  static base::Result<ListenSocket> open(const SocketContext& context, const std::string& endpoint,
                                         const SocketOptions& options);

  // `peer` is what receive() named; it changes when the peer reconnects.
  SendResult send(std::string_view peer, std::string_view bytes);
  // False: nothing there.
  bool receive(std::string& peer, std::string& bytes);

 private:
  using Socket::Socket;
};

class DialSocket : public Socket {
 public:
  // Returns at once; connects, and reconnects, by itself for as long as the socket lives.
  static base::Result<DialSocket> open(const SocketContext& context, const std::string& endpoint,
                                       const SocketOptions& options);

  SendResult send(std::string_view bytes);
  bool receive(std::string& bytes);

  // Whether there is a connection now, and if not, what hinders it, in words for the user ("" while
  // nothing is known).
  bool connected();
  const std::string& trouble();

 private:
  using Socket::Socket;
};

struct WaitFd {
  int fd = -1;
  bool readable = false;
};

// Sleeps until a socket has input, a descriptor is readable (its `readable` is set), or `at_most`
// has passed; a signal also ends it. True when there is input, or may be.
bool wait_input(std::span<Socket* const> sockets, std::span<WaitFd> fds, base::Duration at_most);

}  // namespace tutti::wire
