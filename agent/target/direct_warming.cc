// DirectTransport's names and warming: the prober learns addresses, then the warm stock opens.

#include <utility>

#include "agent/target/direct_transport.h"
#include "common/base/check.h"

namespace tutti::target {
namespace {

constexpr base::Duration kConnectTimeoutOfStock = base::Duration::seconds(10);  // when none is set

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
    const base::Duration timeout = config_.target->connect_timeout;
    stock_.begin(*warm_plan_, reachable, timeout.ns > 0 ? timeout : kConnectTimeoutOfStock, now);
    warm_plan_.reset();
    warmed_ = std::move(warmed);
  }
}

void DirectTransport::go_on_opening(base::Instant now) {
  stock_.on_wake(now);
  if (stock_.opening()) {
    return;
  }
  Warmed warmed = std::move(*warmed_);
  warmed_.reset();
  warmed.connections_open = static_cast<std::uint32_t>(stock_.size());
  sink_.on_warmed(std::move(warmed));
}

}  // namespace tutti::target
