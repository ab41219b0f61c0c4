// DirectTransport's TLS: the handshake, and the way of requests and replies through a TlsSession.
// The socket calls stay the transport's own, so that every read has its kernel stamp.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/target/direct_transport.h"
#include "common/base/check.h"

namespace tutti::target {

// ---- handshake -------------------------------------------------------------------------------

// TCP stands; with a call or, ahead of need, without.
void DirectTransport::shake(Connection& connection, base::Instant now) {
  pool_.shakes(connection, now);
  if (!connection.tls.open(*tls_, connection.frontend)) {
    fail_shaking(connection, connection.tls.problem());
    return;
  }
  std::string_view rest;
  if (connection.tls.handshake({}, rest) == TlsSession::Shaking::kFailed) {
    fail_shaking(connection, connection.tls.problem());
    return;
  }
  const bool full = ConnectionPool::flush(connection) == EAGAIN;
  pool_.watch(connection, full ? sys::kReadable | sys::kWritable : sys::kReadable);
}

void DirectTransport::go_on_shaking(Connection& connection) {
  Arrival arrival = receive(connection.fd.get());
  if (arrival.bytes.empty() && arrival.error != EAGAIN) {
    fail_shaking(connection, fmt::format("TLS handshake failed: {}",
                                         arrival.error == 0 ? "the server closed the connection"
                                                            : std::strerror(arrival.error)));
    return;
  }
  check_clocks(arrival.read_at);
  std::string_view rest;
  const auto shaking = connection.tls.handshake(arrival.bytes, rest);
  // What cannot be sent for another reason shows in the next read.
  const bool full = ConnectionPool::flush(connection) == EAGAIN;
  switch (shaking) {
    case TlsSession::Shaking::kFailed:
      fail_shaking(connection, connection.tls.problem());
      break;
    case TlsSession::Shaking::kWaits:
      pool_.watch(connection, full ? sys::kReadable | sys::kWritable : sys::kReadable);
      break;
    case TlsSession::Shaking::kDone:
      arrival.bytes = rest;
      end_shaking(connection, arrival);
      break;
  }
}

// `rest` came with the last bytes of the handshake: tickets of a server that sends them early.
void DirectTransport::end_shaking(Connection& connection, const Arrival& rest) {
  const base::Instant now = clock_.mono();
  pool_.stands(connection);
  DirectCall* const call = connection.call;
  if (call != nullptr) {
    const std::int64_t took_us = (now - connection.shaking_from).ns / 1000;
    call->record().tls_us =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(took_us, 1, UINT32_MAX));
    connection.tls.note_request();
    send(connection);
    if (call->connection == &connection && connection.state == Connection::State::kBusy &&
        !rest.bytes.empty()) {
      read_secured(connection, rest);
    }
    return;
  }
  --shaking_ahead_;
  std::string_view plain;
  if (!rest.bytes.empty() &&
      (connection.tls.decrypt(rest.bytes, plain) != TlsSession::Reading::kMore || !plain.empty())) {
    pool_.close(connection);
    return;
  }
  pool_.watch(connection, sys::kReadable);
  pool_.keep(connection, now);
  ++shaken_ahead_;
}

void DirectTransport::fail_shaking(Connection& connection, std::string_view what) {
  if (connection.call != nullptr) {
    end_soon(*connection.call, EndKind::kTls, words(*connection.call, what));
    return;
  }
  --shaking_ahead_;
  pool_.close(connection);
}

// ---- request and reply -----------------------------------------------------------------------

// 0: the socket has taken all that can be sent now; EAGAIN: it is full. A record's plain bytes
// count as sent when the socket has taken the record whole, since the peer can read it no earlier.
int DirectTransport::send_secured(Connection& connection, DirectCall& call) {
  TlsSession& tls = connection.tls;
  while (true) {
    if (const int error = ConnectionPool::flush(connection); error != 0) {
      return error;
    }
    call.mark_sent(std::exchange(tls.request_bytes, 0));
    if (call.whole_sent()) {
      return 0;
    }
    switch (tls.encrypt(call.unsent(), tls.request_bytes)) {
      case TlsSession::Writing::kDone:
        break;
      case TlsSession::Writing::kWaits:
        return ConnectionPool::flush(connection);  // and once more after the next read
      case TlsSession::Writing::kBroken:
        return EPROTO;
    }
  }
}

void DirectTransport::read_secured(Connection& connection, const Arrival& arrival) {
  DirectCall& call = *connection.call;
  Arrival plain = arrival;
  const auto reading = connection.tls.decrypt(arrival.bytes, plain.bytes);
  const int error = ConnectionPool::flush(connection);  // an answer to a key update, an alert
  const bool good = reading == TlsSession::Reading::kMore && error == 0;
  if (!plain.bytes.empty() && !hand_over(call, plain, good)) {
    return;
  }
  switch (reading) {
    case TlsSession::Reading::kClosed:
      read_end(connection, 0);
      return;
    case TlsSession::Reading::kBroken:
      end(call, clock_.mono(), EndKind::kTls, words(call, connection.tls.problem()));
      return;
    case TlsSession::Reading::kMore:
      break;
  }
  if ((error != 0 || !call.whole_sent()) && call.send_error == 0) {
    send(connection);
  }
}

}  // namespace tutti::target
