#pragma once

// CoordinatorLink: an agent's one connection, whichever side dialled: socket, Link, codec. Frames
// that are no frames, or another protocol version's, are refused and logged once. Main thread only.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/wire/codec.h"
#include "common/wire/envelope.h"
#include "common/wire/link.h"
#include "common/wire/sockets.h"

namespace tutti::session {

// The socket lives as long as the process; each run gets a Link of its own incarnation.
class CoordinatorLink {
 public:
  static constexpr base::Duration kSleepMax = base::Duration::millis(100);  // of one wait()

  // With keys, `options.listener_key` is the coordinator's, whichever side dials.
  static base::Result<std::unique_ptr<CoordinatorLink>> open(
      const std::optional<std::string>& connect, const std::optional<std::string>& listen,
      const wire::SocketOptions& options);

  // A new incarnation. A dialler waits `patience` for the first word; a listener is not lost while
  // nobody has called.
  void begin(base::Duration patience, base::Instant now);

  bool listening() const { return listen_.has_value(); }
  const std::string& endpoint() const;
  bool called() const { return link_ != nullptr && link_->peer().is_set(); }

  void receive(base::Instant now, std::vector<wire::Message>& out);
  void send(wire::Encoded message, base::Instant now);
  void poll(base::Instant now);
  void set_liveness(base::Duration heartbeat, base::Duration lost_after);
  bool lost(base::Instant now) const;
  // Ask before receive(): what the peer said before it gave us up looks like life.
  bool mute(base::Instant now) const { return called() && link_->mute(now); }
  base::Instant spoke_at() const { return link_->spoke_at(); }
  std::string why_lost(base::Instant now);
  bool settled() const { return backlog_.empty() && link_->settled(); }
  base::Instant next_deadline() const { return link_->next_deadline(); }
  void wait(base::Instant now, base::Instant until, std::vector<wire::WaitFd>& fds);

 private:
  CoordinatorLink() = default;
  void take(std::string&& bytes, base::Instant now, std::vector<wire::Message>& out);
  void turn_away(wire::Frame&& frame, base::Instant now);
  void transmit(const wire::Frame& frame, const std::string& route);
  void flush_backlog(base::Instant now);
  void refuse(const std::string& why);
  void tell_denied();

  wire::SocketContext context_;
  std::optional<wire::DialSocket> dial_;
  std::optional<wire::ListenSocket> listen_;
  std::unique_ptr<wire::Link> link_;
  std::string route_;          // of the coordinator, when listening
  std::string arriving_from_;  // of the frame at hand
  std::deque<wire::Encoded> backlog_;
  std::set<std::string> refusals_logged_;  // without their numbers
  wire::VersionReplies version_replies_;
  std::string foreign_;  // not empty: what came is of another protocol version, in words
  std::uint64_t denied_told_ = 0;
  std::vector<wire::Frame> frames_;
  std::vector<wire::Delivered> delivered_;
};

}  // namespace tutti::session
