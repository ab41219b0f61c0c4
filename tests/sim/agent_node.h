#pragma once

// AgentNode: a whole simulated agent host: a real AgentMachine, a real Link, a SimEngine, a spool
// in memory, a clock of its own. Single thread.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "agent/session/agent_machine.h"
#include "tests/sim/counter.h"
#include "tests/sim/engine.h"
#include "tests/sim/line.h"
#include "tests/sim/network.h"
#include "tests/sim/witness.h"
#include "tests/sim/world.h"

namespace tutti::sim {

struct AgentOptions {
  std::string name;
  SimClock clock{0, 0};
  EngineOptions engine{};
  CountingOptions counting{};
  wire::LinkConfig link{};
  bool bodies_cached = false;
  bool listening = false;
  std::string prepare_error;
  std::uint32_t protocol_version = wire::kProtocolVersion;
};

class AgentNode {
 public:
  AgentNode(World& world, SimNetwork& network, Witness& witness, AgentOptions options);

  std::size_t node() const { return node_; }
  const SimClock& clock() const { return options_.clock; }
  void begin();
  void crash();
  void freeze(Duration lasts);  // SIGSTOP, and SIGCONT later; frames wait, up to a socket's queue
  void signal();
  bool crashed() const { return crashed_; }
  bool gone() const { return crashed_ || exited_; }
  base::ExitCode exit_code() const { return exit_code_; }
  const std::string& exit_reason() const { return exit_reason_; }
  // Records on this host's disk that the coordinator has not acknowledged.
  const std::deque<wire::RecordBatch>& spool() const { return spool_; }
  const session::AgentMachine& machine() const { return machine_; }
  const SimCounter& counter() const { return *counter_; }

 private:
  Instant local() const { return options_.clock.at(world_.now()); }
  bool planted(Planted bug) const { return options_.engine.planted == bug; }
  void hear(const std::string& bytes);
  void thaw();
  void note_standstill();
  void post(session::Event event);
  void turn();
  void perform(session::Command& command);
  void set_alarm();

  World& world_;
  SimNetwork& network_;
  Witness& witness_;
  AgentOptions options_;
  std::size_t node_ = 0;
  session::AgentMachine machine_;
  std::unique_ptr<Line> line_;
  std::unique_ptr<SimEngine> engine_;
  std::unique_ptr<SimCounter> counter_;
  Alarm alarm_;
  std::vector<session::Event> inbox_;
  std::size_t read_ = 0;  // of it; all of the rest is still to be told to the machine
  std::vector<session::Command> commands_;  // room that is used again
  std::deque<std::string> unread_;          // came while it was frozen
  Instant frozen_until_{};
  bool turning_ = false;
  bool new_terms_ = false;  // of liveness, in this event
  bool crashed_ = false;
  bool exited_ = false;
  Instant gone_at_ = base::kFarFuture;
  base::ExitCode exit_code_ = base::ExitCode::kOk;
  std::string exit_reason_;
  std::deque<wire::RecordBatch> spool_;
};

}  // namespace tutti::sim
