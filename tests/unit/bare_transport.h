#pragma once

// BareTransport: the rig's transport without an engine, on the test's own thread, which may come
// late to whatever it is told of: what came meanwhile lies in the socket when the read comes.

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "agent/target/transport.h"
#include "common/sys/poller.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {

class BareTransport {
 public:
  explicit BareTransport(EngineRig& rig, std::chrono::milliseconds late = {})
      : BareTransport(rig, late, rig.clock) {}
  BareTransport(EngineRig& rig, std::chrono::milliseconds late, const base::Clock& clock)
      : late_(late), clock_(clock) {
    target::TransportConfig config;
    config.target = &rig.config.target;
    config.bodies = rig.config.bodies;
    config.frontends = *target::parse_frontends(rig.config.target);
    config.slots = kSlots;
    transport_ = target::make_transport(config, poller_, clock_, sink_, gauges());
  }

  target::LiveGauges& gauges() { return *gauges_; }
  const std::vector<Instant>& read_at() const { return read_at_; }
  const std::vector<wire::Record>& records() const { return sink_.records; }

  // So many queries as one handful, at most kSlots in flight.
  void start(std::size_t queries) {
    for (std::size_t i = 0; i < queries; ++i) {
      target::Query query;
      query.issued_at = query.due_at = clock_.mono();
      transport_->start(query, query.issued_at);
    }
    transport_->flush();
  }
  // Until there are so many records in all. False: not within ten seconds.
  bool pump(std::size_t records) {
    const auto until = clock_.mono() + Duration::seconds(10);
    while (sink_.records.size() < records && clock_.mono() < until) {
      const Duration left = transport_->next_wake() - clock_.mono();
      const auto wait_ms = std::clamp<std::int64_t>(left.ns / 1'000'000 + 1, 0, 1000);
      const auto events = poller_.wait(left.ns <= 0 ? 0 : static_cast<int>(wait_ms));
      if (!events.empty() && (events[0].events & sys::kReadable) != 0) {
        std::this_thread::sleep_for(late_);  // busy with something else
        read_at_.push_back(clock_.mono());
      }
      transport_->on_sockets(events);
      if (const Instant now = clock_.mono(); transport_->next_wake() <= now) {
        transport_->on_wake(now);
      }
    }
    return sink_.records.size() >= records;
  }
  // The record of one query, or null after ten seconds.
  const wire::Record* one() {
    start(1);
    return pump(sink_.records.size() + 1) ? &sink_.records.back() : nullptr;
  }

  static constexpr std::uint32_t kSlots = 8;

 private:
  class Sink final : public target::ExchangeSink {
   public:
    void on_done(std::unique_ptr<wire::Record>& record) override { records.push_back(*record); }
    void on_warmed(target::Warmed) override {}
    std::vector<wire::Record> records;
  };

  std::chrono::milliseconds late_;
  const base::Clock& clock_;
  sys::Poller poller_{16};
  Sink sink_;
  std::unique_ptr<target::LiveGauges> gauges_ = std::make_unique<target::LiveGauges>();
  std::unique_ptr<target::Transport> transport_;
  std::vector<Instant> read_at_;
};

}  // namespace tutti::drive
