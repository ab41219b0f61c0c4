// DirectTransport's way to a connection for a query: a kept one, one opened ahead, or a new one.

#include <curl/curl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/target/curl_end.h"
#include "agent/target/direct_transport.h"

namespace tutti::target {
namespace {

std::uint32_t whole_us(base::Duration time) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.ns / 1000, 1, UINT32_MAX));
}

}  // namespace

void DirectTransport::bind(DirectCall& call, Connection& connection) {
  call.connection = &connection;
  connection.call = &call;
  connection.tls.note_request();
}

void DirectTransport::attach(DirectCall& call, base::Instant now) {
  const std::uint16_t frontend = call.frontend();
  Connection* connection = pool_.take_idle(frontend, now, config_.target->idle_connection_max);
  if (connection != nullptr) {
    call.record().connection_reused = connection->was_used;
  } else {
    const SocketAddress& address = shared_.heads[frontend].address;
    sys::Fd fd(
        stock_.take(frontend, reinterpret_cast<const sockaddr*>(&address.storage), address.length));
    int os_error = 0;
    connection = fd.is_open() ? pool_.adopt(std::move(fd), frontend, os_error) : nullptr;
  }
  if (connection == nullptr) {
    connect(call, now);
    return;
  }
  bind(call, *connection);
  if (is_tls(frontend) && !connection->tls.is_open()) {
    shake(*connection, now);
    return;
  }
  connection->was_open = true;
  send(*connection);
}

void DirectTransport::connect(DirectCall& call, base::Instant now) {
  const SocketAddress& address = shared_.heads[call.frontend()].address;
  if (!address.is_set()) {
    call.waits_for_name = true;
    waiting_for_name_.push_back(&call);
    probe();
    return;
  }
  if (config_.connections_max > 0) {
    while (open_connections() >= config_.connections_max &&
           (pool_.drop_idle() || stock_.drop_one())) {
    }
  }
  CurlFacts facts;  // the same words as the other transport's
  facts.code = CURLE_COULDNT_CONNECT;
  facts.frontend = config_.frontends[call.frontend()].label;
  Connection* connection = pool_.connect(address, call.frontend(), now, facts.os_error);
  if (connection == nullptr) {
    note_shortage(facts.os_error);
    end_soon(call, EndKind::kConnect, end_detail_of(facts));
    return;
  }
  bind(call, *connection);
  if (connection->state == Connection::State::kBusy) {
    const base::Instant stands_at = clock_.mono();
    call.record().connect_us = whole_us(stands_at - now);
    if (is_tls(call.frontend())) {
      shake(*connection, stands_at);
    } else {
      send(*connection);
    }
  }
}

void DirectTransport::note_shortage(int os_error) {
  if (is_shortage_here(os_error)) {
    gauges_.connect_shortages.fetch_add(1, std::memory_order_relaxed);
  }
}

void DirectTransport::finish_connect(Connection& connection) {
  DirectCall& call = *connection.call;
  CurlFacts facts;
  facts.code = CURLE_COULDNT_CONNECT;
  facts.frontend = config_.frontends[call.frontend()].label;
  facts.os_error = pool_.finish_connect(connection);
  if (facts.os_error == EINPROGRESS) {
    return;
  }
  note_shortage(facts.os_error);
  if (facts.os_error == ETIMEDOUT) {  // the kernel gave up before we did
    end_soon(call, EndKind::kConnectTimeout, end_detail_of(facts));
  } else if (facts.os_error != 0) {
    end_soon(call, EndKind::kConnect, end_detail_of(facts));
  } else {
    const base::Instant now = clock_.mono();
    call.record().connect_us = whole_us(now - connection.since);
    if (is_tls(call.frontend())) {
      shake(connection, now);
    } else {
      pool_.stands(connection);
      send(connection);
    }
  }
}

}  // namespace tutti::target
