// The two ways onto the wire, and which one a target asks for.

#include <utility>

#include "agent/target/direct_transport.h"
#include "agent/target/multi_transport.h"
#include "agent/target/proxy.h"

namespace tutti::target {

std::unique_ptr<Transport> make_transport(TransportConfig config, sys::Poller& poller,
                                          const base::Clock& clock, ExchangeSink& sink,
                                          LiveGauges& gauges) {
  if (config.target->way == base::Way::kMulti || needs_multi(*config.target)) {
    return std::make_unique<MultiTransport>(std::move(config), poller, clock, sink, gauges);
  }
  return std::make_unique<DirectTransport>(std::move(config), poller, clock, sink, gauges);
}

}  // namespace tutti::target
