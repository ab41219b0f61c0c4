#include "agent/target/direct_transport.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "agent/target/curl_end.h"
#include "common/base/check.h"
#include "common/sys/socket_io.h"

namespace tutti::target {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;
constexpr std::size_t kReadLeast = std::size_t{64} << 10;  // room for one read
constexpr std::size_t kKeptPerSlot = 2;  // without connections_max: room to change frontends

std::size_t capacity_of(const TransportConfig& config) {
  const std::size_t slots = config.slots;
  return config.connections_max == 0 ? slots : std::min<std::size_t>(slots, config.connections_max);
}

TransportConfig prober_config(TransportConfig config) {
  config.slots = 1;
  config.connections_max = 0;
  return config;
}

sys::Fd stamp_switch() {
  sys::Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
  return fd;
}

// What the kernel said beside the bytes of one read.
void take_asides(msghdr& message, Arrival& arrival) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) {
      timespec at{};
      std::memcpy(&at, CMSG_DATA(part), sizeof at);
      arrival.stamp_wall_ns = std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
    } else if (part->cmsg_level == SOL_TCP && part->cmsg_type == TCP_CM_INQ) {
      int left = 0;
      std::memcpy(&left, CMSG_DATA(part), sizeof left);
      arrival.quiet = left == 0;
    }
  }
}

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) & ~std::size_t{63}; }

// The peer has gone; what it said before may still lie in the socket.
bool peer_gone(int error) { return error == EPIPE || error == ECONNRESET; }

}  // namespace

DirectTransport::DirectTransport(TransportConfig config, sys::Poller& poller,
                                 const base::Clock& clock, ExchangeSink& sink, LiveGauges& gauges)
    : config_(std::move(config)),
      clock_(clock),
      sink_(sink),
      gauges_(gauges),
      probe_sink_(*this),
      prober_(prober_config(config_), poller, clock, probe_sink_, gauges),
      sources_(config_.sources, config_.frontends.size(), config_.global_worker),
      paces_(config_.frontends.size(), config_.connect_rate_max, config_.trouble_rate_max),
      pool_(config_.frontends.size(), poller, sources_),
      stock_(config_.frontends.size(), poller, sources_),
      stamp_switch_(stamp_switch()),
      capacity_(capacity_of(config_)),
      kept_max_(config_.connections_max > 0 ? config_.connections_max : capacity_ * kKeptPerSlot),
      slots_(capacity_),
      waiting_to_connect_(config_.frontends.size()),
      buffer_(kReadBytes) {
  shared_.config = &config_;
  shared_.gauges = &gauges_;
  shared_.known_head = &known_head_;
  shared_.known_form = &known_form_;
  std::vector<std::string> hosts;
  bool tls = false;
  for (const auto& frontend : config_.frontends) {
    shared_.heads.push_back(render_head(frontend, *config_.target));
    hosts.push_back(shared_.heads.back().host);
    tls = tls || frontend.tls;
  }
  if (tls) {
    const char* ca_file = std::getenv("SSL_CERT_FILE");
    const wire::TargetSpec& target = *config_.target;
    const TlsTrust trust{target.verify_tls, ca_file != nullptr ? ca_file : "", target.ca_pem,
                         target.client_cert_pem, target.client_key_pem};
    tls_ = std::make_unique<TlsContext>(trust, std::move(hosts), buffer_.size());
  }
  free_slots_.reserve(capacity_);
  for (std::size_t slot = capacity_; slot-- > 0;) {
    free_slots_.push_back(static_cast<std::uint32_t>(slot));
  }
}

DirectTransport::~DirectTransport() = default;

// ---- a query ---------------------------------------------------------------------------------

void DirectTransport::start(const Query& query, base::Instant now) {
  TUTTI_CHECK(!free_slots_.empty());
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  if (!slots_[slot]) {
    slots_[slot] = std::make_unique<DirectCall>(shared_);
    slots_[slot]->slot = slot;
  }
  DirectCall& call = *slots_[slot];
  call.begin(query, now);
  calls_.add(call);
  if (Connection* const connection = attach(call, now)) {
    outbox_.push_back(connection);
  }
}

void DirectTransport::flush() {
  for (Connection* const connection : outbox_) {
    send(*connection);
  }
  outbox_.clear();
}

// ---- the request out -------------------------------------------------------------------------

void DirectTransport::send(Connection& connection) {
  DirectCall& call = *connection.call;
  if (call.nothing_sent() && connection.tls.nothing_sent()) {
    call.note_sent_at(clock_.mono());
  }
  const int error =
      connection.tls.is_open() ? send_secured(connection, call) : send_plain(connection, call);
  if (error != 0 && error != EAGAIN) {
    fail_send(connection, error);
    return;
  }
  pool_.note_asked(connection);
  pool_.watch(connection, error == 0 ? sys::kReadable : sys::kReadable | sys::kWritable);
}

// 0: the socket has taken all; EAGAIN: it is full.
int DirectTransport::send_plain(Connection& connection, DirectCall& call) {
  if (const std::string_view request = call.in_one_piece(outgoing_); !request.empty()) {
    const ssize_t n = sys::send_bytes(connection.fd.get(), request, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      return errno;
    }
    call.mark_sent(static_cast<std::size_t>(n));
  }
  while (!call.whole_sent()) {
    const std::span<iovec> parts = call.unsent();
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t n = sys::send_message(connection.fd.get(), message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      return errno;
    }
    call.mark_sent(static_cast<std::size_t>(n));
  }
  return 0;
}

void DirectTransport::fail_send(Connection& connection, int error) {
  DirectCall& call = *connection.call;
  const bool untouched = call.nothing_sent() && connection.tls.nothing_sent();
  if (connection.was_open && untouched && !call.record().resent) {
    pool_.close(connection);
    call.connection = nullptr;
    call.record().resent = true;
    call.record().sent_at = {};
    call.record().connection_reused = false;
    connect(call, clock_.mono());
    return;
  }
  call.send_error = error;
  if (error == EPROTO) {  // of send_secured
    end_soon(call, EndKind::kTls, words(call, connection.tls.problem()));
    return;
  }
  if (!peer_gone(error)) {
    end_soon(call, EndKind::kReset, words(call, std::strerror(error)));
    return;
  }
  // An answer may have come before the peer went; the read will tell, and it comes at once.
  pool_.watch(connection, sys::kReadable);
  pool_.look_again(connection);
}

// ---- the reply in ----------------------------------------------------------------------------

// What is not a reply comes first: a connection that was closed while idle must not be handed out
// by a reply's end. Then all replies are received, then all are read.
void DirectTransport::on_sockets(std::span<const sys::Ready> events) {
  for (const auto& ready : events) {
    const auto [connection, asked] = pool_.find(ready.fd);
    if (asked != nullptr && ready.events == sys::kReadable) {  // nearly always
      unread_.push_back({ready.fd, connection, asked, {}});
    } else {
      on_socket(ready);
    }
  }
  std::size_t first = 0;
  std::span<char> room = buffer_;
  for (std::size_t i = 0; i < unread_.size(); ++i) {
    Unread& reply = unread_[i];
    reply.connection->fetch_lines();
    reply.call->fetch_own_lines();
    reply.arrival = receive(reply.fd, room);
    room = room.subspan(std::min(room.size(), whole_lines(reply.arrival.bytes.size())));
    if (room.size() < kReadLeast || i + 1 == unread_.size()) {
      read(std::span(unread_).subspan(first, i + 1 - first));
      first = i + 1;
      room = buffer_;
    }
  }
  unread_.clear();
}

void DirectTransport::read(std::span<const Unread> replies) {
  check_clocks(replies.back().arrival.read_at);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (i + 1 < replies.size()) {
      replies[i + 1].call->fetch_further_lines();
    }
    TUTTI_CHECK(replies[i].connection->call == replies[i].call);  // only its own reply ends it
    read(*replies[i].connection, replies[i].arrival);
  }
}

void DirectTransport::on_socket(const sys::Ready& ready) {
  Connection* const connection = pool_.find(ready.fd).connection;
  if (connection == nullptr) {
    if (!stock_.on_socket(ready)) {
      prober_.on_sockets({&ready, 1});
    }
    return;
  }
  if ((ready.events & sys::kBroken) != 0 && connection->state != Connection::State::kConnecting) {
    pool_.look_again(*connection);  // a read that finds bytes before the end does not come to it
  }
  switch (connection->state) {
    case Connection::State::kIdle:
      pool_.look_at_idle(*connection);
      return;
    case Connection::State::kConnecting:
      finish_connect(*connection);
      return;
    case Connection::State::kShaking:
      go_on_shaking(*connection);
      return;
    case Connection::State::kBusy:
      break;
  }
  DirectCall* const call = connection->call;
  // Writable is watched only while something waits to be sent.
  if ((ready.events & sys::kWritable) != 0 && call->send_error == 0) {
    send(*connection);
    if (call->connection != connection || connection->state != Connection::State::kBusy) {
      return;  // ended, or sent again on another one
    }
  }
  if ((ready.events & (sys::kReadable | sys::kBroken)) != 0) {
    const Arrival arrival = receive(ready.fd);
    check_clocks(arrival.read_at);
    read(*connection, arrival);
  }
}

// Of a connection's descriptor, which is known without the connection's own lines.
Arrival DirectTransport::receive(int fd, std::span<char> room) {
  iovec into{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control_.data();
  message.msg_controllen = control_.size();
  const ssize_t n = sys::receive_message(fd, message, MSG_DONTWAIT);
  Arrival arrival;
  arrival.error = n < 0 ? errno : 0;
  arrival.read_at = clock_.mono();
  if (n > 0) {
    arrival.bytes = {room.data(), static_cast<std::size_t>(n)};
    take_asides(message, arrival);
    if (!arrival.quiet) {
      pool_.look_again(*pool_.find(fd).connection);
    }
  }
  return arrival;
}

// Right after one or more reads, the last at `read_at`: a step of wall time before any of them is
// seen here, before a stamp of theirs is believed.
void DirectTransport::check_clocks(base::Instant read_at) {
  const std::int64_t wall_ns = clock_.wall_unix_ns();
  if (!stamps_.agrees(read_at, wall_ns)) {
    learn_offset(stamps_, read_at, wall_ns, clock_);
  }
}

void DirectTransport::read(Connection& connection, const Arrival& arrival) {
  if (arrival.bytes.empty()) {
    if (arrival.error != EAGAIN) {
      read_end(connection, arrival.error, connection.tls.is_open());
    }
  } else if (connection.tls.is_open()) {
    read_secured(connection, arrival);
  } else {
    hand_over(*connection.call, arrival, true);
  }
}

// Bytes of the reply. False: the call has ended.
bool DirectTransport::hand_over(DirectCall& call, const Arrival& arrival, bool may_keep) {
  const base::Instant read_at = arrival.read_at;
  const base::Instant at = stamp(arrival, call);
  gauges_.last_response_ns.store(read_at.ns, std::memory_order_relaxed);
  bool surplus = false;
  switch (call.read(arrival.bytes, at, surplus)) {
    case DirectCall::Reading::kMore:
      return true;
    case DirectCall::Reading::kWhole:
      call.connection->quiet_at = arrival.quiet ? read_at : base::Instant{};
      end(call, at, EndKind::kComplete, {},
          may_keep && call.keeps_alive() && call.whole_sent() && !surplus);
      break;
    case DirectCall::Reading::kUnusable:
      end(call, read_at, EndKind::kClosed, {});
      break;
    case DirectCall::Reading::kBad:
      end(call, read_at, EndKind::kBadReply, words(call, call.problem()));
      break;
  }
  return false;
}

// FIN (error 0) or a broken connection. `cut`: it was TLS's to say that this is the end, and it did
// not, so that bytes may be missing where HTTP would not notice.
void DirectTransport::read_end(Connection& connection, int error, bool cut) {
  DirectCall& call = *connection.call;
  const base::Instant now = clock_.mono();
  if (error == 0) {
    error = call.send_error;
  }
  if (error != 0) {
    end(call, now, EndKind::kReset, words(call, std::strerror(error)));
    return;
  }
  switch (call.end_of_input()) {
    case HttpReader::Ending::kWhole:
      if (cut) {
        end(call, now, EndKind::kReset, words(call, "closed without TLS's close_notify"));
      } else {
        end(call, now, EndKind::kComplete, {});
      }
      break;
    case HttpReader::Ending::kNothing:
      end(call, now, EndKind::kReset, words(call, "closed without a reply"));
      break;
    case HttpReader::Ending::kCutHead:
      end(call, now, EndKind::kReset, words(call, "closed inside the reply's header"));
      break;
    case HttpReader::Ending::kCutBody:
      end(call, now, EndKind::kClosed, words(call, "closed inside the reply's body"));
      break;
    case HttpReader::Ending::kBad:
      end(call, now, EndKind::kBadReply, words(call, call.problem()));
      break;
  }
}

base::Instant DirectTransport::stamp(const Arrival& arrival, const DirectCall& call) {
  const base::Instant read_at = arrival.read_at;
  const base::Instant at =
      arrival.stamp_wall_ns != 0 ? stamps_.map(arrival.stamp_wall_ns, read_at) : base::Instant{};
  if (!at.is_set()) {
    gauges_.reads_unstamped.store(gauges_.reads_unstamped.load(std::memory_order_relaxed) + 1,
                                  std::memory_order_relaxed);
    return read_at;
  }
  gauges_.read_lag.add(read_at - at);
  // The two clocks are compared to within microseconds: within a reply time does not go back.
  return std::max(at, call.last_stamp());
}

std::string DirectTransport::words(const DirectCall& call, std::string_view what) const {
  return fmt::format("{}: {}", config_.frontends[call.frontend()].label, what);
}

// ---- ends ------------------------------------------------------------------------------------

// For what goes wrong where no result may come from; on_wake delivers it.
void DirectTransport::end_soon(DirectCall& call, EndKind kind, std::string detail) {
  call.ended = true;
  call.end_kind = kind;
  call.end_detail = std::move(detail);
  if (call.connection != nullptr) {
    pool_.close(*call.connection);
    call.connection = nullptr;
  }
  ended_.push_back(&call);
}

void DirectTransport::forget_waiting(DirectCall& call) {
  if (call.ended) {
    std::erase(ended_, &call);
  }
  if (call.waits_for_name) {
    std::erase(waiting_for_name_, &call);
  }
  if (call.wait.on) {
    waiting_to_connect_[call.frontend()].remove(call.wait);
    call.wait.on = false;
    --waiting_count_;
  }
}

void DirectTransport::end(DirectCall& call, base::Instant at, EndKind kind, std::string_view detail,
                          bool keeps_connection) {
  std::unique_ptr<wire::Record>& record = call.finish(kind, at, detail);
  paces_.note_end(call.frontend(), *record);
  if (call.connection != nullptr) {
    if (keeps_connection) {
      pool_.keep(*call.connection, at);
      if (waiting_count_ > 0) {
        give_to_waiting(call.frontend(), at);
      }
      while (pool_.open() > kept_max_ && pool_.drop_idle()) {
      }
    } else {
      pool_.close(*call.connection);
    }
    call.connection = nullptr;
  }
  calls_.remove(call);
  free_slots_.push_back(call.slot);
  sink_.on_done(record);
}

// The sink may start queries that end at once; those wait for the next turn, so that a dead
// frontend cannot keep this loop for itself.
void DirectTransport::deliver_ended() {
  ended_before_.swap(ended_);
  for (DirectCall* call : ended_before_) {
    call->ended = false;
    const std::string detail = std::exchange(call->end_detail, {});
    end(*call, clock_.mono(), call->end_kind, detail);
  }
  ended_before_.clear();
}

void DirectTransport::expire(base::Instant now) {
  const base::Duration connecting = config_.target->connect_timeout;
  while (connecting.ns > 0 && pool_.oldest_connecting() != nullptr &&
         pool_.oldest_connecting()->since + connecting <= now) {
    if (pool_.oldest_connecting()->call == nullptr) {
      fail_shaking(*pool_.oldest_connecting(), {});
      continue;
    }
    DirectCall& call = *pool_.oldest_connecting()->call;
    end(call, clock_.mono(), EndKind::kConnectTimeout,
        words(call, fmt::format("{} ms passed", connecting.ns / 1'000'000)));
  }
  // All queries of a phase have the same time, so the oldest is the first to run out of it.
  while (calls_.oldest() != nullptr && runs_out_at(*calls_.oldest()) <= now) {
    DirectCall& call = *calls_.oldest();
    const char* const where = call.wait.on ? " in the line for a connection" : "";
    const TimeAllowed allowed = call.allowed();
    forget_waiting(call);
    if (allowed.of_turn) {
      end(call, clock_.mono(), EndKind::kTurnTimeout, turn_timeout_text(allowed.whole));
      continue;
    }
    end(call, clock_.mono(), EndKind::kRequestTimeout,
        words(call, fmt::format("{} ms passed{}", allowed.whole.ns / 1'000'000, where)));
  }
}

void DirectTransport::cancel_all(std::string_view reason) {
  deliver_ended();
  for (std::size_t left = calls_.size(); left > 0 && calls_.oldest() != nullptr; --left) {
    DirectCall& call = *calls_.oldest();
    forget_waiting(call);
    end(call, clock_.mono(), EndKind::kCancelled, reason);
  }
}

void DirectTransport::on_wake(base::Instant now) {
  deliver_ended();
  expire(now);
  if (waiting_count_ > 0) {
    go_on_connecting(now);
  }
  if (probing_ && prober_.next_wake() <= now) {
    prober_.on_wake(now);
  }
  if (warmed_) {
    go_on_opening(now);
  }
}

base::Instant DirectTransport::next_wake() const {
  if (!ended_.empty()) {
    return base::Instant{1};
  }
  base::Instant next = stock_.next_wake();
  if (probing_) {
    next = std::min(next, prober_.next_wake());
  }
  if (warmed_ && !stock_.opening()) {
    next = std::min(next, shaking_ahead_ == 0 ? base::Instant{1} : shaking_expires_at());
  }
  if (waiting_count_ > 0) {
    next = std::min(next, paces_.next_at());
  }
  const base::Duration connecting = config_.target->connect_timeout;
  if (connecting.ns > 0 && pool_.oldest_connecting() != nullptr) {
    next = std::min(next, pool_.oldest_connecting()->since + connecting);
  }
  if (calls_.oldest() != nullptr) {
    next = std::min(next, runs_out_at(*calls_.oldest()));
  }
  return next;
}

}  // namespace tutti::target
