#pragma once

// PhaseRun: who is to issue what, for one phase. It draws commands from the Schedule, leases them,
// keeps for every command in an agent's hands who has it, takes back what was never started, and
// knows when the phase is over. Its promise: at the end the commands that were issued, or are named
// missing, are exactly the first prefix_end() of the schedule, none of them given to two agents
// that both might have started it. Of a phase of trajectories it leases whole ones, each for one
// free slot; stopped, the turns that are left of them are withheld(): of the prefix, never issued.
//   open ──(all drawn, nothing queued)──────────────────────────┐
//    └─(stop)─> recalling ─(all answered)─> filling ─(no hole)──┴─> draining ─> over
//    any ─(abort)─> aborting ─> over
// Pure: `now` and the link's delay are arguments. Owned by the RunMachine.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/time.h"
#include "common/plan/deal.h"
#include "common/plan/schedule.h"
#include "coordinator/conduct/held_commands.h"
#include "coordinator/conduct/prefetch.h"
#include "coordinator/conduct/run_events.h"
#include "coordinator/conduct/seat.h"

namespace tutti::conduct {

class PhaseRun {
 public:
  enum class Mode : std::uint8_t { kOpen, kRecalling, kFilling, kDraining, kAborting };

  static constexpr std::size_t kLeaseMax = 4096;  // commands of one message
  // Of one advance(): the caller's loop must get to put what was said before onto the wire.
  static constexpr std::size_t kLeasedAtOnceMax = 131'072;
  static constexpr std::uint64_t kTimedQueueMax = 65'536;  // of one agent
  // Timed leases go ahead by so much, and by up to a step less: one lease a step, not one a batch.
  static constexpr base::Duration kHorizon = base::Duration::seconds(2);
  static constexpr base::Duration kHorizonStep = base::Duration::millis(100);
  static constexpr std::uint32_t kTailRecallsMax = 4;  // rounds

  // `seats` in name order: agent, name, slots.
  PhaseRun(std::uint32_t phase, const plan::PhaseSpec& spec, std::vector<Seat> seats,
           std::int64_t prefetch);

  void start(base::Instant start_at) { start_at_ = start_at; }
  void set_delay(AgentKey agent, base::Duration delay);

  // Facts. Those that make no sense are counted in strays() and change nothing.
  void batch_stored(AgentKey agent, std::uint64_t batch);
  void record_stored(AgentKey agent, const StoredRecord& record, base::Instant now);
  // It ended, and its record stays with the agent: missing here, by `why`.
  void record_refused(AgentKey agent, const StoredRecord& record, const std::string& why);
  void records_lost(AgentKey agent, std::uint64_t of_this_phase);
  void started(AgentKey agent, std::uint64_t of_this_phase);
  void recalled(AgentKey agent, const wire::Recalled& message);
  void drained(AgentKey agent, const wire::Drained& message);
  void lose(AgentKey agent, const std::string& why) { dismiss(agent, "agent lost: " + why); }
  // Nothing more is expected of it; what it holds is missing by `why`.
  void dismiss(AgentKey agent, const std::string& why);

  // Ends issuing: what is issued becomes an exact prefix. Does nothing once issuing has ended.
  void stop_issuing(base::Instant now, std::vector<Command>& out);
  // Gives up: whatever the agents have not started is never issued. The caller sends Abort.
  void abort(base::Instant now, std::vector<Command>& out);
  // After any of the above, and with time: leases, recalls, drains.
  void advance(base::Instant now, std::vector<Command>& out);

  Mode mode() const { return mode_; }
  bool issuing() const { return mode_ < Mode::kDraining; }
  bool stopped() const { return closed_; }  // before the schedule's end
  bool over() const;
  // Some agent could take commands still.
  bool served() const;
  // The last advance() stopped at kLeasedAtOnceMax: call it again soon.
  bool has_more_to_lease() const { return leased_at_once_ >= kLeasedAtOnceMax; }
  // The first living agent that owes an answer for longer than `limit`; null when none.
  // Drained may take `counting` more.
  const Seat* overdue(base::Instant now, base::Duration limit, base::Duration counting) const;

  std::uint32_t phase() const { return phase_; }
  base::Instant start_at() const { return start_at_; }
  const plan::PhaseSpec& spec() const { return schedule_.spec(); }
  const std::vector<Seat>& seats() const { return seats_; }
  std::uint64_t outstanding() const { return out_.size(); }
  base::Seq prefix_end() const { return end_; }
  // Queries of the prefix that some agent was given for good: all but the holes given up.
  base::Seq issued() const { return end_ - never_issued_ - withheld_.size(); }
  std::uint64_t withheld() const { return withheld_.size(); }
  bool plays() const { return schedule_.spec().trajectories != nullptr; }
  // A trajectory is over, and none was left to begin.
  bool first_user_done() const { return first_user_done_; }
  std::uint64_t recorded() const { return totals_.ok + totals_.failed + totals_.cancelled; }
  std::uint64_t failed() const { return totals_.failed; }
  std::uint64_t strays() const { return strays_; }
  std::uint32_t tail_recalls() const { return tail_recalls_; }
  std::uint64_t prefetch_depth(std::size_t seat, base::Instant now) const;
  // Final once over().
  PhaseTotals totals() const;

 private:
  static constexpr std::size_t kNobody = SIZE_MAX;  // no such seat

  std::size_t seat_of(AgentKey agent) const;  // kNobody when unknown
  const base::IssueCommand* peek(base::Instant now);
  bool beyond_horizon(const base::IssueCommand& command, base::Instant now) const;
  base::IssueCommand take();
  std::uint64_t room(const Seat& seat, std::uint64_t depth) const;
  void lease_more(base::Instant now, std::vector<Command>& out);
  void lease_dealt(base::Instant now, std::vector<Command>& out);
  void lease_to_least_taken(base::Instant now, std::vector<Command>& out);
  bool less_taken(std::size_t a, std::size_t b) const;
  std::size_t least_taken() const;
  void give(std::size_t seat, std::vector<Command>& out);
  void give_one(std::size_t seat);
  bool held_by(std::size_t seat, base::Seq seq) const;
  void hand_back(std::size_t seat, base::Seq seq);
  void note_back(std::size_t seat, base::Seq seq);
  void stir(std::size_t seat);
  void settle_stirred(base::Instant now);
  void settle(std::size_t seat, base::Instant now);
  void take_back(std::size_t seat, std::vector<base::IssueCommand>&& unstarted);
  void withhold();
  void send_lease(std::size_t seat, std::vector<Command>& out);
  void touch(std::size_t seat);
  bool supply_empty() const;
  bool balance_tail(base::Instant now, std::vector<Command>& out);
  void recall(Seat& seat, base::Instant now, std::vector<Command>& out);
  void drain_all(base::Instant now, std::vector<Command>& out);
  void trim();
  void give_up_holes(const char* why);
  void take_back_unstarted(std::size_t seat, std::uint64_t started);
  void close_seat(std::size_t seat, const std::string& why);
  void end_recall(Seat& seat);
  bool all_seats_closed() const { return sums_.closed == seats_.size(); }
  bool recall_pending() const { return recalls_out_ > 0; }
  bool ready_to_drain(base::Instant now) const;
  bool timed() const { return schedule_.pacing() == base::Pacing::kTimed; }

  std::uint32_t phase_;
  plan::Schedule schedule_;
  std::vector<Seat> seats_;
  std::vector<Prefetch> prefetch_;
  std::unordered_map<AgentKey, std::size_t> index_;
  std::optional<plan::Dealer> dealer_;  // timed pacing
  base::Instant start_at_ = base::kFarFuture;

  Mode mode_ = Mode::kOpen;
  bool closed_ = false;                      // nothing more is drawn
  bool one_for_one_ = false;                 // no queues at agents any more
  std::optional<base::IssueCommand> ahead_;  // drawn from the schedule, not yet ours to count
  base::Seq end_ = 0;                        // commands taken from the schedule: [0, end_)
  std::map<base::Seq, base::IssueCommand> returned_;
  HeldCommands out_;
  std::map<base::Seq, Missing> missing_;
  base::Duration last_due_{};
  std::uint64_t never_issued_ = 0;
  std::set<base::Seq> withheld_;
  bool first_user_done_ = false;
  std::vector<std::uint32_t> turns_out_;  // by trajectory: its turns in an agent's hands
  std::uint32_t recalls_ = 0;
  std::size_t recalls_out_ = 0;  // unanswered
  std::uint32_t tail_recalls_ = 0;
  base::Instant next_tail_recall_{};
  PhaseTotals totals_;
  std::uint64_t strays_ = 0;
  // The sums over all seats are kept by what each adds to them; a seat is looked at again when
  // something has happened to it. So a step costs what it changes, however many seats there are.
  SeatSums sums_;
  std::vector<SeatShare> shares_;
  std::vector<std::size_t> stirred_;
  std::vector<bool> is_stirred_;
  // Seats that may have room: those that had some when commands ran out, and those something has
  // happened to since. So an event costs what it changes, however many seats there are.
  std::vector<std::size_t> open_;
  std::vector<bool> is_open_;
  std::vector<std::uint64_t> rooms_;  // scratch of lease_to_least_taken(), by seat
  std::vector<wire::Lease> leases_;   // being filled, by seat
  std::size_t leased_at_once_ = 0;
  std::vector<std::size_t> lessees_;  // seats whose lease is not empty
};

}  // namespace tutti::conduct
