// DirectTransport's way to a connection for a query: a kept one, one opened ahead, or a new one,
// now or in line when connect_rate_max, or its frontend's trouble, bounds it.

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

// The connection that its request may go out on now; null while there is none.
Connection* DirectTransport::attach(DirectCall& call, base::Instant now) {
  const std::uint16_t frontend = call.frontend();
  Connection* connection = pool_.take_idle(frontend, now, config_.target->idle_connection_max);
  if (connection != nullptr) {
    call.record().connection_reused = connection->was_used;
  } else {
    const SocketAddress& address = shared_.heads[frontend].address;
    StockedSocket stocked =
        stock_.take(frontend, reinterpret_cast<const sockaddr*>(&address.storage), address.length);
    int os_error = 0;
    if (stocked.fd.is_open()) {
      connection = pool_.adopt(std::move(stocked), frontend, os_error);
    }
  }
  if (connection == nullptr) {
    connect(call, now);
    return nullptr;
  }
  bind(call, *connection);
  if (is_tls(frontend) && !connection->tls.is_open()) {
    shake(*connection, now);
    return nullptr;
  }
  connection->was_open = true;
  return connection;
}

void DirectTransport::connect(DirectCall& call, base::Instant now) {
  const SocketAddress& address = shared_.heads[call.frontend()].address;
  if (!address.is_set()) {
    call.waits_for_name = true;
    waiting_for_name_.push_back(&call);
    probe();
  } else if (may_connect(call.frontend(), now)) {
    connect_now(call, address, now);
  } else {
    wait_to_connect(call);
  }
}

// Without connect_rate_max only those for a frontend in trouble have to stand in line.
bool DirectTransport::may_connect(std::uint16_t frontend, base::Instant now) const {
  return !paces_.bounds(frontend) || (waiting_count_ == 0 && paces_.open(now));
}

void DirectTransport::connect_now(DirectCall& call, const SocketAddress& address,
                                  base::Instant now) {
  paces_.charge(call.frontend(), call.wait.let_in, now);
  while (open_connections() >= kept_max_ && (pool_.drop_idle() || stock_.drop_one())) {
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

void DirectTransport::wait_to_connect(DirectCall& call) {
  waiting_to_connect_[call.frontend()].add(call.wait);
  call.wait.on = true;
  ++waiting_count_;
}

// A connection to `frontend` has just fallen idle: the longest waiting query goes first.
void DirectTransport::give_to_waiting(std::uint16_t frontend, base::Instant now) {
  const auto* first = waiting_to_connect_[frontend].oldest();
  while (first != nullptr && first->call->record().resent) {
    first = first->newer;  // what is sent again goes on a fresh connection
  }
  if (first == nullptr) {
    return;
  }
  Connection* connection = pool_.take_idle(frontend, now, config_.target->idle_connection_max);
  if (connection == nullptr) {
    return;
  }
  DirectCall& call = *first->call;
  forget_waiting(call);
  call.record().connection_reused = connection->was_used;
  connection->was_open = true;
  bind(call, *connection);
  send(*connection);
}

bool DirectTransport::goes_before(const DirectCall& call, const DirectCall& other) const {
  return paces_.goes_first(call.frontend(), call.started_at(), other.frontend(),
                           other.started_at());
}

// Opens what the pacer allows, the longest waiting query first.
void DirectTransport::go_on_connecting(base::Instant now) {
  while (waiting_count_ > 0 && paces_.open(now)) {
    DirectCall* first = nullptr;
    for (const auto& line : waiting_to_connect_) {
      if (line.oldest() != nullptr &&
          (first == nullptr || goes_before(*line.oldest()->call, *first))) {
        first = line.oldest()->call;
      }
    }
    forget_waiting(*first);
    first->wait.let_in = true;
    connect_now(*first, shared_.heads[first->frontend()].address, now);
  }
}

}  // namespace tutti::target
