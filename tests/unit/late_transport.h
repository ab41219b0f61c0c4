#pragma once

// LateTransport: a direct transport without an engine, on the test's own thread, which comes late
// to whatever it is told of: what came meanwhile lies in the socket when the read comes.

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "agent/target/transport.h"
#include "common/sys/poller.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {

class LateTransport {
 public:
  LateTransport(EngineRig& rig, std::chrono::milliseconds late) : late_(late) {
    rig.config.target.way = base::Way::kDirect;
    target::TransportConfig config;
    config.target = &rig.config.target;
    config.bodies = rig.config.bodies;
    config.frontends = *target::parse_frontends(rig.config.target);
    transport_ = target::make_transport(config, poller_, clock_, sink_, gauges());
  }

  target::LiveGauges& gauges() { return *gauges_; }
  const std::vector<Instant>& read_at() const { return read_at_; }
  // The record of one query, or null after ten seconds.
  const wire::Record* one() {
    const std::size_t before = sink_.records.size();
    target::Query query;
    query.issued_at = query.due_at = clock_.mono();
    transport_->start(query, query.issued_at);
    const auto until = clock_.mono() + Duration::seconds(10);
    while (sink_.records.size() == before && clock_.mono() < until) {
      const auto events = poller_.wait(1000);
      if (!events.empty() && (events[0].events & sys::kReadable) != 0) {
        std::this_thread::sleep_for(late_);  // busy with something else
        read_at_.push_back(clock_.mono());
      }
      for (const auto& event : events) {
        transport_->on_socket(event);
      }
    }
    return sink_.records.size() == before ? nullptr : &sink_.records.back();
  }

 private:
  class Sink final : public target::ExchangeSink {
   public:
    void on_done(std::unique_ptr<wire::Record>& record) override { records.push_back(*record); }
    void on_warmed(target::Warmed) override {}
    std::vector<wire::Record> records;
  };

  std::chrono::milliseconds late_;
  base::SystemClock clock_;
  sys::Poller poller_{16};
  Sink sink_;
  std::unique_ptr<target::LiveGauges> gauges_ = std::make_unique<target::LiveGauges>();
  std::unique_ptr<target::Transport> transport_;
  std::vector<Instant> read_at_;
};

}  // namespace tutti::drive
