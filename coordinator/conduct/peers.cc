#include "coordinator/conduct/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "common/base/log.h"
#include "common/wire/envelope.h"

namespace tutti::conduct {
namespace {

constexpr std::size_t kGoneMax = 65'536;
constexpr std::size_t kReadyMax = 1024;  // dialled sockets that are looked at in one turn
constexpr std::size_t kRefusalsLoggedMax = 32;
constexpr base::Duration kSleepMax = base::Duration::millis(100);
constexpr base::Duration kPollAgain = base::Duration::micros(100);  // a link that is due already

}  // namespace

Peers::Peers(PeerSettings settings)
    : settings_(std::move(settings)), self_(base::fresh_id()), dial_poller_(kReadyMax) {}

base::Result<std::unique_ptr<Peers>> Peers::open(PeerSettings settings, base::Instant now) {
  std::unique_ptr<Peers> peers(new Peers(std::move(settings)));
  peers->emptied_at_ = now;
  const std::vector<std::string>& agent_keys = peers->settings_.agent_keys;
  peers->context_.allow(agent_keys);
  for (const auto& endpoint : peers->settings_.listen) {
    wire::SocketOptions options = peers->settings_.sockets;
    if (endpoint.starts_with("ipc://")) {
      options.keys.reset();
    }
    auto socket = wire::ListenSocket::open(peers->context_, endpoint, options);
    if (!socket) {
      return tl::unexpected(socket.error());
    }
    peers->listeners_.push_back(std::move(*socket));
  }
  for (const auto& endpoint : peers->settings_.dial) {
    wire::SocketOptions options = peers->settings_.sockets;
    if (options.keys && !agent_keys.empty()) {
      options.listener_key = agent_keys[std::min(peers->dials_.size(), agent_keys.size() - 1)];
    }
    auto socket = wire::DialSocket::open(peers->context_, endpoint, options);
    if (!socket) {
      return tl::unexpected(socket.error());
    }
    peers->dials_.push_back(std::move(*socket));
    wire::LinkConfig patient = peers->settings_.link;
    patient.lost_after = std::max(patient.lost_after, peers->settings_.dial_patience);
    Peer peer(patient, peers->self_, now);
    peer.dialled = &peers->dials_.back();
    peer.endpoint = endpoint;
    const AgentKey key = peers->next_key_++;
    const int fd = peer.dialled->fd();
    if (!peers->dial_poller_.add(fd, sys::kReadable)) {
      return base::fail(base::ExitCode::kSetup,
                        fmt::format("{}: cannot watch its connection: {}", endpoint,
                                    std::generic_category().message(errno)));
    }
    peers->dialled_.emplace(fd, key);
    Peer& kept = peers->peers_.emplace(key, std::move(peer)).first->second;
    peers->touch(key, kept);
    peers->stir(key, kept);
  }
  return peers;
}

std::vector<std::string> Peers::listening() const {
  std::vector<std::string> out;
  for (const auto& socket : listeners_) {
    out.push_back(socket.endpoint());
  }
  return out;
}

void Peers::refuse(const std::string& why) {
  ++refused_frames_;
  std::string kind = why;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  if (refusals_logged_.size() < kRefusalsLoggedMax && refusals_logged_.insert(kind).second) {
    base::log_warning("peers", "refused a frame (said once): " + why);
  }
}

// Whose frame it is; 0: nobody's.
AgentKey Peers::key_for(const wire::Frame& frame, AgentKey dialled, base::Instant now,
                        std::vector<PeerEvent>& out) {
  if (dialled != 0) {
    return dialled;
  }
  if (const auto known = by_incarnation_.find(frame.from); known != by_incarnation_.end()) {
    return known->second;
  }
  if (gone_.count(frame.from) != 0) {
    return 0;  // a closed agent's last acks: expected, not worth a word
  }
  if (peers_.size() >= kPeersMax) {
    refuse(fmt::format("more than {} agents at once", kPeersMax));
    return 0;
  }
  if (frame.to.is_set() && frame.to != self_) {
    refuse("an agent of an earlier coordinator is still talking");
    return 0;
  }
  const AgentKey key = next_key_++;
  by_incarnation_.emplace(frame.from, key);
  out.emplace_back(PeerJoined{key, false, fmt::format("agent {}", frame.from.hex().substr(0, 8))});
  peers_.emplace(key, Peer(settings_.link, self_, now));
  return key;
}

void Peers::take(std::string&& bytes, std::size_t listener, const std::string& route,
                 AgentKey dialled, base::Instant now, std::vector<PeerEvent>& out) {
  auto frame = wire::decode_envelope(bytes);
  if (!frame) {
    refuse(frame.error().message);
    if (version_replies_.owed(bytes, dialled == 0 ? route : fmt::format("dialled {}", dialled))) {
      const std::string ours = wire::encode_envelope({self_, {}, 0, 0, wire::Plane::kControl, {}});
      if (dialled == 0) {
        listeners_[listener].send(route, ours);
      } else if (const auto found = peers_.find(dialled); found != peers_.end()) {
        found->second.dialled->send(ours);
        stir(dialled, found->second);
      }
    }
    return;
  }
  const AgentKey key = key_for(*frame, dialled, now, out);
  const auto found = peers_.find(key);
  if (found == peers_.end()) {
    return;
  }
  Peer& peer = found->second;
  if (dialled == 0) {
    peer.listener = listener;
    peer.route = route;
  }
  touch(key, peer);
  deliver(key, peer, std::move(*frame), now, out);
}

void Peers::touch(AgentKey key, Peer& peer) {
  if (!peer.touched) {
    peer.touched = true;
    touched_.push_back(key);
  }
}

void Peers::stir(AgentKey key, Peer& peer) {
  if (!peer.stirred) {
    peer.stirred = true;
    stirred_.push_back(key);
  }
}

void Peers::deliver(AgentKey key, Peer& peer, wire::Frame&& frame, base::Instant now,
                    std::vector<PeerEvent>& out) {
  delivered_.clear();
  peer.link.receive(std::move(frame), now, delivered_);
  if (!peer.heard && peer.link.peer().is_set()) {
    peer.heard = true;
    by_incarnation_[peer.link.peer()] = key;
    peer.link.set_liveness(settings_.link.heartbeat, settings_.link.lost_after);
  }
  for (const auto& each : delivered_) {
    auto message = wire::decode(each.plane, each.payload);
    if (!message) {
      refuse(message.error().message);
      continue;
    }
    out.emplace_back(Arrival{key, std::move(*message)});
  }
  flush_backlog(peer, now);
}

void Peers::receive(base::Instant now, std::vector<PeerEvent>& out) {
  std::string route;
  std::string bytes;
  bool more = false;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    std::size_t frames = 0;
    std::size_t total = 0;
    while (frames < kReceivedMax && total < kReceivedBytesMax &&
           listeners_[i].receive(route, bytes)) {
      ++frames;
      total += bytes.size();
      take(std::move(bytes), i, route, 0, now, out);
    }
    more = more || frames == kReceivedMax || total >= kReceivedBytesMax;
  }
  more = (!dials_.empty() && receive_dialled(now, out)) || more;
  all_heard_ = !more;
  if (!more) {
    emptied_at_ = now;
  }
}

// Looks at those sockets only that have told of something, or that a send may have taken that word
// from. They are asked now, not when the wait ended: this process may have been stopped since. True
// when something may be left.
bool Peers::receive_dialled(base::Instant now, std::vector<PeerEvent>& out) {
  const auto ready = dial_poller_.wait(0);
  for (const sys::Ready& each : ready) {
    const AgentKey key = dialled_.at(each.fd);
    stir(key, peers_.at(key));
  }
  bool more = ready.size() == kReadyMax;
  const std::size_t most = kReceivedMax / (dials_.size() + 1) + 1;  // so that all get their turn
  std::vector<AgentKey> keys;
  keys.swap(stirred_);
  std::string bytes;
  for (const AgentKey key : keys) {
    const auto found = peers_.find(key);
    if (found == peers_.end()) {
      continue;
    }
    Peer& peer = found->second;
    peer.stirred = false;
    std::size_t taken = 0;
    while (taken < most && peer.dialled->receive(bytes)) {
      ++taken;
      take(std::move(bytes), 0, {}, key, now, out);
    }
    if (taken == most) {
      more = true;
      stir(key, peer);
    }
  }
  return more;
}

void Peers::send(AgentKey agent, const wire::Message& message, base::Instant now) {
  const auto found = peers_.find(agent);
  if (found == peers_.end() || found->second.closing) {
    return;  // lost meanwhile: the machine has been told or is about to be
  }
  Peer& peer = found->second;
  peer.backlog.push_back(wire::encode(message));
  touch(agent, peer);
  flush_backlog(peer, now);
}

void Peers::flush_backlog(Peer& peer, base::Instant now) {
  while (!peer.backlog.empty() && peer.link.can_send(peer.backlog.front().bytes.size())) {
    wire::Encoded next = std::move(peer.backlog.front());
    peer.backlog.pop_front();
    peer.link.send(next.plane, std::move(next.bytes), now);
  }
}

bool Peers::can_send(AgentKey agent, std::size_t bytes) const {
  const auto found = peers_.find(agent);
  return found != peers_.end() && found->second.backlog.empty() &&
         found->second.link.can_send(bytes);
}

void Peers::transmit(AgentKey key, Peer& peer, const wire::Frame& frame) {
  // A frame the socket did not take is lost; the link repeats it.
  const std::string bytes = wire::encode_envelope(frame);
  if (peer.dialled != nullptr) {
    peer.dialled->send(bytes);
    stir(key, peer);
  } else if (!peer.route.empty()) {
    listeners_[peer.listener].send(peer.route, bytes);
  }
}

// Somebody without an allowed key knocked: worth a line, not a flood of them.
void Peers::tell_denied() {
  const std::uint64_t denied = context_.denied();
  if (denied == denied_told_) {
    return;
  }
  denied_told_ = denied;
  const std::string who = "key " + context_.last_denied();
  if (refusals_logged_.size() < kRefusalsLoggedMax && refusals_logged_.insert(who).second) {
    base::log_warning("peers", fmt::format("turned away {}: not among the agents' keys (said once "
                                           "per key and address)",
                                           context_.last_denied()));
  }
}

void Peers::poll(base::Instant now, std::vector<PeerEvent>& out) {
  tell_denied();
  for (; !wakes_.empty() && wakes_.top().at <= now; wakes_.pop()) {
    const Wake wake = wakes_.top();
    const auto found = peers_.find(wake.key);
    if (found != peers_.end() && found->second.wake_at == wake.at) {
      found->second.wake_at = base::kFarFuture;
      touch(wake.key, found->second);
    }
  }
  std::vector<AgentKey> keys;
  keys.swap(touched_);
  for (const AgentKey key : keys) {
    if (const auto found = peers_.find(key); found != peers_.end()) {
      found->second.touched = false;
      poll_peer(found, now, out);
    }
  }
  if (touched_.empty()) {
    keys.clear();
    keys.swap(touched_);  // keeps its memory
  }
}

void Peers::poll_peer(Peerage::iterator at, base::Instant now, std::vector<PeerEvent>& out) {
  auto& [key, peer] = *at;
  flush_backlog(peer, now);
  // Frames that still wait in the sockets are signs of life too.
  const bool lost = peer.link.lost(emptied_at_);
  if (lost || !peer.link.lost(now)) {
    frames_.clear();
    peer.link.poll(now, frames_);
    for (const auto& frame : frames_) {
      transmit(key, peer, frame);
    }
  }
  const bool stuck = peer.backlog.size() > kBacklogMax;
  const bool said_all = peer.backlog.empty() && peer.link.settled();
  const bool closed = peer.closing && (said_all || now >= peer.close_by);
  if (!lost && !stuck && !closed) {
    base::Instant next = std::max(peer.link.next_deadline(), now + kPollAgain);
    if (peer.closing) {
      next = std::min(next, peer.close_by);
    }
    if (next < peer.wake_at) {
      peer.wake_at = next;
      wakes_.push({next, key});
    }
    return;
  }
  if (!peer.closing) {
    const std::string hint = peer.dialled == nullptr || peer.heard ? "" : peer.dialled->trouble();
    out.emplace_back(
        PeerLost{key, stuck ? fmt::format("it does not take what it is sent: {} messages wait",
                                          peer.backlog.size())
                            : fmt::format("nothing heard for {:.1f} s{}{}",
                                          (now - peer.link.heard_at()).to_seconds(),
                                          hint.empty() ? "" : ": ", hint)});
  }
  if (peer.dialled != nullptr) {
    dial_poller_.remove(peer.dialled->fd());
  }
  by_incarnation_.erase(peer.link.peer());
  if (gone_.size() < kGoneMax) {
    gone_.insert(peer.link.peer());
  }
  peers_.erase(at);
}

void Peers::set_lost_after(base::Duration silence) {
  if (silence == settings_.link.lost_after) {
    return;
  }
  settings_.link.lost_after = silence;
  for (auto& [key, peer] : peers_) {
    if (peer.dialled == nullptr || peer.heard) {
      peer.link.set_liveness(settings_.link.heartbeat, silence);
    }
  }
}

void Peers::close(AgentKey agent, base::Instant now, base::Duration patience) {
  if (const auto found = peers_.find(agent); found != peers_.end() && !found->second.closing) {
    found->second.closing = true;
    found->second.close_by = now + patience;
    touch(agent, found->second);
  }
}

void Peers::close_all(base::Instant now, base::Duration patience) {
  for (auto& [key, peer] : peers_) {
    close(key, now, patience);
  }
}

void Peers::announce_dialled(std::vector<PeerEvent>& out) const {
  for (const auto& [key, peer] : peers_) {
    if (peer.dialled != nullptr) {
      out.emplace_back(PeerJoined{key, true, peer.endpoint});
    }
  }
}

base::Instant Peers::next_deadline() const {
  const base::Instant next = wakes_.empty() ? base::kFarFuture : wakes_.top().at;
  return touched_.empty() ? next : std::min(next, emptied_at_);
}

void Peers::wait(base::Instant now, base::Instant until, std::vector<wire::WaitFd>& fds) {
  std::vector<wire::Socket*> sockets;
  for (auto& socket : listeners_) {
    sockets.push_back(&socket);
  }
  base::Duration most = std::clamp(until - now, base::Duration{}, kSleepMax);
  if (!dials_.empty()) {
    most = input_waits() ? base::Duration{} : most;
    fds.push_back({dial_poller_.fd(), false});
  }
  wire::wait_input(sockets, fds, most);
  if (!dials_.empty()) {
    fds.pop_back();
  }
}

// Of the sockets that were sent on, those without input will tell when some comes.
bool Peers::input_waits() {
  std::erase_if(stirred_, [this](AgentKey key) {
    const auto found = peers_.find(key);
    const bool quiet = found == peers_.end() || !found->second.dialled->has_input();
    if (quiet && found != peers_.end()) {
      found->second.stirred = false;
    }
    return quiet;
  });
  return !stirred_.empty();
}

}  // namespace tutti::conduct
