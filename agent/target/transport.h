#pragma once

// Transport: the way queries go onto the wire and replies come back, behind one seam. A worker
// starts queries while there is room, feeds it the readiness of its sockets and its wake-ups, and
// gets each query back exactly once as a Record. Bodies: DirectTransport (sockets of our own)
// and MultiTransport (sharded curl multi sets). Owned and called by one worker thread; no call
// blocks.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "agent/target/frontend.h"
#include "agent/target/video_folder.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"
#include "common/data/body_set.h"
#include "common/stats/shared_histogram.h"
#include "common/sys/address.h"
#include "common/sys/poller.h"
#include "common/wire/messages.h"
#include "common/wire/record.h"

namespace tutti::target {

// What all turns of a conversation say of it.
struct Conversation {
  std::string id;
  std::string routing_lines;           // header lines that carry the id, each with its line end
  base::SampleIndex first_sample = 0;  // of its first turn: the same whenever it is played
};
std::string routing_lines(const wire::TargetSpec& target, std::string_view id);

// One order to send, as the worker took it up.
struct Query {
  base::IssueCommand command{};
  const Conversation* conversation = nullptr;  // outlives the exchange; null: of none
  std::uint16_t phase = 0;
  std::uint16_t frontend = 0;
  base::Instant due_at{};
  base::Instant issued_at{};
};

// What sends queries to one frontend together, and what the affinity header says.
inline base::SampleIndex affinity_of(const Query& query) {
  return query.conversation != nullptr ? query.conversation->first_sample : query.command.sample;
}

// How long an exchange may last; 0: as long as it likes.
struct TimeAllowed {
  base::Duration whole{};
  bool of_turn = false;  // it is turn_timeout that ends it
};
inline TimeAllowed time_allowed(const wire::TargetSpec& target, const Query& query) {
  const bool turn =
      query.conversation != nullptr && target.turn_timeout.ns > 0 &&
      (target.request_timeout.ns == 0 || target.turn_timeout < target.request_timeout);
  return turn ? TimeAllowed{target.turn_timeout, true} : TimeAllowed{target.request_timeout, false};
}
std::string turn_timeout_text(base::Duration timeout);
template <class Call>  // kFarFuture: never
base::Instant runs_out_at(const Call& call) {
  return call.allowed().whole.ns > 0 ? call.started_at() + call.allowed().whole : base::kFarFuture;
}

// Opens connections ahead of need. Counts and rate are this worker's share.
struct WarmPlan {
  std::vector<std::uint32_t> connections;  // per frontend; 0: not probed beyond its reach
  std::uint32_t rate_max = 1;              // new connections per second
  std::uint32_t connecting_max = 128;      // at once
};
struct Warmed {
  std::vector<wire::Reach> frontends;
  std::uint32_t connections_open = 0;
};

// Where a transport's results go. Called from within Transport's own calls, never from start().
class ExchangeSink {
 public:
  ExchangeSink() = default;
  ExchangeSink(const ExchangeSink&) = delete;
  ExchangeSink& operator=(const ExchangeSink&) = delete;
  virtual ~ExchangeSink() = default;
  // The exchange's slot is free already. The sink may put another record in this one's place, whose
  // buffers are reused; never null.
  virtual void on_done(std::unique_ptr<wire::Record>& record) = 0;
  virtual void on_warmed(Warmed warmed) = 0;
};

// Written by the worker's thread, read by the session for the live view.
struct LiveGauges {
  // Content events, topped up at the end where usage says more. The worker resets it for a new
  // phase.
  std::atomic<std::uint64_t> output_tokens{0};
  std::atomic<std::int64_t> last_response_ns{0};
  stats::SharedHistogram read_lag;                // instant of the read − kernel's receive stamp
  std::atomic<std::uint64_t> reads_unstamped{0};  // direct: reads without a usable kernel stamp
  // Queries that got no connection for want of a port, descriptor or memory on this host.
  std::atomic<std::uint64_t> connect_shortages{0};
};

struct TransportConfig {
  const wire::TargetSpec* target = nullptr;  // outlives the transport
  const data::BodySet* bodies = nullptr;     // outlives the transport
  std::vector<Frontend> frontends;
  std::uint32_t slots = 1;              // share of the agent's
  std::uint32_t connections_max = 0;    // share of the agent's; 0: see MultiTransport
  std::uint16_t worker = 0;             // goes into records
  std::uint32_t connect_rate_max = 0;   // share of the agent's; 0: unbounded, but for …
  std::uint32_t trouble_rate_max = 0;   // … frontends that end connections without a reply
  std::uint32_t global_worker = 0;      // run-wide number: where the sources' turns begin
  const VideoFolder* videos = nullptr;  // outlives the transport
  std::vector<sys::IpAddress> sources;  // connections come from these; empty: the kernel's pick
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // How many queries may be started now.
  virtual std::size_t room() const = 0;
  virtual std::size_t in_flight() const = 0;
  // room() > 0; the sample is a row of the body set. The request goes out with the next flush(),
  // or before, when a connection is kept, else as soon as one stands. Results never come from
  // within this call. `now` was read a moment ago, when the query was taken up.
  virtual void start(const Query& query, base::Instant now) = 0;
  // Ends a handful of start(): sending several one after the other finds code and data in the
  // caches, which the way from a reply to the next request does not. Results never come from here,
  // and no event or wake-up may come between start() and this.
  virtual void flush() = 0;
  // What the poller says of descriptors that are not the worker's own, a handful at once for the
  // same reason; each at most once.
  virtual void on_sockets(std::span<const sys::Ready> events) = 0;
  // Timers, deadlines and results not yet delivered. Call when next_wake() has come.
  virtual void on_wake(base::Instant now) = 0;
  // kFarFuture: nothing to wait for but sockets.
  virtual base::Instant next_wake() const = 0;
  // Ends every exchange in flight with Outcome::kCancelled.
  virtual void cancel_all(std::string_view reason) = 0;
  // One at a time; ends in ExchangeSink::on_warmed.
  virtual void warm(const WarmPlan& plan) = 0;
  virtual std::size_t open_connections() const = 0;
};

// The one that target.way asks for; auto is direct where that will do. Sockets are registered with
// `poller`; `clock` is read for every stamp.
std::unique_ptr<Transport> make_transport(TransportConfig config, sys::Poller& poller,
                                          const base::Clock& clock, ExchangeSink& sink,
                                          LiveGauges& gauges);

}  // namespace tutti::target
