#include "common/wire/link.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace tutti::wire {

using base::Duration;
using base::Instant;

Link::Link(const LinkConfig& config, base::Id self, Instant now, base::Id peer)
    : config_(config), self_(self), peer_(peer), heard_at_(now), spoke_at_(now) {
  TUTTI_CHECK(self.is_set());
  TUTTI_CHECK(config.window_max_frames > 0 && config.window_max_bytes > 0);
  TUTTI_CHECK(config.retransmit_after.ns > 0 && config.ack_after.ns >= 0);
  TUTTI_CHECK(config.heartbeat.ns > 0 && config.lost_after > config.heartbeat);
}

void Link::set_liveness(Duration heartbeat, Duration lost_after) {
  TUTTI_CHECK(heartbeat.ns > 0 && lost_after > heartbeat);
  config_.heartbeat = heartbeat;
  config_.lost_after = lost_after;
}

bool Link::can_send(std::size_t payload_bytes) const {
  if (lost_) {
    return false;
  }
  if (window_.empty()) {
    return true;  // or a message larger than the window could never go
  }
  return window_.size() < config_.window_max_frames && window_bytes_ <= config_.window_max_bytes &&
         payload_bytes <= config_.window_max_bytes - window_bytes_;
}

bool Link::send(Plane plane, std::string payload, Instant now) {
  if (!can_send(payload.size())) {
    counts_.window_full += lost_ ? 0 : 1;
    return false;
  }
  if (sent_ == acked_ + window_.size()) {
    wanted_at_ = now;
  }
  window_bytes_ += payload.size();
  window_.push_back(Delivered{plane, std::move(payload)});
  return true;
}

bool Link::lost(Instant now) const { return lost_ || now - heard_at_ >= config_.lost_after; }

bool Link::accepts(const Frame& frame) {
  if (lost_) {
    ++counts_.after_lost;
    return false;
  }
  if (frame.to.is_set() && frame.to != self_) {
    ++counts_.other_target;
    return false;
  }
  if (!frame.from.is_set() || frame.from == self_ || (peer_.is_set() && frame.from != peer_)) {
    ++counts_.other_sender;
    return false;
  }
  // A frame that does not name us cannot acknowledge what we said, and nobody can have what was
  // never on the wire.
  const bool bad_ack = frame.ack > sent_ || (!frame.to.is_set() && frame.ack > 0);
  if (bad_ack || (frame.number == 0 && !frame.payload.empty())) {
    ++counts_.malformed;
    return false;
  }
  return true;
}

void Link::receive(Frame&& frame, Instant now, std::vector<Delivered>& out) {
  if (!accepts(frame)) {
    return;
  }
  peer_ = frame.from;
  heard_at_ = std::max(heard_at_, now);
  take_ack(frame.ack, now);
  if (frame.number > 0) {
    take_payload(std::move(frame), now, out);
  }
}

void Link::take_ack(std::uint64_t ack, Instant now) {
  if (ack <= acked_) {
    return;
  }
  while (acked_ < ack) {
    window_bytes_ -= window_.front().payload.size();
    window_.pop_front();
    ++acked_;
  }
  backoff_ = 1;
  retransmit_at_ = now + retransmit_interval();
  resend_budget_ = kResendBurstMax;
}

void Link::take_payload(Frame&& frame, Instant now, std::vector<Delivered>& out) {
  const std::uint64_t number = frame.number;
  if (number <= received_ || early_.contains(number)) {
    ++counts_.duplicates;
    owe_ack(now);  // the peer repeats itself because our ack was lost
    return;
  }
  if (number != received_ + 1) {
    const bool room = number - received_ <= config_.window_max_frames &&
                      early_bytes_ + frame.payload.size() <= config_.window_max_bytes;
    if (!room) {
      ++counts_.beyond_window;
      return;
    }
    early_bytes_ += frame.payload.size();
    early_.emplace(number, Delivered{frame.plane, std::move(frame.payload)});
    return;
  }
  deliver(Delivered{frame.plane, std::move(frame.payload)}, out);
  while (!early_.empty() && early_.begin()->first == received_ + 1) {
    early_bytes_ -= early_.begin()->second.payload.size();
    deliver(std::move(early_.begin()->second), out);
    early_.erase(early_.begin());
  }
  const bool many = unacked_received_ >= kAckEvery || unacked_bytes_ >= kAckBytes;
  owe_ack(many ? now : now + config_.ack_after);
}

void Link::deliver(Delivered&& message, std::vector<Delivered>& out) {
  ++received_;
  ++unacked_received_;
  unacked_bytes_ += message.payload.size();
  ++counts_.delivered;
  out.push_back(std::move(message));
}

void Link::owe_ack(Instant at) { ack_at_ = std::min(ack_at_, at); }

Frame Link::frame_of(std::uint64_t number) const {
  const Delivered& message = window_[static_cast<std::size_t>(number - acked_ - 1)];
  return Frame{self_, peer_, number, received_, message.plane, message.payload};
}

// Lost frames come in runs (a broken connection takes all that was in it). The first timeout
// repeats one burst from the oldest; every sign of progress releases the next burst, until all that
// was on the wire at the timeout is repeated or acknowledged. So a peer that is merely slow is not
// flooded.
void Link::resend(Instant now, std::vector<Frame>& out) {
  if (acked_ < sent_ && now >= retransmit_at_) {
    resend_next_ = acked_ + 1;
    recover_until_ = sent_;
    resend_budget_ = kResendBurstMax;
    backoff_ = std::min(backoff_ * 2, kBackoffMax);
    retransmit_at_ = now + retransmit_interval();
  }
  resend_next_ = std::max(resend_next_, acked_ + 1);
  while (resend_budget_ > 0 && resend_next_ <= recover_until_) {
    out.push_back(frame_of(resend_next_++));
    --resend_budget_;
    ++counts_.resent;
  }
}

void Link::poll(Instant now, std::vector<Frame>& out) {
  if (lost(now)) {
    lost_ = true;
    return;
  }
  const std::size_t before = out.size();
  resend(now, out);
  const std::uint64_t last = acked_ + window_.size();
  if (acked_ == sent_ && sent_ < last) {
    retransmit_at_ = now + retransmit_interval();
  }
  while (sent_ < last) {
    out.push_back(frame_of(++sent_));
    ++counts_.sent;
  }
  if (out.size() == before && (now >= ack_at_ || now - spoke_at_ >= config_.heartbeat)) {
    out.push_back(Frame{self_, peer_, 0, received_, Plane::kControl, {}});
    ++counts_.bare_sent;
  }
  if (out.size() != before) {
    spoke_at_ = now;
    unacked_received_ = 0;
    unacked_bytes_ = 0;
    ack_at_ = base::kFarFuture;
  }
}

Instant Link::next_deadline() const {
  if (lost_) {
    return base::kFarFuture;
  }
  Instant next = std::min(spoke_at_ + config_.heartbeat, heard_at_ + config_.lost_after);
  next = std::min(next, ack_at_);
  if (acked_ < sent_) {
    next = std::min(next, retransmit_at_);
  }
  if (resend_budget_ > 0 && std::max(resend_next_, acked_ + 1) <= recover_until_) {
    next = std::min(next, heard_at_);
  }
  if (sent_ < acked_ + window_.size()) {
    next = std::min(next, wanted_at_);
  }
  return next;
}

}  // namespace tutti::wire
