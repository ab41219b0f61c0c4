#pragma once

// CentreAgent: one agent as the coordinator sees it: the real AgentMachine, link, codecs and
// socket, and behind them no HTTP but a fake engine that ends every query after a while and writes
// a plausible record of it. Thousands live in one process and share one TimerWheel. Promises: slots
// are never exceeded, every command ends in one record or one recall. One thread.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/session/agent_machine.h"
#include "common/base/time.h"
#include "common/wire/codec.h"
#include "common/wire/link.h"
#include "common/wire/sockets.h"

namespace tutti::centre {

using base::Duration;
using base::Instant;

// How long the fake engine's queries take and how much they bring back.
struct Service {
  Duration mean{};  // uniform in mean · [½, 1½], by the query's number
  std::uint32_t tokens = 16;
  std::size_t text_bytes = 0;
  bool hold = false;  // nothing ends before release()
};

struct Flight {
  std::uint32_t agent = 0;
  base::IssueCommand command{};
  Instant due_at{};
  Instant issued_at{};
  Instant done_at{};
};

// What ends when, in cells of a millisecond.
class TimerWheel {
 public:
  TimerWheel(Instant now, Duration longest);
  void add(const Flight& flight);
  // Appends everything that has ended by `now`.
  void take(Instant now, std::vector<Flight>& out);

 private:
  std::int64_t cell_of(Instant at) const { return at.ns / kCell.ns; }
  static constexpr Duration kCell = Duration::millis(1);

  std::int64_t next_ = 0;  // the first cell not taken
  std::vector<std::vector<Flight>> cells_;
};

struct AgentTally {
  std::uint64_t commands = 0;   // leased, ever
  std::uint64_t returned = 0;   // recalled unstarted
  std::uint64_t records = 0;    // handed to the machine
  std::uint64_t in_flight = 0;  // now
  std::uint32_t slots = 0;      // of the newest armed phase
};

class CentreAgent {
 public:
  static constexpr std::uint64_t kUnackedMax = 16;  // batches; what ends beyond them waits here

  CentreAgent(std::uint32_t index, wire::DialSocket socket, const Service& service,
              TimerWheel& wheel, Instant now);

  void begin(Instant now);
  void turn(Instant now);
  void ended(const Flight& flight);
  void release();

  const AgentTally& tally() const { return tally_; }
  const session::AgentMachine& machine() const { return machine_; }
  bool ready() const { return machine_.state() >= session::AgentState::kReady; }
  bool gone() const { return exit_.has_value(); }
  base::ExitCode exit_code() const { return exit_ ? exit_->code : base::ExitCode::kOk; }
  const std::string& exit_reason() const { return exit_->reason; }
  // Every record that was made is stored by the coordinator.
  bool all_stored() const { return done_.empty() && batches_ == stored_; }
  // The link has nothing left to say.
  bool settled() const { return link_.settled() && backlog_.empty(); }

 private:
  void take(const std::string& bytes);
  void feed(session::Event event);
  void perform(session::Command&& command);
  void send(const wire::Message& message);
  void flush_backlog();
  void poll();
  void start_queries();
  void deliver();
  void recall(const session::EngineRecall& command);
  wire::Progress gauges(bool close_interval);
  wire::Record record_of(const Flight& flight) const;

  std::uint32_t index_;
  const Service& service_;
  TimerWheel& wheel_;
  wire::DialSocket socket_;
  wire::Link link_;
  session::AgentMachine machine_;
  Instant now_{};
  bool touched_ = false;  // the link has something new since its last poll
  bool lost_told_ = false;
  bool released_ = false;
  bool aborted_ = false;
  std::deque<wire::Encoded> backlog_;
  std::deque<base::IssueCommand> queue_;
  std::deque<Flight> done_;  // ended, not yet handed to the machine
  wire::ArmPhase armed_{};
  wire::Progress progress_{};
  std::uint64_t batches_ = 0;
  std::uint64_t stored_ = 0;
  AgentTally tally_;
  std::string text_;
  std::string bytes_;
  std::optional<session::Exit> exit_;
  std::vector<wire::Delivered> delivered_;
  std::vector<wire::Frame> frames_;
};

}  // namespace tutti::centre
