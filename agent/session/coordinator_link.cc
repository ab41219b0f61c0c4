#include "agent/session/coordinator_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/wire/envelope.h"

namespace tutti::session {
namespace {

constexpr std::size_t kRefusalsLoggedMax = 32;
constexpr std::size_t kFramesPerTurn = 16'384;  // so that a flood does not keep a turn from ending
// A listener's link must not run out of patience before anyone has called.
constexpr base::Duration kEver = base::Duration::seconds(100L * 365 * 24 * 3600);

}  // namespace

base::Result<std::unique_ptr<CoordinatorLink>> CoordinatorLink::open(
    const std::optional<std::string>& connect, const std::optional<std::string>& listen,
    const wire::SocketOptions& options) {
  std::unique_ptr<CoordinatorLink> out(new CoordinatorLink());
  if (connect) {
    auto socket = wire::DialSocket::open(out->context_, *connect, options);
    if (!socket) {
      return tl::unexpected(socket.error());
    }
    out->dial_ = std::move(*socket);
  } else {
    out->context_.allow({options.listener_key});
    auto socket = wire::ListenSocket::open(out->context_, *listen, options);
    if (!socket) {
      return tl::unexpected(socket.error());
    }
    out->listen_ = std::move(*socket);
  }
  return out;
}

void CoordinatorLink::begin(base::Duration patience, base::Instant now) {
  wire::LinkConfig config;
  config.lost_after = listening() ? kEver : patience;
  link_ = std::make_unique<wire::Link>(config, base::fresh_id(), now);
  route_.clear();
  backlog_.clear();
}

const std::string& CoordinatorLink::endpoint() const {
  return dial_ ? dial_->endpoint() : listen_->endpoint();
}

void CoordinatorLink::refuse(const std::string& why) {
  std::string kind = why;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  if (refusals_logged_.size() < kRefusalsLoggedMax && refusals_logged_.insert(kind).second) {
    base::log_warning("link", "refused a frame (said once): " + why);
  }
}

void CoordinatorLink::tell_denied() {
  const std::uint64_t denied = context_.denied();
  if (denied != denied_told_) {
    denied_told_ = denied;
    const std::string who = context_.last_denied();
    if (refusals_logged_.size() < kRefusalsLoggedMax && refusals_logged_.insert(who).second) {
      base::log_warning("link",
                        fmt::format("turned away {}: not the coordinator's key (said once)", who));
    }
  }
}

void CoordinatorLink::receive(base::Instant now, std::vector<wire::Message>& out) {
  const wire::Socket& socket = dial_ ? static_cast<const wire::Socket&>(*dial_) : *listen_;
  // Stopped after its wait had seen nothing, this process may have frames all the same; they are
  // signs of life.
  if (!socket.may_have_input() && !link_->lost(now)) {
    return;
  }
  std::string bytes;
  if (dial_) {
    for (std::size_t n = 0; n < kFramesPerTurn && dial_->receive(bytes); ++n) {
      take(std::move(bytes), now, out);
    }
    return;
  }
  // The socket takes from all connections in turn: the coordinator's frames are among these.
  for (std::size_t n = 0; n < kFramesPerTurn && listen_->receive(arriving_from_, bytes); ++n) {
    take(std::move(bytes), now, out);
  }
}

void CoordinatorLink::take(std::string&& bytes, base::Instant now,
                           std::vector<wire::Message>& out) {
  auto frame = wire::decode_envelope(bytes);
  if (!frame) {
    refuse(frame.error().message);
    if (wire::foreign_version(bytes)) {
      foreign_ = frame.error().message;
      if (version_replies_.owed(bytes, arriving_from_)) {
        transmit({link_->self(), {}, 0, 0, wire::Plane::kControl, {}}, arriving_from_);
      }
    }
    return;
  }
  if (link_->peer().is_set() && frame->from != link_->peer()) {
    turn_away(std::move(*frame), now);
    return;
  }
  if (frame->to.is_set() && frame->to != link_->self()) {
    refuse("a coordinator is still talking to an earlier life of this agent");
    return;
  }
  delivered_.clear();
  link_->receive(std::move(*frame), now, delivered_);
  route_ = arriving_from_;
  for (const auto& each : delivered_) {
    auto message = wire::decode(each.plane, each.payload);
    if (!message) {
      refuse(message.error().message);
      continue;
    }
    out.push_back(std::move(*message));
  }
  flush_backlog(now);
}

// A second coordinator hears at once why it gets no agent, instead of waiting for silence. It
// repeats its frame until it has heard us, so this answer needs no memory.
void CoordinatorLink::turn_away(wire::Frame&& frame, base::Instant now) {
  wire::LinkConfig config;
  config.ack_after = {};
  wire::Link once(config, base::Id{link_->self().high, link_->self().low ^ frame.from.low}, now,
                  frame.from);
  frame.to = {};
  std::vector<wire::Delivered> ignored;
  once.receive(std::move(frame), now, ignored);
  auto refusal = wire::encode(wire::Message(wire::Refused{"this agent is busy with another run"}));
  once.send(refusal.plane, std::move(refusal.bytes), now);
  std::vector<wire::Frame> frames;
  once.poll(now, frames);
  for (const auto& each : frames) {
    transmit(each, arriving_from_);
  }
  refuse("another coordinator called while this agent is busy");
}

void CoordinatorLink::send(wire::Encoded message, base::Instant now) {
  backlog_.push_back(std::move(message));
  flush_backlog(now);
}

void CoordinatorLink::flush_backlog(base::Instant now) {
  while (!backlog_.empty() && link_->can_send(backlog_.front().bytes.size())) {
    wire::Encoded next = std::move(backlog_.front());
    backlog_.pop_front();
    link_->send(next.plane, std::move(next.bytes), now);
  }
}

void CoordinatorLink::transmit(const wire::Frame& frame, const std::string& route) {
  // A frame the socket did not take is lost; the link repeats it.
  const std::string bytes = wire::encode_envelope(frame);
  if (dial_) {
    dial_->send(bytes);
  } else if (!route.empty()) {
    listen_->send(route, bytes);
  }
}

void CoordinatorLink::poll(base::Instant now) {
  tell_denied();
  flush_backlog(now);
  if (listening() && !called()) {
    return;  // nobody to talk to yet
  }
  frames_.clear();
  link_->poll(now, frames_);
  for (const auto& frame : frames_) {
    transmit(frame, route_);
  }
}

void CoordinatorLink::set_liveness(base::Duration heartbeat, base::Duration lost_after) {
  link_->set_liveness(heartbeat, lost_after);
}

bool CoordinatorLink::lost(base::Instant now) const {
  // A coordinator of another version will not become one of ours by waiting.
  const bool foreign = dial_ && !called() && !foreign_.empty();
  return foreign || ((!listening() || called()) && link_->lost(now));
}

std::string CoordinatorLink::why_lost(base::Instant now) {
  const std::string hint = called()            ? ""
                           : !foreign_.empty() ? foreign_
                           : dial_             ? dial_->trouble()
                                               : "";
  return fmt::format("nothing heard from the coordinator for {:.1f} s{}{}",
                     (now - link_->heard_at()).to_seconds(), hint.empty() ? "" : ": ", hint);
}

void CoordinatorLink::wait(base::Instant now, base::Instant until, std::vector<wire::WaitFd>& fds) {
  wire::Socket* socket = dial_ ? static_cast<wire::Socket*>(&*dial_) : &*listen_;
  const base::Duration most = std::clamp(until - now, base::Duration{}, kSleepMax);
  wire::wait_input(std::span<wire::Socket* const>(&socket, 1), fds, most);
}

}  // namespace tutti::session
