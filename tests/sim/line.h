#pragma once

// Line: one end of a real wire::Link over the simulated network, with real bytes: messages are
// encoded, framed, enveloped and back. What the link's window does not take waits in order. Used by
// both kinds of node. Single thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/codec.h"
#include "common/wire/envelope.h"
#include "common/wire/link.h"
#include "tests/sim/network.h"
#include "tests/sim/witness.h"

namespace tutti::sim {

class Line {
 public:
  Line(SimNetwork& network, Witness& witness, std::size_t here, std::size_t there,
       const wire::LinkConfig& config, base::Id self, Instant now)
      : network_(network),
        witness_(witness),
        here_(here),
        there_(there),
        link_(config, self, now) {}

  void send(const wire::Message& message, Instant now) {
    wire::Encoded encoded = wire::encode(message);
    if (waiting_.empty() && link_.can_send(encoded.bytes.size())) {
      link_.send(encoded.plane, std::move(encoded.bytes), now);
      due_at_ = kUnknown;
      return;
    }
    waiting_.push_back({encoded.plane, std::move(encoded.bytes)});
    push(now);
  }

  // A listening side cannot address anybody it has not heard: until then its frames go nowhere.
  void wait_for_a_word() { waits_ = true; }

  // The messages that became deliverable; valid until the next call.
  std::vector<wire::Message>& receive(const std::string& bytes, Instant now) {
    messages_.clear();
    due_at_ = kUnknown;
    auto frame = wire::decode_envelope(bytes);
    if (!frame) {
      witness_.complain("node {} cannot read a frame: {}", here_, frame.error().message);
      return messages_;
    }
    delivered_.clear();
    link_.receive(std::move(*frame), now, delivered_);
    for (const wire::Delivered& one : delivered_) {
      auto message = wire::decode(one.plane, one.payload);
      if (message) {
        messages_.push_back(std::move(*message));
      } else {
        witness_.complain("node {} cannot read a message: {}", here_, message.error().message);
      }
    }
    return messages_;
  }

  void poll(Instant now) {
    if (!waiting_.empty()) {
      push(now);
    }
    if (now < next_deadline()) {
      return;  // nothing to do before then: so the link says, and its hosts sleep by it
    }
    put_out(now);
  }

  bool done() const { return waiting_.empty() && link_.settled(); }
  const wire::Link& link() const { return link_; }
  void set_liveness(Duration heartbeat, Duration lost_after) {
    link_.set_liveness(heartbeat, lost_after);
    due_at_ = kUnknown;
  }
  // The link's, which is asked again only when something was done to it.
  Instant next_deadline() {
    if (due_at_ == kUnknown) {
      due_at_ = link_.next_deadline();
    }
    return due_at_;
  }
  // The link's: no link is lost before it has something to do, and a lost one has nothing more.
  bool lost(Instant now) const {
    return (now >= due_at_ || due_at_ == base::kFarFuture) && link_.lost(now);
  }

 private:
  // Below every instant: not yet asked for.
  static constexpr Instant kUnknown{INT64_MIN};

  void put_out(Instant now) {
    frames_.clear();
    link_.poll(now, frames_);
    due_at_ = kUnknown;
    if (waits_ && !link_.peer().is_set()) {
      return;
    }
    for (const wire::Frame& frame : frames_) {
      network_.send(here_, there_, wire::encode_envelope(frame));
    }
  }

  void push(Instant now) {
    while (!waiting_.empty() && link_.can_send(waiting_.front().payload.size())) {
      link_.send(waiting_.front().plane, std::move(waiting_.front().payload), now);
      due_at_ = kUnknown;
      waiting_.pop_front();
    }
  }

  SimNetwork& network_;
  Witness& witness_;
  std::size_t here_;
  std::size_t there_;
  wire::Link link_;
  Instant due_at_ = kUnknown;
  bool waits_ = false;
  std::deque<wire::Delivered> waiting_;
  std::vector<wire::Delivered> delivered_;  // room that is used again, as is frames_
  std::vector<wire::Frame> frames_;
  std::vector<wire::Message> messages_;
};

// One pending wake-up of a node, by its own clock; earlier ones win, stale ones do nothing.
class Alarm {
 public:
  Alarm(World& world, const SimClock& clock, std::function<void()> ring)
      : world_(world), clock_(clock), ring_(std::move(ring)) {}
  void set(Instant local) {
    if (local >= local_) {
      return;  // the one that is pending comes first, by any clock
    }
    const Instant at = std::max(clock_.truth(local), world_.now() + Duration::micros(1));
    if (at >= at_) {
      return;
    }
    local_ = local;
    at_ = at;
    world_.at(at, [this, at] {
      if (at == at_) {
        local_ = at_ = base::kFarFuture;
        ring_();
      }
    });
  }

 private:
  World& world_;
  const SimClock& clock_;
  std::function<void()> ring_;
  Instant local_ = base::kFarFuture;
  Instant at_ = base::kFarFuture;
};

}  // namespace tutti::sim
