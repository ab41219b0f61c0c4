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
    waiting_.push_back({encoded.plane, std::move(encoded.bytes)});
    push(now);
  }

  // A listening side cannot address anybody it has not heard: until then its frames go nowhere.
  void wait_for_a_word() { waits_ = true; }

  // The messages that became deliverable.
  std::vector<wire::Message> receive(const std::string& bytes, Instant now) {
    std::vector<wire::Message> messages;
    auto frame = wire::decode_envelope(bytes);
    if (!frame) {
      witness_.complain("node {} cannot read a frame: {}", here_, frame.error().message);
      return messages;
    }
    delivered_.clear();
    link_.receive(std::move(*frame), now, delivered_);
    for (const wire::Delivered& one : delivered_) {
      auto message = wire::decode(one.plane, one.payload);
      if (message) {
        messages.push_back(std::move(*message));
      } else {
        witness_.complain("node {} cannot read a message: {}", here_, message.error().message);
      }
    }
    return messages;
  }

  void poll(Instant now) {
    push(now);
    if (now < link_.next_deadline()) {
      return;  // nothing to do before then: so the link says, and its hosts sleep by it
    }
    frames_.clear();
    link_.poll(now, frames_);
    if (waits_ && !link_.peer().is_set()) {
      return;
    }
    for (const wire::Frame& frame : frames_) {
      network_.send(here_, there_, wire::encode_envelope(frame));
    }
  }

  bool done() const { return waiting_.empty() && link_.settled(); }
  wire::Link& link() { return link_; }

 private:
  void push(Instant now) {
    while (!waiting_.empty() && link_.can_send(waiting_.front().payload.size())) {
      if (!link_.send(waiting_.front().plane, waiting_.front().payload, now)) {
        return;
      }
      waiting_.pop_front();
    }
  }

  SimNetwork& network_;
  Witness& witness_;
  std::size_t here_;
  std::size_t there_;
  wire::Link link_;
  bool waits_ = false;
  std::deque<wire::Delivered> waiting_;
  std::vector<wire::Delivered> delivered_;  // room that is used again, as is frames_
  std::vector<wire::Frame> frames_;
};

// One pending wake-up of a node; earlier ones win, stale ones do nothing.
class Alarm {
 public:
  Alarm(World& world, std::function<void()> ring) : world_(world), ring_(std::move(ring)) {}
  void set(Instant at) {
    at = std::max(at, world_.now() + Duration::micros(1));
    if (at >= at_ || at == base::kFarFuture) {
      return;
    }
    at_ = at;
    world_.at(at, [this, at] {
      if (at == at_) {
        at_ = base::kFarFuture;
        ring_();
      }
    });
  }

 private:
  World& world_;
  std::function<void()> ring_;
  Instant at_ = base::kFarFuture;
};

}  // namespace tutti::sim
