#pragma once

// The live view as a value: folds the agents' Progress messages and renders one block of text for a
// terminal, or one plain line for anything else. Pure: no clock, no terminal here (terminal.h has
// that).

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/stats/live_histogram.h"
#include "common/wire/messages.h"
#include "coordinator/verdict/client_health.h"

namespace tutti::console {

struct AgentRow {
  std::string name;
  std::uint32_t slots = 0;  // 0: not a closed loop, no target
  std::uint32_t in_flight = 0;
  std::uint64_t started = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  double cpu = 0;
  base::Duration lag_p99{};
  std::string broken;  // limits of client health that its newest interval broke; empty: none
  bool lost = false;
};

class LiveView {
 public:
  LiveView(std::vector<std::string> agents, std::vector<std::string> frontends,
           verdict::ClientLimits limits = {});

  // A phase begins: gauges and histograms start anew. `total` 0: unknown. `slots` per agent.
  void begin_phase(std::string name, std::uint64_t total, std::vector<std::uint32_t> slots,
                   base::Instant now);
  // Drained: nothing is in flight any more, whatever the last gauges said.
  void end_phase();
  void note_progress(std::size_t agent, const wire::Progress& progress, base::Instant now);
  void note_lost(std::size_t agent);
  // What the ledger holds; exact, unlike the agents' gauges.
  void note_stored(std::uint64_t done, std::uint64_t failed);
  // Issuing is over: all there will be. Agents' gauges may still be of before.
  void note_issued(std::uint64_t issued);
  // Anything of this phase came yet. Until then its numbers say nothing.
  bool heard() const { return heard_; }

  // Many lines, none longer than `columns`.
  std::string block(base::Instant now, std::size_t columns) const;
  std::string plain_line(base::Instant now) const;

 private:
  struct Rate {
    double queries_per_s = 0;
    double tokens_per_s = 0;  // events, unless usage_came()
  };
  struct Point {
    base::Instant at{};
    std::uint64_t done = 0;
    std::uint64_t tokens = 0;
    std::vector<wire::FrontendGauge> frontends;
  };
  Rate rate() const;
  std::uint64_t issued() const;
  bool usage_came() const;
  std::string time_left(base::Instant now) const;
  std::uint64_t in_flight() const;
  wire::FrontendGauge frontend_sum(std::size_t frontend) const;
  // Every query of it that ended within the last few seconds failed, and some did.
  bool fails(std::size_t frontend) const;
  void sample(base::Instant now);
  void note_health(AgentRow& row, const wire::Progress& progress);
  std::string health_line() const;  // empty: nothing to say

  std::string phase_;
  std::uint64_t total_ = 0;
  std::uint64_t target_ = 0;
  std::uint64_t issued_ = 0;  // 0: issuing goes on
  bool heard_ = false;
  std::uint64_t done_ = 0;
  std::uint64_t failed_ = 0;
  base::Instant began_at_{};
  std::vector<AgentRow> agents_;
  std::vector<std::vector<wire::FrontendGauge>> gauges_;  // by agent, by frontend
  std::vector<std::uint64_t> tokens_;                     // by agent, this phase
  std::vector<std::string> frontends_;
  verdict::ClientLimits limits_;
  bool ended_ = false;
  std::uint64_t broken_intervals_ = 0;  // of this phase
  std::string last_broken_;             // agent and limits of the newest of them
  std::vector<Point> window_;           // the last few seconds, oldest first
  stats::LiveHistogram ttft_;
  stats::LiveHistogram tpot_;
};

}  // namespace tutti::console
