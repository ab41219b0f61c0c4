#pragma once

// Roster: who takes part in a run, who is alive, and how their clocks stand. It decides who may
// join (one protocol version, one agent per name), when to ping whom, and remembers when and why an
// agent was lost. Pure: every call gets `now`. Owned by the coordinator's main thread.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/wire/messages.h"
#include "coordinator/roster/clock_estimate.h"

namespace tutti::roster {

// The host's name for one connection to one incarnation; never reused in a run.
using AgentKey = std::uint64_t;

struct Agent {
  AgentKey key = 0;
  std::uint32_t number = 0;  // in join order, from 0
  wire::Hello hello{};
  base::Instant joined_at{};
  bool lost = false;
  base::Instant lost_at{};
  std::string lost_why;
  ClockEstimate clock;
  wire::Progress progress{};  // the newest; empty before the first
  base::Instant progress_at{};

  const std::string& name() const { return hello.agent_name; }
};

class Roster {
 public:
  static constexpr std::uint32_t kBurst = 8;  // pings of one burst
  static constexpr base::Duration kBurstGap = base::Duration::millis(5);
  static constexpr base::Duration kPingEvery = base::Duration::seconds(1);
  static constexpr std::size_t kPingsOutMax = 64;  // unanswered, per agent

  // Takes an agent in, and plans a burst of pings to it. Refused (with the reason the agent will
  // print) when its protocol differs, its name is empty or taken, or this key has said hello
  // before.
  base::Result<std::uint32_t> join(AgentKey key, const wire::Hello& hello, base::Instant now);
  // Before the run an agent may leave and another may take its name.
  void forget(AgentKey key);
  // Marks it lost; false when unknown or lost already.
  bool lose(AgentKey key, std::string why, base::Instant now);

  Agent* find(AgentKey key);
  const Agent* find(AgentKey key) const;
  bool alive(AgentKey key) const;
  std::size_t alive_count() const;
  // Everyone that ever joined (and was not forgotten), sorted by name: the order of all shares.
  std::vector<const Agent*> by_name() const;

  // Pings every living agent kBurst times, kBurstGap apart, from now on.
  void burst(base::Instant now);
  // Appends the pings to send now.
  void due_pings(base::Instant now, std::vector<std::pair<AgentKey, wire::ClockPing>>& out);
  // Never later than the next ping is due; earlier at most once for an agent that was lost since.
  base::Instant next_ping_at() const { return next_ping_at_; }
  // False, and nothing taken, when no such ping is out or the stamps are impossible.
  bool pong(AgentKey key, const wire::ClockPong& pong, base::Instant now);

  // Every living agent has answered at least `exchanges` pings.
  bool clocks_measured(std::size_t exchanges) const;
  // The largest error bound over living agents at `at`; each must have answered a ping.
  base::Duration clock_error_max(base::Instant at) const;
  base::Duration rtt_max() const;
  // Living agents whose bound at `at` is over `limit`, by name, with their figures; or that have
  // answered no ping yet.
  std::vector<std::string> clocks_beyond(base::Duration limit, base::Instant at) const;

 private:
  struct Seat {
    Agent agent;
    base::Instant next_ping_at{};
    std::uint32_t burst_left = 0;
    std::uint64_t last_ping = 0;
    std::map<std::uint64_t, base::Instant> pings_out;
  };

  std::map<AgentKey, Seat> seats_;
  base::Instant next_ping_at_ = base::kFarFuture;
  std::uint32_t joined_ = 0;
};

}  // namespace tutti::roster
