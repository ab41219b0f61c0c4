#pragma once

// DirectTransport: Transport over sockets of our own, HTTP/1.1 framed here, http or https. One send
// a request, one recvmsg a wake-up of a socket, and a handful of them step by step: all received,
// all read, all requests made, all sent. Stamps: sent_at right before the first send; a reply's
// bytes bear the kernel's receive stamp (SO_TIMESTAMPNS) mapped to the monotonic clock, all
// events of one read the same one; where the kernel gave none that can be used, the instant of the
// read, which is counted. The difference of the two goes to the read-lag gauge. TLS lies between
// the socket and the framing (TlsSession): the stamp is that of the read which completed a record.
// Hosts given by name are resolved by MultiTransport's probe, at warm() or by the first query. With
// connect_rate_max, and for a frontend in trouble, a query that would open a connection waits for
// its turn, and takes one that falls idle meanwhile. A query is sent again, once and on a fresh
// connection, only when a connection that stood before took not one byte of it (of TLS: of its
// records); whatever else fails is one. Owned by one worker thread.

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/target/connect_paces.h"
#include "agent/target/connection_pool.h"
#include "agent/target/direct_call.h"
#include "agent/target/known_form.h"
#include "agent/target/known_head.h"
#include "agent/target/multi_transport.h"
#include "agent/target/sources.h"
#include "agent/target/stamp_map.h"
#include "agent/target/tls_context.h"
#include "agent/target/transport.h"
#include "agent/target/warm_stock.h"

namespace tutti::target {

// What one read brought.
struct Arrival {
  std::string_view bytes;  // none: `error`
  int error = 0;           // EAGAIN: nothing was there; 0 without bytes: FIN
  base::Instant read_at{};
  std::int64_t stamp_wall_ns = 0;  // when the kernel got the newest of the bytes; 0: not told
  bool quiet = false;              // it left neither bytes nor an end
};

class DirectTransport final : public Transport {
 public:
  DirectTransport(TransportConfig config, sys::Poller& poller, const base::Clock& clock,
                  ExchangeSink& sink, LiveGauges& gauges);
  ~DirectTransport() override;
  DirectTransport(const DirectTransport&) = delete;
  DirectTransport& operator=(const DirectTransport&) = delete;

  std::size_t room() const override { return capacity_ - calls_.size(); }
  std::size_t in_flight() const override { return calls_.size(); }
  void start(const Query& query, base::Instant now) override;
  void flush() override;
  void on_sockets(std::span<const sys::Ready> events) override;
  void on_wake(base::Instant now) override;
  base::Instant next_wake() const override;
  void cancel_all(std::string_view reason) override;
  void warm(const WarmPlan& plan) override;
  std::size_t open_connections() const override {
    return pool_.open() + stock_.size() + prober_.open_connections();
  }

 private:
  // Hears from the prober, which is never given a query.
  class ProbeSink final : public ExchangeSink {
   public:
    explicit ProbeSink(DirectTransport& owner) : owner_(owner) {}
    void on_done(std::unique_ptr<wire::Record>&) override {}
    void on_warmed(Warmed warmed) override { owner_.on_probed(std::move(warmed)); }

   private:
    DirectTransport& owner_;
  };

  // A reply's bytes that were received, or are about to be, and not yet looked into.
  struct Unread {
    int fd = -1;
    Connection* connection = nullptr;
    DirectCall* call = nullptr;
    Arrival arrival;
  };

  Connection* attach(DirectCall& call, base::Instant now);
  void connect(DirectCall& call, base::Instant now);
  void connect_now(DirectCall& call, const SocketAddress& address, base::Instant now);
  bool may_connect(std::uint16_t frontend, base::Instant now) const;
  void wait_to_connect(DirectCall& call);
  bool goes_before(const DirectCall& call, const DirectCall& other) const;
  void go_on_connecting(base::Instant now);
  void give_to_waiting(std::uint16_t frontend, base::Instant now);
  void bind(DirectCall& call, Connection& connection);
  void finish_connect(Connection& connection);
  void note_shortage(int os_error);
  void send(Connection& connection);
  void send(Connection& connection, base::Instant now);
  int send_plain(Connection& connection, DirectCall& call);
  int send_secured(Connection& connection, DirectCall& call);
  void fail_send(Connection& connection, int error);
  void on_socket(const sys::Ready& ready);
  Arrival receive(int fd, std::span<char> room);
  Arrival receive(int fd) { return receive(fd, buffer_); }
  void check_clocks(base::Instant read_at);
  void read(std::span<const Unread> replies);
  void read(Connection& connection, const Arrival& arrival);
  void read_secured(Connection& connection, const Arrival& arrival);
  bool hand_over(DirectCall& call, const Arrival& arrival, bool may_keep);
  void read_end(Connection& connection, int error, bool cut = false);
  base::Instant stamp(const Arrival& arrival, const DirectCall& call);
  std::string words(const DirectCall& call, std::string_view what) const;

  bool is_tls(std::uint16_t frontend) const { return config_.frontends[frontend].tls; }
  void shake(Connection& connection, base::Instant now);
  void go_on_shaking(Connection& connection);
  void end_shaking(Connection& connection, const Arrival& rest);
  void fail_shaking(Connection& connection, std::string_view what);
  void shake_stock(base::Instant now);
  base::Duration warming_limit() const;
  base::Instant shaking_expires_at() const;
  void expire_shaking(base::Instant now);

  void end_soon(DirectCall& call, EndKind kind, std::string detail);
  void end(DirectCall& call, base::Instant at, EndKind kind, std::string_view detail,
           bool keeps_connection = false);
  void forget_waiting(DirectCall& call);
  void deliver_ended();
  void expire(base::Instant now);

  void probe();
  void on_probed(Warmed warmed);
  void go_on_opening(base::Instant now);

  TransportConfig config_;
  const base::Clock& clock_;
  ExchangeSink& sink_;
  LiveGauges& gauges_;
  KnownHead known_head_;
  KnownForm known_form_;
  DirectShared shared_;
  ProbeSink probe_sink_;
  MultiTransport prober_;
  std::unique_ptr<TlsContext> tls_;  // null: no frontend is https. Outlives the pool
  Sources sources_;
  ConnectPaces paces_;
  ConnectionPool pool_;
  WarmStock stock_;
  StampMap stamps_;
  sys::Fd stamp_switch_;  // keeps the kernel stamping packets before the first connection asks

  std::size_t capacity_;
  std::size_t kept_max_;                            // connections that may stay open
  std::vector<std::unique_ptr<DirectCall>> slots_;  // made on first use
  std::vector<std::uint32_t> free_slots_;
  Chain<DirectCall> calls_;                // in flight, by start
  std::vector<DirectCall*> ended_;         // over, not yet delivered
  std::vector<DirectCall*> ended_before_;  // the ones being delivered
  std::vector<DirectCall*> waiting_for_name_;
  std::vector<Chain<ConnectWait<DirectCall>>> waiting_to_connect_;  // by frontend
  std::size_t waiting_count_ = 0;
  std::array<char, 4096> outgoing_{};  // a small request in one piece
  std::vector<Connection*> outbox_;    // each with a request for the next flush()
  std::vector<char> buffer_;           // of every read
  std::vector<Unread> unread_;         // of this handful, in buffer_
  alignas(cmsghdr) std::array<char, 64> control_{};

  bool probing_ = false;
  std::optional<WarmPlan> warm_plan_;  // from warm() until the stock begins to open
  std::optional<Warmed> warmed_;       // from then until it is full
  std::uint32_t shaking_ahead_ = 0;    // TLS handshakes under way without a call
  std::uint32_t shaken_ahead_ = 0;     // that ended well since warm()
};

}  // namespace tutti::target
