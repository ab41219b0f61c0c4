#pragma once

// MultiTransport: Transport over curl multi handles, several per worker ("shards" of kSlotsPerShard
// slots), because one multi costs time linear in its connections per request. All share the
// worker's epoll set. A kept connection stays registered between requests, so keep-alive costs no
// epoll_ctl. Connections: with connections_max a shard never holds more than its share and closes
// an idle one first; without, at most twice its slots stay open. With connect_rate_max, and for a
// frontend in trouble, a query for which no connection is free waits outside curl for its turn;
// over HTTP/2 so does every query for which no stream is free (multi_streams.cc). Request deadlines
// are a list by start, since the timeout is one for all. Owned by one worker thread.

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "agent/target/connect_paces.h"
#include "agent/target/exchange.h"
#include "agent/target/known_form.h"
#include "agent/target/sources.h"
#include "agent/target/transport.h"
#include "agent/target/warm_stock.h"

namespace tutti::target {

inline constexpr std::size_t kSlotsPerShard = 256;

// What a probe learnt of a frontend's host, also when nothing answered there.
struct Resolved {
  SocketAddress address{};  // connected to, else tried last; unset: the name is not known
  std::uint32_t dns_us = 0;
};

class MultiTransport final : public Transport, private SocketSource {
 public:
  MultiTransport(TransportConfig config, sys::Poller& poller, const base::Clock& clock,
                 ExchangeSink& sink, LiveGauges& gauges);
  ~MultiTransport() override;
  MultiTransport(const MultiTransport&) = delete;
  MultiTransport& operator=(const MultiTransport&) = delete;

  std::size_t room() const override { return capacity_ - in_flight_; }
  std::size_t in_flight() const override { return in_flight_; }
  void start(const Query& query, base::Instant now) override;
  void flush() override;
  void on_sockets(std::span<const sys::Ready> events) override;
  void on_wake(base::Instant now) override;
  base::Instant next_wake() const override;
  void cancel_all(std::string_view reason) override;
  void warm(const WarmPlan& plan) override;
  std::size_t open_connections() const override { return sockets_open_ + stock_.size(); }
  // By frontend, once warmed.
  const std::vector<Resolved>& resolved() const { return resolved_; }

 private:
  struct Shard {
    MultiTransport* owner = nullptr;
    CURLM* multi = nullptr;
    base::Instant wake_at = base::kFarFuture;  // curl's own timers
    std::size_t running = 0;                   // handles added and not yet delivered
    bool ended = false;                        // some handle is done, results wait
    bool launched = false;                     // curl has yet to begin some handle
    std::vector<std::uint32_t> open;           // connections by frontend
    std::vector<std::uint32_t> busy;           // handles added by frontend
    // Not added, as no connection is free for them; by frontend.
    std::vector<Chain<ConnectWait<Exchange>>> waiting;
    // HTTP/2, by frontend: connections ready for streams, and handles added that open one.
    std::vector<std::uint32_t> standing;
    std::vector<std::uint32_t> opening;
    std::vector<std::uint32_t> streams;  // that a connection has been seen to take
    std::size_t connections_max = 0;     // 0: no bound
    bool line_moves = false;             // HTTP/2: a connection has come to stand
  };
  struct SocketState {
    Shard* shard = nullptr;
    std::uint8_t wanted = 0;      // what curl waits for now
    std::uint8_t registered = 0;  // what epoll has
    bool ours = false;            // opened by open_socket, so its close comes by close_socket
    std::uint16_t frontend = 0;
    std::uint16_t source = kNoSource;
    Shard* home = nullptr;             // counts it as open
    const Exchange* opener = nullptr;  // HTTP/2: until it stands
    bool stands = false;               // HTTP/2: counted so
  };
  // One connection without a request, to learn whether a frontend answers and under which address.
  struct Probe {
    MultiTransport* owner = nullptr;
    CURL* easy = nullptr;
    std::uint16_t frontend = 0;
    bool agreed_on_http2 = false;
    int os_error = 0;
    std::array<char, CURL_ERROR_SIZE> error_text{};
    SocketAddress address{};
    wire::Reach reach{};
  };

  static int on_wanted(CURL*, curl_socket_t fd, int what, void* shard, void*);
  static int on_timer(CURLM*, long timeout_ms, void* shard);
  static int on_probe_stands(void* probe, char*, char*, int, int);
  static curl_socket_t on_probe_open(void* probe, curlsocktype, curl_sockaddr* address);

  curl_socket_t open_socket(const curl_sockaddr& address, Exchange& exchange, bool& connected,
                            int& os_error) override;
  void close_socket(curl_socket_t fd) override;
  void connection_begins(Exchange& exchange) override;
  void connection_stands(Exchange& exchange) override;
  curl_socket_t adopt(StockedSocket socket, std::uint16_t frontend, int& os_error);
  StockedSocket fresh_socket(const curl_sockaddr& address, std::uint16_t frontend, int& os_error);

  void open_shard(Shard& shard, std::size_t connections_max, std::size_t kept_max);
  void open_slots(Shard& shard);
  void on_socket(const sys::Ready& ready);
  SocketState& state_of(int fd);
  void want(Shard& shard, int fd, int what);
  void act(Shard& shard, curl_socket_t fd, int bits);
  void deliver(Shard& shard);
  void start_probe(Probe& probe);
  void deliver_probe(CURL* easy, CURLcode code);
  void end(Exchange& exchange, base::Instant at, EndKind kind, std::string_view detail);
  void end(Exchange& exchange, base::Instant at, std::unique_ptr<wire::Record>& record);
  void release(Exchange& exchange);
  void launch(Exchange& exchange);
  bool may_connect(std::uint16_t frontend, base::Instant now) const;
  static bool has_idle(const Shard& shard, std::uint16_t frontend);
  bool finds_connection(const Shard& shard, const Exchange& exchange) const;
  void wait_to_connect(Exchange& exchange);
  void forget_waiting(Exchange& exchange);
  void give_to_waiting(Shard& shard);
  bool goes_before(const Exchange& exchange, const Exchange& other) const;
  void go_on_connecting(base::Instant now);
  bool multiplexes() const { return config_.target->streams_max > 0; }
  bool finds_place(const Shard& shard, std::uint16_t frontend, base::Instant now);
  void serve_line(Shard& shard, std::uint16_t frontend, base::Instant now);
  void serve_lines(Shard& shard, base::Instant now);
  bool may_open_one_more(const Shard& shard, std::uint16_t frontend) const;
  void launch_stream(Shard& shard, Exchange& exchange);
  bool goes_back_to_line(Shard& shard, Exchange& exchange);
  void fail_line(Shard& shard, std::uint16_t frontend, base::Instant now);
  void note_opened(Shard& shard, Exchange& exchange);
  void note_standing(Exchange& exchange);
  void forget_connecting(Exchange& exchange);
  void expire(base::Instant now);
  void expire_connecting(base::Instant now);
  void go_on_warming(base::Instant now);
  Shard& shard_of(const Exchange& exchange) { return shards_[exchange.slot / slots_per_shard_]; }

  TransportConfig config_;
  sys::Poller& poller_;
  const base::Clock& clock_;
  ExchangeSink& sink_;
  KnownForm known_form_;
  ExchangeShared shared_;
  curl_slist* headers_ = nullptr;

  std::size_t capacity_;
  std::size_t slots_per_shard_ = kSlotsPerShard;
  std::size_t in_flight_ = 0;
  std::size_t sockets_open_ = 0;
  std::vector<Shard> shards_;
  std::vector<Shard*> launched_;                      // those of that mark
  std::vector<std::unique_ptr<Exchange>> exchanges_;  // by slot, made on first use
  std::vector<std::uint32_t> free_slots_;             // last freed on top: its connection is warm
  std::vector<SocketState> sockets_;                  // by descriptor
  Chain<Exchange::Connecting> connecting_;            // those for which curl keeps no timer
  Exchange* oldest_ = nullptr;
  Exchange* newest_ = nullptr;

  Shard probe_shard_;
  std::vector<Probe> probes_;  // one per frontend while warming
  std::vector<Resolved> resolved_;
  std::size_t probes_running_ = 0;
  WarmPlan warm_plan_;
  Sources sources_;
  ConnectPaces paces_;
  std::size_t waiting_count_ = 0;
  bool cancelling_ = false;
  bool failing_line_ = false;
  bool paced_ = false;  // HTTP/2: somebody in line waits for the pacer
  WarmStock stock_;
  enum class Warming : std::uint8_t { kNo, kProbing, kOpening } warming_ = Warming::kNo;
};

}  // namespace tutti::target
