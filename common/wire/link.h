#pragma once

// Link: a reliable, ordered conversation between two incarnations, as a pure step machine. Frames
// may be lost, doubled, reordered or late; what send() accepted is delivered to the other side
// exactly once and in order, or the link becomes lost. It knows no socket and no clock, and
// allocates no more than its window in either direction. Host's loop: hand every arrived frame to
// receive(), then poll() and put the frames on the wire (one that the wire did not take counts as
// lost and is sent again), then sleep until next_deadline(). Empty the socket before asking lost():
// frames that wait in it are proof of life too. Owned by one thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/base/id.h"
#include "common/base/time.h"
#include "common/wire/frame.h"

namespace tutti::wire {

// While an agent prepares, each side bears with this much silence at least: an agent reads a body
// set as a whole then, on the thread that talks, and nobody loads a frontend.
inline constexpr base::Duration kPreparingPatience = base::Duration::seconds(30);

struct LinkConfig {
  base::Duration heartbeat = base::Duration::millis(500);   // say something at least this often
  base::Duration lost_after = base::Duration::seconds(10);  // silence that means the peer is gone
  base::Duration retransmit_after = base::Duration::millis(400);  // doubles up to kBackoffMax times
  // How long an ack may wait for a ride: an agent at work sends a batch in this time.
  base::Duration ack_after = base::Duration::millis(25);
  std::size_t window_max_frames = 1024;                  // sent and not yet acknowledged
  std::size_t window_max_bytes = std::size_t{32} << 20;  // payload bytes of the same
};

struct Delivered {
  Plane plane = Plane::kControl;
  std::string payload;
};

// Everything that happened to this link, since its beginning.
struct LinkCounts {
  std::uint64_t sent = 0;           // numbered frames, first time
  std::uint64_t resent = 0;         // numbered frames, again
  std::uint64_t bare_sent = 0;      // acks and heartbeats
  std::uint64_t delivered = 0;      // numbered frames handed to the owner
  std::uint64_t duplicates = 0;     // arrived again, dropped
  std::uint64_t beyond_window = 0;  // too far ahead to hold, dropped; the peer sends it again
  std::uint64_t other_sender = 0;   // refused: not the incarnation this link is pinned to
  std::uint64_t other_target = 0;   // refused: meant for another incarnation
  std::uint64_t malformed = 0;      // refused: impossible number, ack or payload
  std::uint64_t after_lost = 0;     // refused: the link had been given up
  std::uint64_t window_full = 0;    // send() calls refused for lack of room
};

class Link {
 public:
  static constexpr std::int64_t kBackoffMax = 8;  // retransmit_after grows up to this factor
  static constexpr std::size_t kResendBurstMax =
      64;                                         // frames resent before the peer shows progress
  static constexpr std::uint64_t kAckEvery = 32;  // frames received that are acked at once,
  static constexpr std::size_t kAckBytes = std::size_t{1} << 20;  // and bytes of them

  // `self` must be set. With `peer` set the link talks to that incarnation only; else the first
  // valid frame decides. The peer has lost_after from `now` to say its first word.
  Link(const LinkConfig& config, base::Id self, base::Instant now, base::Id peer = {});

  // Queues one message. False, and counted, when the window is full: nothing was taken, try again
  // after the peer has acknowledged. An empty window takes a message of any size. False when lost.
  bool send(Plane plane, std::string payload, base::Instant now);
  bool can_send(std::size_t payload_bytes = 0) const;

  // Takes one arrived frame; appends what became deliverable, in order.
  void receive(Frame&& frame, base::Instant now, std::vector<Delivered>& out);

  // Appends the frames that must go out now: new ones, repeats, an ack or a heartbeat. Decides that
  // the peer is lost, for good.
  void poll(base::Instant now, std::vector<Frame>& out);

  // When poll() has something to do next; kFarFuture once lost.
  base::Instant next_deadline() const;

  // Nothing valid was heard for lost_after. Once poll() has seen it, it stays true.
  bool lost(base::Instant now) const;
  // We ourselves have said nothing for so long that the peer must have given us up: this process
  // stood still. True until the next poll(), which says something.
  bool mute(base::Instant now) const { return now - spoke_at_ >= config_.lost_after; }
  base::Instant spoke_at() const { return spoke_at_; }
  // Everything sent was acknowledged.
  bool idle() const { return window_.empty(); }
  // Everything that arrived was acknowledged too: no word is owed in either direction.
  bool settled() const { return idle() && unacked_received_ == 0; }

  // New liveness terms (a Welcome carries them).
  void set_liveness(base::Duration heartbeat, base::Duration lost_after);

  base::Id self() const { return self_; }
  base::Id peer() const { return peer_; }  // unset until the first valid frame
  base::Instant heard_at() const { return heard_at_; }
  std::size_t window_frames() const { return window_.size(); }
  std::size_t window_bytes() const { return window_bytes_; }
  const LinkCounts& counts() const { return counts_; }

 private:
  bool accepts(const Frame& frame);
  void take_ack(std::uint64_t ack, base::Instant now);
  void take_payload(Frame&& frame, base::Instant now, std::vector<Delivered>& out);
  void deliver(Delivered&& message, std::vector<Delivered>& out);
  void owe_ack(base::Instant at);
  void resend(base::Instant now, std::vector<Frame>& out);
  Frame frame_of(std::uint64_t number) const;
  base::Duration retransmit_interval() const { return config_.retransmit_after * backoff_; }

  LinkConfig config_;
  base::Id self_;
  base::Id peer_;
  bool lost_ = false;
  base::Instant heard_at_;
  base::Instant spoke_at_;
  LinkCounts counts_;

  // Outgoing: window_[i] has number acked_ + 1 + i; those ≤ sent_ have been on the wire.
  std::deque<Delivered> window_;
  std::size_t window_bytes_ = 0;
  std::uint64_t acked_ = 0;
  std::uint64_t sent_ = 0;
  base::Instant wanted_at_{};      // when the oldest unsent message was queued
  base::Instant retransmit_at_{};  // only meaningful while acked_ < sent_
  std::int64_t backoff_ = 1;
  std::uint64_t resend_next_ = 1;  // recovery repeats [resend_next_, recover_until_]
  std::uint64_t recover_until_ = 0;
  std::size_t resend_budget_ = 0;

  // Incoming: all ≤ received_ were delivered; early_ holds later ones.
  std::uint64_t received_ = 0;
  std::map<std::uint64_t, Delivered> early_;
  std::size_t early_bytes_ = 0;
  std::uint64_t unacked_received_ = 0;
  std::size_t unacked_bytes_ = 0;
  base::Instant ack_at_ = base::kFarFuture;
};

}  // namespace tutti::wire
