#pragma once

// Peers: the coordinator's connections. Owns the sockets and one Link per agent incarnation; turns
// arrived bytes into messages and messages into bytes. Knows nothing of what is said. A frame that
// is no frame, of another protocol version, or of a stranger too many is refused, counted, and
// logged once. Main thread only.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/sys/poller.h"
#include "common/wire/codec.h"
#include "common/wire/envelope.h"
#include "common/wire/link.h"
#include "common/wire/sockets.h"
#include "coordinator/conduct/run_events.h"

namespace tutti::conduct {

struct PeerSettings {
  std::vector<std::string> listen;  // endpoints to bind: ipc:// and tcp://
  std::vector<std::string> dial;    // tcp:// of listening agents
  wire::SocketOptions sockets{};    // its keys are for tcp only: ipc is open to our user alone
  // With keys: the agents that may dial in; of those dialled, one key for all or one for each.
  std::vector<std::string> agent_keys;
  wire::LinkConfig link{};
  base::Duration dial_patience{};  // how long a dialled agent may take to say its first word
};

// Something an agent said; RecordBatches too.
struct Arrival {
  AgentKey agent = 0;
  wire::Message message;
};
using PeerEvent = std::variant<PeerJoined, Arrival, PeerLost>;

class Peers {
 public:
  static constexpr std::size_t kPeersMax = 4096;
  static constexpr std::size_t kBacklogMax = 65'536;  // messages waiting for a link's window
  static constexpr std::size_t kReceivedMax = 1024;   // frames of one receive() …
  static constexpr std::size_t kReceivedBytesMax = std::size_t{16} << 20;  // … and their bytes

  // Binds and dials. kSetup with the endpoint and the remedy.
  static base::Result<std::unique_ptr<Peers>> open(PeerSettings settings, base::Instant now);

  // Appends a PeerJoined for each dialled address; once, before anything else.
  void announce_dialled(std::vector<PeerEvent>& out) const;
  // Appends what came in, so much of it that memory stays bounded and frames that are due go out in
  // time; the rest comes with the next call. Never blocks.
  void receive(base::Instant now, std::vector<PeerEvent>& out);
  void send(AgentKey agent, const wire::Message& message, base::Instant now);
  // Room in the agent's window for a message of this size, and nothing waiting before it.
  bool can_send(AgentKey agent, std::size_t bytes) const;
  // Puts due frames on the wire; appends agents that fell silent.
  void poll(base::Instant now, std::vector<PeerEvent>& out);
  // Delivers what is queued, then forgets the agent; gives up after `patience`.
  void close(AgentKey agent, base::Instant now, base::Duration patience);
  void close_all(base::Instant now, base::Duration patience);
  bool all_closed() const { return peers_.empty(); }

  // Sleeps until something arrives, a descriptor of `fds` is readable, or `until`.
  void wait(base::Instant now, base::Instant until, std::vector<wire::WaitFd>& fds);
  base::Instant next_deadline() const;
  // The last receive() left nothing in the sockets.
  bool all_heard() const { return all_heard_; }
  // Of all peers that have spoken, and of those to come.
  void set_lost_after(base::Duration silence);

  // As bound, wildcards resolved; same order as PeerSettings::listen.
  std::vector<std::string> listening() const;
  std::uint64_t refused_frames() const { return refused_frames_; }

 private:
  struct Peer {
    Peer(const wire::LinkConfig& config, base::Id self, base::Instant now)
        : link(config, self, now) {}
    wire::Link link;
    std::size_t listener = 0;  // with `route`
    std::string route;         // the ROUTER's name of the connection; changes when it reconnects
    wire::DialSocket* dialled = nullptr;
    std::string endpoint;  // of a dialled agent
    std::deque<wire::Encoded> backlog;
    bool heard = false;
    bool closing = false;
    bool touched = false;  // in touched_
    bool stirred = false;  // in stirred_
    base::Instant close_by{};
    base::Instant wake_at = base::kFarFuture;  // its earliest entry in wakes_
  };
  // When a peer's link has something to do next, if nothing happens to it before.
  struct Wake {
    base::Instant at{};
    AgentKey key = 0;
    friend bool operator>(const Wake& a, const Wake& b) { return a.at > b.at; }
  };
  using Peerage = std::map<AgentKey, Peer>;

  explicit Peers(PeerSettings settings);
  void take(std::string&& bytes, std::size_t listener, const std::string& route, AgentKey dialled,
            base::Instant now, std::vector<PeerEvent>& out);
  AgentKey key_for(const wire::Frame& frame, AgentKey dialled, base::Instant now,
                   std::vector<PeerEvent>& out);
  void touch(AgentKey key, Peer& peer);
  void stir(AgentKey key, Peer& peer);
  bool receive_dialled(base::Instant now, std::vector<PeerEvent>& out);
  bool input_waits();
  void poll_peer(Peerage::iterator at, base::Instant now, std::vector<PeerEvent>& out);
  void deliver(AgentKey key, Peer& peer, wire::Frame&& frame, base::Instant now,
               std::vector<PeerEvent>& out);
  void transmit(AgentKey key, Peer& peer, const wire::Frame& frame);
  void refuse(const std::string& why);
  void tell_denied();
  void flush_backlog(Peer& peer, base::Instant now);

  PeerSettings settings_;
  base::Id self_;
  wire::SocketContext context_;
  std::vector<wire::ListenSocket> listeners_;
  std::deque<wire::DialSocket> dials_;
  sys::Poller dial_poller_;                    // their descriptors
  std::unordered_map<int, AgentKey> dialled_;  // whose they are
  Peerage peers_;
  // So that a turn costs what happened in it, not what there is: peers that something has happened
  // to, and the instants at which the others want to be looked at.
  std::vector<AgentKey> touched_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
  std::vector<AgentKey> stirred_;  // dialled ones whose sockets may have input
  bool all_heard_ = true;
  base::Instant emptied_at_{};  // nothing was waiting in the sockets then
  std::map<base::Id, AgentKey> by_incarnation_;
  std::set<base::Id>
      gone_;  // incarnations that were closed or lost: their late frames are nobody's
  AgentKey next_key_ = 1;
  std::uint64_t refused_frames_ = 0;
  std::uint64_t denied_told_ = 0;
  std::set<std::string> refusals_logged_;  // without their numbers
  wire::VersionReplies version_replies_;
  std::vector<wire::Frame> frames_;         // scratch
  std::vector<wire::Delivered> delivered_;  // scratch
};

}  // namespace tutti::conduct
