#pragma once

// WarmStock: TCP connections opened ahead of need at a bounded rate, handed to curl when it would
// open a socket, or to DirectTransport. TLS is the taker's: only curl can do its own, on first use;
// DirectTransport takes a connection as soon as it stands. One that the server closed meanwhile is
// thrown away at hand-over. Owned by one worker thread.

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/target/sources.h"
#include "agent/target/transport.h"
#include "common/base/time.h"
#include "common/sys/fd.h"
#include "common/sys/poller.h"

namespace tutti::target {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  bool is_set() const { return length > 0; }
  bool equals(const sockaddr* other, socklen_t other_length) const;
};

// A socket and the source it is counted under.
struct StockedSocket {
  sys::Fd fd;
  std::uint16_t source = kNoSource;
};

class WarmStock {
 public:
  WarmStock(std::size_t frontends, sys::Poller& poller, Sources& sources);

  // Begins opening; addresses come from the probes (unset: frontend not reachable, skipped).
  void begin(const WarmPlan& plan, const std::vector<SocketAddress>& addresses,
             base::Duration connect_timeout, base::Instant now);
  bool opening() const { return opening_; }
  // Opens what the rate allows and gives up what took too long. Ends `opening()`.
  void on_wake(base::Instant now);
  base::Instant next_wake() const { return opening_ ? next_wake_ : base::kFarFuture; }
  // True: the descriptor was one of ours.
  bool on_socket(const sys::Ready& ready);

  // A live connection to this very address, or none. It stays counted under its source.
  StockedSocket take(std::uint16_t frontend, const sockaddr* address, socklen_t length);
  // Closes one connection of the fullest frontend, to make room; false: the stock is empty.
  bool drop_one();

  std::size_t size() const { return pending_.size() + kept_count_; }
  std::size_t kept(std::uint16_t frontend) const { return kept_[frontend].size(); }

 private:
  struct Pending {
    StockedSocket socket;
    std::uint16_t frontend = 0;
    base::Instant give_up_at{};
  };

  void open_one(std::uint16_t frontend, base::Instant now);
  int next_frontend() const;

  sys::Poller& poller_;
  Sources& sources_;
  std::vector<std::vector<StockedSocket>> kept_;
  std::size_t kept_count_ = 0;  // of all of them
  std::vector<SocketAddress> addresses_;
  std::vector<std::uint32_t> wanted_;  // still to begin, per frontend
  std::vector<Pending> pending_;       // at most plan.connecting_max
  std::uint32_t rate_max_ = 1;
  std::uint32_t connecting_max_ = 1;
  std::uint64_t begun_ = 0;
  base::Duration connect_timeout_{};
  base::Instant began_at_{};
  base::Instant next_wake_ = base::kFarFuture;
  bool opening_ = false;
};

}  // namespace tutti::target
