#pragma once

// AgentMachine: an agent's whole behaviour between the coordinator's messages and its own engine,
// as a step function: no socket, thread, clock, file or log inside.
//   Waiting > Greeting > Joined > Preparing > Ready > InPhase (> Ready …) > Leaving > Gone
// Promises: every command it was leased ends in one record, one recall, or in the engine's own
// count of lost records; Drained is said only when all records are in sent batches, and so are all
// counts of their tokens, or the time for those is over; when the coordinator is lost nothing new
// is started and the spool is kept. A message that makes no sense
// in the state is counted (illegal()) and changes nothing. Owned by the agent's main thread.

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "agent/session/agent_events.h"
#include "agent/session/record_batcher.h"
#include "common/base/time.h"
#include "common/wire/messages.h"

namespace tutti::session {

struct AgentConfig {
  wire::Hello hello{};
  // In-flight queries of an agent without a coordinator may end by themselves for this long; then
  // they are cancelled, so that no orphan loads a frontend 10 s after its coordinator's end.
  base::Duration orphan_drain_max = base::Duration::seconds(5);
  base::Duration abort_max = base::Duration::seconds(5);    // for cancelled exchanges to come back
  base::Duration goodbye_max = base::Duration::seconds(5);  // for the last acknowledgements
};

enum class AgentState : std::uint8_t {
  kWaiting,
  kGreeting,
  kJoined,
  kPreparing,
  kReady,
  kInPhase,
  kLeaving,
  kGone,
};
const char* name_of(AgentState state);

class AgentMachine {
 public:
  // Commands an engine must be able to hold beyond its slots; the coordinator leases no more.
  static constexpr std::size_t kQueueMax = 65'536;

  // Health is told in intervals of this length, counted from the phase's start …
  static constexpr base::Duration kInterval = base::Duration::seconds(1);
  // … and what came before it, of the armed phase, in one that ends this much earlier.
  static constexpr base::Duration kBeforeStart = base::Duration::millis(10);

  // How often it looks for counts when nothing but them is awaited.
  static constexpr base::Duration kCountsEvery = base::Duration::millis(10);

  explicit AgentMachine(AgentConfig config);

  void step(Event event, base::Instant now, std::vector<Command>& out);
  // Send a Tick no later than this.
  base::Instant next_tick() const;

  AgentState state() const { return state_; }
  bool gone() const { return state_ == AgentState::kGone; }
  std::uint64_t illegal() const { return illegal_; }
  std::uint64_t in_hand() const;  // commands of the phase with neither record nor recall yet
  std::uint64_t counting() const { return counting_; }  // replies whose count is awaited
  std::uint32_t number() const { return number_; }
  std::uint32_t phase_number() const { return phase_.number; }  // of the newest armed phase
  const base::Id& run() const { return run_; }

 private:
  struct Phase {
    std::uint32_t number = 0;
    base::Pacing pacing = base::Pacing::kBurst;
    std::uint32_t slots = 0;
    base::Instant start_at{};
    std::uint64_t leased = 0;
    std::uint64_t returned = 0;
    std::uint64_t recorded = 0;
    std::uint64_t lost = 0;         // by the engine's count, in this phase
    std::uint64_t lost_before = 0;  // by the same count when the phase began
    std::uint32_t recalls_out = 0;
    std::unordered_set<base::Seq> last_turns;  // of the conversations in hand
    bool counts = false;                       // its replies' tokens are counted here
    bool drain_asked = false;
    bool aborted = false;
    bool abort_out = false;  // EngineAborted is awaited
  };

  void on(const Connected& event);
  void on(MessageFrom& event);
  void on(const StoodStill& event);
  void on(const Suspended& event);
  void on(const LinkLost& event);
  void on(const BodiesOpened& event);
  void on(const BodiesStored& event);
  void on(const EngineWarmed& event);
  void on(RecordsDone& event);
  void on(RepliesCounted& event);
  void on(const EngineRecalled& event);
  void on(const EngineAborted& event);
  void on(const Gauges& event);
  void on(const StopAsked& event);
  void on(const Tick& event);

  void take(const wire::Dial& message);
  void take(const wire::Welcome& message);
  void take(const wire::Refused& message);
  void take(const wire::ClockPing& message);
  void take(const wire::Prepare& message);
  void take(wire::BodyChunk& message);
  void take(const wire::ArmPhase& message);
  void take(wire::Lease& message);
  void take(const wire::Recall& message);
  void take(const wire::Drain& message);
  void take(const wire::Abort& message);
  void take(const wire::BatchAck& message);
  void take(const wire::Goodbye& message);
  // Whatever a coordinator never says.
  template <class Message>
  void take(const Message& /*message*/) {
    ++illegal_;
  }

  void start_engine();
  void not_ready(const std::string& error);
  void abort_engine(const std::string& reason);
  void read_gauges(bool close_interval);
  base::Instant next_interval_end() const;
  void flush_records();
  void count_tokens(const std::vector<wire::Record>& records);
  bool counts_awaited();
  void stop_counting();
  void say_drained();
  wire::Drained drained() const;
  void leave(base::ExitCode code, const std::string& reason);
  void go_on_leaving();
  void exit(base::ExitCode code, const std::string& reason);
  bool holding() const { return in_hand() > 0 || phase_.recalls_out > 0 || phase_.abort_out; }

  template <class Message>
  void send(Message message) {
    if (linked_) {
      out_->emplace_back(Send{wire::Message(std::move(message))});
    }
  }

  AgentConfig config_;
  AgentState state_ = AgentState::kWaiting;
  std::uint64_t illegal_ = 0;
  base::Instant now_{};
  std::vector<Command>* out_ = nullptr;

  bool linked_ = false;
  base::Id run_{};
  std::uint32_t number_ = 0;
  base::Duration heartbeat_ = base::Duration::millis(500);
  base::Duration lost_after_{};
  base::Instant gauges_at_ = base::kFarFuture;
  base::Instant interval_ends_at_ = base::kFarFuture;  // of Health, whatever the heartbeat
  wire::Prepare prepare_{};
  bool receiving_bodies_ = false;
  bool receiving_model_ = false;
  std::uint32_t storing_ = 0;  // of them: received, and not known to be stored
  bool engine_runs_ = false;
  std::uint64_t records_lost_ = 0;  // by the engine's own count, ever
  Phase phase_;
  bool slot_free_ = false;  // a conversation has just ended
  RecordBatcher batcher_;
  std::uint64_t counting_ = 0;      // replies that CountReplies was asked for and has not answered
  base::Instant counting_since_{};  // nothing else holds Drained, or an end, since then

  base::ExitCode leave_code_ = base::ExitCode::kOk;
  std::string leave_reason_;
  bool left_in_phase_ = false;
  bool sending_rest_ = false;  // leaving: nothing is held any more, batches wait to be sent
  bool goodbye_said_ = false;
  base::Instant leave_by_ = base::kFarFuture;  // then abort, then go
};

}  // namespace tutti::session
