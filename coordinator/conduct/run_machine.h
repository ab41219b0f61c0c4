#pragma once

// RunMachine: the whole conduct of a run as a step function. It owns the plan, the roster and the
// running phase; it knows no socket, thread, clock, file or log. The host turns what happens into
// events, calls step(), and performs the commands in order:
//   Gathering > Preparing > Armed > Running > Draining > (next phase …) > Merging > Done | Aborted
// Promises: every run ends in exactly one Finish; what its phases issued is an exact prefix of
// their schedules; a query without a record is named. An event that makes no sense in the state is
// counted (illegal()) and changes nothing.
// Owned by the coordinator's main thread.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "common/plan/stop.h"
#include "common/wire/link.h"
#include "coordinator/conduct/capacity.h"
#include "coordinator/conduct/phase_run.h"
#include "coordinator/conduct/run_events.h"
#include "coordinator/conduct/run_plan.h"
#include "coordinator/roster/roster.h"

namespace tutti::conduct {

enum class RunState : std::uint8_t {
  kGathering,
  kPreparing,
  kArmed,
  kRunning,
  kDraining,
  kMerging,
  kDone,
  kAborted,
};
const char* name_of(RunState state);

class RunMachine {
 public:
  // An agent batches its records for up to this long (agent/session), and the coordinator's own
  // turn takes a while; with the round trip they make the delay that prefetch must cover. A round
  // trip takes its mean and four times its spread, as TCP reckons (RFC 6298): a network or a host
  // that stammers is seen by the pings, and a slot must not stand empty for it.
  static constexpr base::Duration kBatchDelay = base::Duration::millis(20);
  static constexpr base::Duration kOwnDelay = base::Duration::millis(5);
  static base::Duration replacement_delay(const roster::ClockEstimate& clock) {
    return clock.rtt_recent() + clock.rtt_spread() * 4 + kBatchDelay + kOwnDelay;
  }
  static constexpr base::Duration kTickInPhase = base::Duration::millis(20);
  static constexpr base::Duration kTickOutside = base::Duration::millis(50);
  static constexpr base::Duration kSumEvery = base::Duration::millis(2);
  // While a phase runs, the word that a batch is stored waits for a lease to the same agent, for so
  // long, and for so many batches: it wakes several threads there, and nobody is in need of it.
  static constexpr base::Duration kAckHeldMax = base::Duration::millis(100);
  static constexpr std::uint64_t kAcksHeldMax = 32;
  // When records cannot be stored any more, what is in flight may end for so long.
  static constexpr base::Duration kUnstoredDrainMax = base::Duration::seconds(5);
  static constexpr base::Duration kMergeWaitMax = base::Duration::seconds(1);  // for the last pongs

  // check(plan) must be empty.
  explicit RunMachine(RunPlan plan);

  // Appends what is to be done.
  void step(const Event& event, base::Instant now, std::vector<Command>& out);
  // Send a Tick no later than this.
  base::Instant next_tick() const;

  RunState state() const { return state_; }
  bool finished() const { return state_ >= RunState::kDone; }
  const RunPlan& plan() const { return plan_; }
  const roster::Roster& roster() const { return roster_; }
  const PhaseRun* phase() const { return phase_.get(); }  // null before the first
  const Outcome& outcome() const { return outcome_; }
  std::uint64_t illegal() const { return illegal_; }
  // What the load takes of the agents' hosts; empty before they are prepared.
  const std::vector<std::string>& budget() const { return budget_; }
  // Whether the agents count tokens of replies; false before they are prepared.
  bool agents_count() const { return agents_count_; }
  // Silence that means an agent is lost, as things stand: one that prepares may be reading a large
  // body set, and answers nobody meanwhile.
  base::Duration lost_after() const {
    return state_ == RunState::kPreparing ? std::max(plan_.lost_after, wire::kPreparingPatience)
                                          : plan_.lost_after;
  }

 private:
  struct Peer {
    std::string label;
    bool joined = false;
    bool ready = false;  // said Prepared
    bool armed = false;  // said Armed for the running phase
    AgentShare share{};
    std::uint64_t lost_before_phase = 0;  // records_lost when the phase began
    std::uint64_t batch_stored = 0;       // of any phase: batches are numbered through
    std::uint64_t ack_owed = 0;           // the newest batch it is to be told of; 0: it was
    std::uint64_t acks_owed = 0;          // how many such batches
    base::Instant ack_due{};
    std::size_t pongs_before_merge = 0;
  };

  void on(const PeerJoined& event);
  void on(const MessageFrom& event);
  void on(const PeerLost& event);
  void on(const RecordsStored& event);
  void on(const RecordsRefused& event);
  void on(const StopAsked& event);
  void on(const Tick& event);

  void take(AgentKey agent, const wire::Hello& message);
  void take(AgentKey agent, const wire::ClockPong& message);
  void take(AgentKey agent, const wire::BodiesWanted& message);
  void take(AgentKey agent, const wire::Prepared& message);
  void take(AgentKey agent, const wire::Armed& message);
  void take(AgentKey agent, const wire::Recalled& message);
  void take(AgentKey agent, const wire::Drained& message);
  void take(AgentKey agent, const wire::Progress& message);
  void take(AgentKey agent, const wire::Goodbye& message);
  // Whatever an agent never says.
  template <class Message>
  void take(AgentKey /*agent*/, const Message& /*message*/) {
    ++illegal_;
  }

  // Getting ready (run_machine.cc).
  void ping();
  void gather();
  void prepare_agents();
  void prepare();
  void all_prepared();
  std::string unready_names() const;
  std::string clock_refusal() const;
  void abort_setup(base::ExitCode exit, const std::string& reason);

  void owe_ack(AgentKey agent, std::uint64_t batch);
  void pay_ack(AgentKey agent);
  void pay_acks(std::size_t from);

  // Phases (run_machine_phases.cc).
  void arm_next_phase();
  void begin_phase(std::uint32_t index);
  void run_phase();
  void tell_issuing_end();
  void judge_phase();
  void check_answers();
  bool has_slots(std::uint32_t phase) const;
  void lose_agent(AgentKey agent, const std::string& why);
  std::string going_on() const;
  void stop_run(base::ExitCode exit, const std::string& reason, base::Duration grace);
  void abort_phase(const std::string& reason);
  void dismiss_agents();
  void end_phase();
  void start_merge();
  void merge();
  void finish(RunState state);
  plan::PhaseCounters counters() const;
  std::uint64_t in_flight() const;
  std::uint64_t in_flight_told() const;
  plan::PhaseSpec spec_of(std::uint32_t index) const;

  template <class Message>
  void send(AgentKey agent, Message message) {
    out_->emplace_back(Send{agent, wire::Message(std::move(message))});
  }
  void notice(NoticeLevel level, std::string text) {
    out_->emplace_back(Notice{level, std::move(text)});
  }
  bool in_phase() const { return state_ >= RunState::kArmed && state_ <= RunState::kDraining; }

  RunPlan plan_;
  roster::Roster roster_;
  std::map<AgentKey, Peer> peers_;
  RunState state_ = RunState::kGathering;
  Outcome outcome_;
  std::vector<std::string> budget_;
  bool agents_count_ = false;
  std::uint64_t illegal_ = 0;
  // Oldest first; of an agent that was told since, its ack_due is another.
  std::deque<std::pair<base::Instant, AgentKey>> acks_due_;

  base::Instant now_{};  // of this step
  // This step is a Tick, so all that had come in was taken: only then is it anybody's silence.
  bool ticking_ = false;
  std::vector<Command>* out_ = nullptr;
  base::Instant began_at_{};
  base::Instant deadline_ = base::kFarFuture;  // of gathering, preparing, clocks, merging
  AgentKey merged_below_ = 0;                  // the clocks of agents before this one are known
  bool clocks_awaited_ = false;

  std::unique_ptr<PhaseRun> phase_;
  std::unique_ptr<plan::StopRules> phase_rules_;
  std::uint32_t next_phase_ = 0;
  // By gap seed: how many gaps capped phases left undrawn that the plan counted on.
  std::map<std::uint64_t, std::uint64_t> gaps_short_;
  plan::Decision issuing_end_;  // why issuing ended before the schedule did
  bool issuing_end_told_ = false;
  bool all_armed_ = false;  // seen once in this phase: nobody is asked again
  // Timed phases: in flight as the agents say, summed no more often than kSumEvery.
  mutable std::uint64_t told_sum_ = 0;
  mutable base::Instant told_summed_at_{};
  base::Instant in_flight_since_{};
  base::Instant last_response_at_{};
  base::Instant draining_since_{};
  std::string unstored_;  // why records are stored no more: agents are told, so that they keep them
  bool stopping_ = false;                           // no further phase
  base::Instant stop_deadline_ = base::kFarFuture;  // then abort
  bool aborting_ = false;
  base::Instant abort_deadline_ = base::kFarFuture;  // then give up on who has not drained
};

}  // namespace tutti::conduct
