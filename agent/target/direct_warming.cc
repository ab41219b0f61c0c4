// DirectTransport's names and warming: the prober learns addresses, then the warm stock opens.

#include <utility>

#include "agent/target/direct_transport.h"
#include "common/base/check.h"

namespace tutti::target {
namespace {

constexpr base::Duration kConnectTimeout = base::Duration::seconds(10);  // when none is set

}  // namespace

void DirectTransport::probe() {
  if (probing_) {
    return;
  }
  probing_ = true;
  WarmPlan none;
  none.connections.assign(config_.frontends.size(), 0);
  prober_.warm(none);
}

void DirectTransport::warm(const WarmPlan& plan) {
  TUTTI_CHECK(!warm_plan_ && !warmed_);
  warm_plan_ = plan;
  probe();
}

void DirectTransport::on_probed(Warmed warmed) {
  probing_ = false;
  const base::Instant now = clock_.mono();
  std::vector<SocketAddress> reachable(shared_.heads.size());
  for (std::size_t i = 0; i < shared_.heads.size(); ++i) {
    const Resolved& resolved = prober_.resolved()[i];
    if (!shared_.heads[i].address.is_set()) {
      shared_.heads[i].address = resolved.address;
    }
    if (warmed.frontends[i].reachable) {
      reachable[i] = shared_.heads[i].address;
    }
  }
  std::vector<DirectCall*> waiting;
  waiting.swap(waiting_for_name_);
  for (DirectCall* call : waiting) {
    call->waits_for_name = false;
    const std::size_t frontend = call->frontend();
    if (shared_.heads[frontend].address.is_set()) {
      call->record().dns_us = prober_.resolved()[frontend].dns_us;
      connect(*call, now);
    } else {
      end_soon(*call, EndKind::kConnect, warmed.frontends[frontend].error);
    }
  }
  if (warm_plan_) {
    stock_.begin(*warm_plan_, reachable, warming_limit(), now);
    warm_plan_.reset();
    shaken_ahead_ = 0;
    warmed_ = std::move(warmed);
  }
}

void DirectTransport::go_on_opening(base::Instant now) {
  stock_.on_wake(now);
  shake_stock(now);
  expire_shaking(now);
  if (stock_.opening() || shaking_ahead_ > 0) {
    return;
  }
  Warmed warmed = std::move(*warmed_);
  warmed_.reset();
  warmed.connections_open = static_cast<std::uint32_t>(stock_.size()) + shaken_ahead_;
  sink_.on_warmed(std::move(warmed));
}

// Of https frontends the stock keeps none: each goes on to its handshake as soon as it stands.
void DirectTransport::shake_stock(base::Instant now) {
  for (std::size_t i = 0; i < config_.frontends.size(); ++i) {
    const auto frontend = static_cast<std::uint16_t>(i);
    const SocketAddress& address = shared_.heads[i].address;
    while (is_tls(frontend)) {
      StockedSocket stocked = stock_.take(
          frontend, reinterpret_cast<const sockaddr*>(&address.storage), address.length);
      int os_error = 0;
      Connection* connection =
          stocked.fd.is_open() ? pool_.adopt(std::move(stocked), frontend, os_error) : nullptr;
      if (connection == nullptr) {
        break;
      }
      ++shaking_ahead_;
      shake(*connection, now);
    }
  }
}

// Of handshakes ahead of need, also when queries have no time limit for theirs.
base::Duration DirectTransport::warming_limit() const {
  const base::Duration set = config_.target->connect_timeout;
  return set.ns > 0 ? set : kConnectTimeout;
}

base::Instant DirectTransport::shaking_expires_at() const {
  const Connection* oldest = pool_.oldest_connecting();
  while (oldest != nullptr && oldest->call != nullptr) {
    oldest = oldest->newer;
  }
  return oldest != nullptr ? oldest->since + warming_limit() : base::kFarFuture;
}

void DirectTransport::expire_shaking(base::Instant now) {
  Connection* next = shaking_ahead_ > 0 ? pool_.oldest_connecting() : nullptr;
  while (next != nullptr && next->since + warming_limit() <= now) {
    Connection& connection = *std::exchange(next, next->newer);
    if (connection.call == nullptr) {
      fail_shaking(connection, {});
    }
  }
}

}  // namespace tutti::target
