#include "agent/target/multi_transport.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace tutti::target {
namespace {

constexpr std::size_t kKeptPerSlot = 2;  // without connections_max: room to change frontends

std::size_t capacity_of(const TransportConfig& config) {
  const std::size_t slots = config.slots;
  const std::size_t streams = std::max(config.target->streams_max, 1U);
  return config.connections_max == 0
             ? slots
             : std::min<std::size_t>(slots, config.connections_max * streams);
}

// Over HTTP/2 each has a connection at least.
std::size_t shards_of(const TransportConfig& config, std::size_t capacity) {
  const std::size_t wanted = (capacity + kSlotsPerShard - 1) / kSlotsPerShard;
  return config.connections_max == 0 ? wanted
                                     : std::min<std::size_t>(wanted, config.connections_max);
}

CURLSH* make_share() {
  CURLSH* share = curl_share_init();
  TUTTI_CHECK(share != nullptr);
  // One thread uses it, so no lock functions.
  curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
  curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  return share;
}

}  // namespace

MultiTransport::MultiTransport(TransportConfig config, sys::Poller& poller,
                               const base::Clock& clock, ExchangeSink& sink, LiveGauges& gauges)
    : config_(std::move(config)),
      poller_(poller),
      clock_(clock),
      sink_(sink),
      capacity_(capacity_of(config_)),
      shards_(shards_of(config_, capacity_)),
      exchanges_(capacity_),
      sources_(config_.sources, config_.frontends.size(), config_.global_worker),
      paces_(config_.frontends.size(), config_.connect_rate_max, config_.trouble_rate_max),
      stock_(config_.frontends.size(), poller, sources_) {
  curl_slist* affinity = nullptr;
  headers_ = header_list(*config_.target, nullptr, affinity);
  for (Shard& shard : shards_) {
    shard.open.assign(config_.frontends.size(), 0);
    shard.busy.assign(config_.frontends.size(), 0);
    shard.waiting.resize(config_.frontends.size());
    shard.standing.assign(config_.frontends.size(), 0);
    shard.opening.assign(config_.frontends.size(), 0);
    shard.streams.assign(config_.frontends.size(), config_.target->streams_max);
  }
  slots_per_shard_ = std::max(kSlotsPerShard, (capacity_ + shards_.size() - 1) / shards_.size());
  const char* ca_file = std::getenv("SSL_CERT_FILE");
  shared_.config = &config_;
  shared_.clock = &clock_;
  shared_.gauges = &gauges;
  shared_.known_form = &known_form_;
  shared_.sockets = this;
  shared_.share = make_share();
  shared_.headers = headers_;
  shared_.ca_file = ca_file != nullptr ? ca_file : "";
  if (auto proxy = parse_proxy(config_.target->proxy)) {  // a bad one was refused before
    shared_.proxy = std::move(*proxy);
  }
  for (const Frontend& frontend : config_.frontends) {
    CURLU* url = curl_url();
    TUTTI_CHECK(url != nullptr &&
                curl_url_set(url, CURLUPART_URL, frontend.url.c_str(), 0) == CURLUE_OK);
    shared_.urls.push_back(url);
  }
  free_slots_.reserve(capacity_);
  launched_.reserve(shards_.size());
  for (std::size_t slot = capacity_; slot-- > 0;) {
    free_slots_.push_back(static_cast<std::uint32_t>(slot));
  }
}

MultiTransport::~MultiTransport() {
  for (auto& probe : probes_) {
    if (probe.easy != nullptr) {
      curl_multi_remove_handle(probe_shard_.multi, probe.easy);
      curl_easy_cleanup(probe.easy);
    }
  }
  for (Exchange* exchange = oldest_; exchange != nullptr; exchange = exchange->newer) {
    if (!exchange->wait.on) {
      curl_multi_remove_handle(shard_of(*exchange).multi, exchange->easy());
    }
  }
  exchanges_.clear();
  for (auto& shard : shards_) {
    curl_multi_cleanup(shard.multi);
  }
  curl_multi_cleanup(probe_shard_.multi);
  for (CURLU* url : shared_.urls) {
    curl_url_cleanup(url);
  }
  curl_share_cleanup(shared_.share);
  curl_slist_free_all(headers_);
}

// ---- shards ----------------------------------------------------------------------------------

void MultiTransport::open_shard(Shard& shard, std::size_t connections_max, std::size_t kept_max) {
  shard.owner = this;
  shard.multi = curl_multi_init();
  TUTTI_CHECK(shard.multi != nullptr);
  curl_multi_setopt(shard.multi, CURLMOPT_SOCKETFUNCTION, on_wanted);
  curl_multi_setopt(shard.multi, CURLMOPT_SOCKETDATA, &shard);
  curl_multi_setopt(shard.multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(shard.multi, CURLMOPT_TIMERDATA, &shard);
  curl_multi_setopt(shard.multi, CURLMOPT_PIPELINING,
                    static_cast<long>(multiplexes() ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING));
  if (multiplexes()) {
    curl_multi_setopt(shard.multi, CURLMOPT_MAX_CONCURRENT_STREAMS,
                      static_cast<long>(config_.target->streams_max));
  }
  curl_multi_setopt(shard.multi, CURLMOPT_MAXCONNECTS, static_cast<long>(kept_max));
  curl_multi_setopt(shard.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                    static_cast<long>(connections_max));
}

void MultiTransport::open_slots(Shard& shard) {
  const auto index = static_cast<std::size_t>(&shard - shards_.data());
  const std::size_t slots = std::min(slots_per_shard_, capacity_ - index * slots_per_shard_);
  if (config_.connections_max == 0) {
    open_shard(shard, 0, slots * kKeptPerSlot + 1);
    return;
  }
  // The spare connections beyond one per slot are shared out by slots. A shard never uses more than
  // its slots at once, so curl always finds an idle one to close and never makes a request wait.
  const std::size_t all = config_.connections_max;
  const std::size_t share = multiplexes() ? std::max<std::size_t>(1, all * slots / capacity_)
                                          : slots + (all - capacity_) * slots / capacity_;
  shard.connections_max = share;
  open_shard(shard, share, share);
}

int MultiTransport::on_timer(CURLM*, long timeout_ms, void* shard) {
  auto& self = *static_cast<Shard*>(shard);
  self.wake_at = timeout_ms < 0 ? base::kFarFuture
                                : self.owner->clock_.mono() + base::Duration::millis(timeout_ms);
  return 0;
}

void MultiTransport::act(Shard& shard, curl_socket_t fd, int bits) {
  if (fd == CURL_SOCKET_TIMEOUT) {
    shard.wake_at = base::kFarFuture;  // curl sets it again when something is left
  }
  int running = 0;
  const CURLMcode code = curl_multi_socket_action(shard.multi, fd, bits, &running);
  TUTTI_CHECK(code == CURLM_OK);
  if (static_cast<std::size_t>(running) < shard.running) {
    shard.ended = true;
  }
}

// ---- sockets ---------------------------------------------------------------------------------

MultiTransport::SocketState& MultiTransport::state_of(int fd) {
  const auto index = static_cast<std::size_t>(fd);
  if (index >= sockets_.size()) {
    sockets_.resize(std::max(index + 1, sockets_.size() * 2));
  }
  return sockets_[index];
}

int MultiTransport::on_wanted(CURL*, curl_socket_t fd, int what, void* shard, void*) {
  auto& self = *static_cast<Shard*>(shard);
  self.owner->want(self, fd, what);
  return 0;
}

void MultiTransport::want(Shard& shard, int fd, int what) {
  SocketState& state = state_of(fd);
  if (what == CURL_POLL_REMOVE) {
    state.wanted = 0;
    // Ours stay registered until they are closed or say something unasked. curl's own helpers (the
    // resolver's socket pair) are closed behind our back, so they must go now.
    if (!state.ours && state.registered != 0) {
      poller_.remove(fd);
      state = {};
    }
    return;
  }
  std::uint8_t events = 0;
  events |= (what & CURL_POLL_IN) != 0 ? sys::kReadable : 0U;
  events |= (what & CURL_POLL_OUT) != 0 ? sys::kWritable : 0U;
  state.shard = &shard;
  state.wanted = events;
  if (state.registered == events) {
    return;
  }
  const bool done = state.registered == 0 ? poller_.add(fd, events) : poller_.change(fd, events);
  TUTTI_CHECK(done);  // ours were added when opened, where failing is an ordinary error
  state.registered = events;
}

void MultiTransport::on_sockets(std::span<const sys::Ready> events) {
  for (const auto& ready : events) {
    on_socket(ready);
  }
}

void MultiTransport::on_socket(const sys::Ready& ready) {
  SocketState& state = state_of(ready.fd);
  if (state.wanted == 0) {
    if (stock_.on_socket(ready)) {
      return;
    }
    // An idle connection speaks or was closed; curl sees that itself before it would use it again.
    poller_.remove(ready.fd);
    state.registered = 0;
    if (state.home != nullptr && !multiplexes()) {  // HTTP/2's peer may well say something
      // An end, nearly always. (Or a TLS ticket: curl may still use it, and a query that could have
      // had it waits for the pacer instead.)
      --state.home->open[state.frontend];
      state.home = nullptr;
    }
    return;
  }
  const bool broken = (ready.events & sys::kBroken) != 0;
  int bits = 0;
  if ((state.wanted & sys::kReadable) != 0 && (broken || (ready.events & sys::kReadable) != 0)) {
    bits |= CURL_CSELECT_IN;
  }
  if ((state.wanted & sys::kWritable) != 0 && (broken || (ready.events & sys::kWritable) != 0)) {
    bits |= CURL_CSELECT_OUT;
  }
  Shard& shard = *state.shard;
  act(shard, ready.fd, bits);
  if (shard.ended) {
    deliver(shard);
  }
  if (shard.line_moves) {
    serve_lines(shard, clock_.mono());
  }
}

// Into the epoll set already here, where a refusal is an ordinary failed connect.
curl_socket_t MultiTransport::adopt(StockedSocket socket, std::uint16_t frontend, int& os_error) {
  if (!socket.fd.is_open()) {
    return CURL_SOCKET_BAD;
  }
  if (!poller_.add(socket.fd.get(), sys::kWritable)) {
    os_error = errno;
    sources_.closed(frontend, socket.source);
    return CURL_SOCKET_BAD;
  }
  SocketState& state = state_of(socket.fd.get());
  state = {};
  state.ours = true;
  state.registered = sys::kWritable;
  state.frontend = frontend;
  state.source = socket.source;
  ++sockets_open_;
  os_error = 0;  // that of another address family, which curl tried before
  return socket.fd.release();
}

StockedSocket MultiTransport::fresh_socket(const curl_sockaddr& address, std::uint16_t frontend,
                                           int& os_error) {
  StockedSocket fresh;
  fresh.fd = sources_.open(address.family, frontend, fresh.source, os_error);
  return fresh;
}

curl_socket_t MultiTransport::open_socket(const curl_sockaddr& address, Exchange& exchange,
                                          bool& connected, int& os_error) {
  const std::uint16_t frontend = exchange.frontend();
  if (multiplexes() && !exchange.opens) {
    exchange.found_none = true;
    return CURL_SOCKET_BAD;
  }
  StockedSocket socket = stock_.take(frontend, &address.addr, address.addrlen);
  connected = socket.fd.is_open();
  if (!connected) {
    if (config_.connections_max > 0) {
      while (open_connections() >= config_.connections_max && stock_.drop_one()) {
      }
    }
    paces_.charge(frontend, exchange.wait.let_in, clock_.mono());
    socket = fresh_socket(address, frontend, os_error);
  }
  const curl_socket_t fd = adopt(std::move(socket), frontend, os_error);
  if (fd != CURL_SOCKET_BAD) {
    Shard& shard = shard_of(exchange);
    state_of(fd).home = &shard;
    ++shard.open[frontend];
    if (multiplexes()) {
      exchange.opened[exchange.opened[0] < 0 ? 0 : 1] = fd;
      state_of(fd).opener = &exchange;
    }
  }
  return fd;
}

void MultiTransport::close_socket(curl_socket_t fd) {
  SocketState& state = state_of(fd);
  if (state.home != nullptr) {
    --state.home->open[state.frontend];
    if (state.stands) {
      --state.home->standing[state.frontend];
      state.home->streams[state.frontend] = config_.target->streams_max;
    }
  }
  sources_.closed(state.frontend, state.source);
  state = {};
  --sockets_open_;
  ::close(fd);  // leaves the epoll set by itself
}

// ---- exchanges -------------------------------------------------------------------------------

void MultiTransport::start(const Query& query, base::Instant now) {
  TUTTI_CHECK(!free_slots_.empty());
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  if (!exchanges_[slot]) {
    exchanges_[slot] = std::make_unique<Exchange>(shared_);
    exchanges_[slot]->slot = slot;
  }
  Exchange& exchange = *exchanges_[slot];
  Shard& shard = shard_of(exchange);
  if (shard.multi == nullptr) {
    open_slots(shard);
  }
  exchange.begin(query, now);
  exchange.wait.let_in = false;
  exchange.older = newest_;
  exchange.newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = &exchange;
  newest_ = &exchange;
  ++in_flight_;
  if (multiplexes()) {
    exchange.found_none = false;
    wait_to_connect(exchange);
    serve_line(shard, exchange.frontend(), now);
    return;
  }
  if (may_connect(exchange.frontend(), exchange.started_at()) ||
      finds_connection(shard, exchange)) {
    launch(exchange);
  } else {
    wait_to_connect(exchange);
  }
}

void MultiTransport::launch(Exchange& exchange) {
  Shard& shard = shard_of(exchange);
  exchange.bound_connecting(multiplexes() ? exchange.opens : !finds_connection(shard, exchange));
  // What may open a connection or take one from stock does so before the next query asks for it.
  const bool kept = !multiplexes() && has_idle(shard, exchange.frontend());
  ++shard.running;
  ++shard.busy[exchange.frontend()];
  TUTTI_CHECK(curl_multi_add_handle(shard.multi, exchange.easy()) == CURLM_OK);
  if (!kept) {
    act(shard, CURL_SOCKET_TIMEOUT, 0);
  } else if (!shard.launched) {
    shard.launched = true;
    launched_.push_back(&shard);
  }
}

void MultiTransport::flush() {
  for (Shard* const shard : launched_) {
    shard->launched = false;
    act(*shard, CURL_SOCKET_TIMEOUT, 0);  // sends now instead of in the next turn
  }
  launched_.clear();
}

void MultiTransport::release(Exchange& exchange) {
  Shard& shard = shard_of(exchange);
  if (exchange.wait.on) {
    forget_waiting(exchange);
  } else {
    curl_multi_remove_handle(shard.multi, exchange.easy());
    forget_connecting(exchange);
    --shard.running;
    --shard.busy[exchange.frontend()];
    note_opened(shard, exchange);
  }
  --in_flight_;
  (exchange.older != nullptr ? exchange.older->newer : oldest_) = exchange.newer;
  (exchange.newer != nullptr ? exchange.newer->older : newest_) = exchange.older;
  free_slots_.push_back(exchange.slot);
  if (waiting_count_ == 0 || cancelling_) {
    return;
  }
  if (multiplexes()) {
    serve_line(shard, exchange.frontend(), clock_.mono());
  } else {
    give_to_waiting(shard);
  }
}

void MultiTransport::deliver(Shard& shard) {
  shard.ended = false;
  // The sink may start queries that end at once; those wait for the next turn, so that a dead
  // frontend cannot keep this loop for itself.
  for (std::size_t left = shard.running; left > 0; --left) {
    int queued = 0;
    const CURLMsg* message = curl_multi_info_read(shard.multi, &queued);
    if (message == nullptr) {
      return;
    }
    CURL* easy = message->easy_handle;
    const CURLcode code = message->data.result;
    if (&shard == &probe_shard_) {
      deliver_probe(easy, code);
      continue;
    }
    Exchange& exchange = *Exchange::of(easy);
    if (exchange.found_none && goes_back_to_line(shard, exchange)) {
      continue;
    }
    const base::Instant now = clock_.mono();
    end(exchange, now, exchange.finish(code, now));
  }
}

void MultiTransport::end(Exchange& exchange, base::Instant at, EndKind kind,
                         std::string_view detail) {
  end(exchange, at, exchange.finish(kind, at, detail));
}

void MultiTransport::end(Exchange& exchange, base::Instant at,
                         std::unique_ptr<wire::Record>& record) {
  Shard& shard = shard_of(exchange);
  const std::uint16_t frontend = exchange.frontend();
  paces_.note_end(frontend, *record);
  const bool fails_line =
      multiplexes() && !failing_line_ && record->failure == wire::Failure::kConnectTimeout;
  failing_line_ = failing_line_ || fails_line;
  release(exchange);
  sink_.on_done(record);
  if (fails_line) {
    fail_line(shard, frontend, at);
  }
}

// ---- connections whose time curl does not bound ----------------------------------------------

void MultiTransport::connection_begins(Exchange& exchange) {
  exchange.connecting.on = true;
  exchange.connecting.since = clock_.mono();
  connecting_.add(exchange.connecting);
}

void MultiTransport::connection_stands(Exchange& exchange) {
  forget_connecting(exchange);
  if (exchange.opens) {
    note_standing(exchange);
  }
}

void MultiTransport::forget_connecting(Exchange& exchange) {
  if (exchange.connecting.on) {
    exchange.connecting.on = false;
    connecting_.remove(exchange.connecting);
  }
}

void MultiTransport::expire_connecting(base::Instant now) {
  const base::Duration limit = config_.target->connect_timeout;
  while (limit.ns > 0 && connecting_.oldest() != nullptr &&
         connecting_.oldest()->since + limit <= now) {
    Exchange& exchange = *connecting_.oldest()->exchange;
    end(exchange, clock_.mono(), EndKind::kConnectTimeout,
        fmt::format("{}: {} ms passed", exchange.frontend_label(), limit.ns / 1'000'000));
  }
}

void MultiTransport::expire(base::Instant now) {
  // All queries of a phase have the same time, so the oldest is the first to run out of it.
  while (oldest_ != nullptr && runs_out_at(*oldest_) <= now) {
    const TimeAllowed allowed = oldest_->allowed();
    if (allowed.of_turn) {
      end(*oldest_, clock_.mono(), EndKind::kTurnTimeout, turn_timeout_text(allowed.whole));
      continue;
    }
    end(*oldest_, clock_.mono(), EndKind::kRequestTimeout,
        fmt::format("{}: {} ms passed{}", oldest_->frontend_label(), allowed.whole.ns / 1'000'000,
                    oldest_->wait.on ? " in the line for a connection" : ""));
  }
}

void MultiTransport::cancel_all(std::string_view reason) {
  for (auto& shard : shards_) {
    if (shard.ended) {
      deliver(shard);
    }
  }
  cancelling_ = true;  // nobody in the line is let in on the way
  for (std::size_t left = in_flight_; left > 0 && oldest_ != nullptr; --left) {
    end(*oldest_, clock_.mono(), EndKind::kCancelled, reason);
  }
  cancelling_ = false;
}

void MultiTransport::on_wake(base::Instant now) {
  const bool pace_allows = paced_ && paces_.open(now);
  paced_ = paced_ && !pace_allows;
  for (auto& shard : shards_) {
    if (shard.wake_at <= now) {
      act(shard, CURL_SOCKET_TIMEOUT, 0);
    }
    if (shard.ended) {
      deliver(shard);
    }
    if (shard.line_moves || pace_allows) {
      serve_lines(shard, now);
    }
  }
  expire(now);
  expire_connecting(now);
  if (waiting_count_ > 0 && !multiplexes()) {
    go_on_connecting(now);
  }
  if (warming_ != Warming::kNo) {
    go_on_warming(now);
  }
}

base::Instant MultiTransport::next_wake() const {
  base::Instant next = stock_.next_wake();
  for (const auto& shard : shards_) {
    next = std::min(next, shard.ended || shard.line_moves ? base::Instant{1} : shard.wake_at);
  }
  if (warming_ == Warming::kProbing) {
    const bool now = probe_shard_.ended || probes_running_ == 0;
    next = std::min(next, now ? base::Instant{1} : probe_shard_.wake_at);
  }
  if (multiplexes() ? paced_ : waiting_count_ > 0) {
    next = std::min(next, paces_.next_at());
  }
  if (oldest_ != nullptr) {
    next = std::min(next, runs_out_at(*oldest_));
  }
  if (connecting_.oldest() != nullptr && config_.target->connect_timeout.ns > 0) {
    next = std::min(next, connecting_.oldest()->since + config_.target->connect_timeout);
  }
  return next;
}

}  // namespace tutti::target
