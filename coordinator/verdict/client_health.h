#pragma once

// judge_client(): was the client, not the server, the bottleneck? From the agents' health, second
// by second over the performance phase without warm-up and drain, to the limits that were broken:
// which agent, which metric, how far, when. Being client-bound is a mark: it never changes whether
// a run is valid or how the process exits. A value at its limit keeps it; one beyond breaks it.
// Pure; no owner.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "common/wire/messages.h"

namespace tutti::verdict {

struct ClientLimits {
  // p99 of issued − due. The larger of both counts: below a percent of what the server takes, the
  // client's part is not seen.
  base::Duration issue_lag_p99_max = base::Duration::millis(1);
  double issue_lag_share_of_ttft_max = 0.01;  // of the TTFT p50
  double cpu_thread_max = 0.8;                // of one core, any worker, and the session thread
  base::Duration cpu_interval_min = base::Duration::millis(500);  // shorter ones say little
  // One turn of a loop. Everything that is due on that thread waits this long.
  base::Duration turn_max = base::Duration::millis(100);
  std::uint64_t connect_failures_max = 0;  // for want of a port, descriptor or memory here
  std::uint64_t records_lost_max = 0;
  double in_flight_share_min = 0.99;     // of a closed loop's concurrency, mean
  double frontend_imbalance_max = 0.02;  // farthest from the mean, as a share of it
  // Of fewer values p99 is about their largest, and says nothing of the others.
  std::uint64_t issue_lag_count_min = 100;
  base::Duration clock_error_max = base::Duration::millis(1);
  // Lag and CPU: of the judged time, how much may lie in intervals beyond the limit.
  double time_beyond_max = 0.01;
};

// Time beyond the limits that forgive a part of it: issue lag (its limit of 1 ms, whatever the TTFT
// makes of it later), CPU of the busiest worker, CPU of the session thread.
using TimesBeyond = std::array<base::Duration, 3>;

// One interval of one agent. `from` and `to` of its health are on the coordinator's clock here.
struct HealthRow {
  std::uint32_t phase = 0;
  std::uint32_t in_flight = 0;
  wire::Health health{};
  std::uint32_t intervals = 1;  // more: merged from so many, and `health` has the worst of each
  TimesBeyond beyond{};         // of a merged row
};

struct ClientAgent {
  std::string name;
  std::vector<HealthRow> rows;                  // those to be judged, in time order
  std::optional<base::Duration> issue_lag_p99;  // over the whole phase, exact
  std::uint64_t issue_lag_count = 0;            // values behind it
  std::uint64_t records_lost = 0;
  base::Duration clock_error{};
  std::optional<double> mean_in_flight;  // from the first to the last issue of the run
  std::uint64_t slots = 0;               // 0: no closed loop, or one that was never filled
};

struct FrontendLoad {
  std::string url;
  double load = 0;  // what the balance keeps equal: mean in flight, or queries
};

struct ClientFacts {
  std::vector<ClientAgent> agents;
  std::optional<base::Duration> ttft_p50;
  std::optional<base::Duration> latency_p50;
  std::vector<FrontendLoad> frontends;  // empty: nothing that the balance keeps equal
  // Workers of all agents. Each balances for itself and in whole queries, so that a frontend may be
  // one query of each off the mean.
  std::uint64_t workers = 1;
  const char* load_unit = "queries";
};

struct Finding {
  std::string agent;   // empty: not one agent's
  std::string metric;  // issue_lag_p99, cpu_busiest_worker, turn_max, …
  std::string unit;    // of value and limit: ms, % of a core, …
  double value = 0;    // the worst
  double limit = 0;
  std::optional<base::Instant> at;  // begin of the interval it was in; nothing: of the whole phase
  base::Duration beyond{};          // time in intervals beyond the limit; of merged ones: at most
  std::string text;                 // one sentence for people
};

struct ClientVerdict {
  std::vector<Finding> findings;
  std::vector<std::string> unseen;  // agents without one judged interval: nothing is known of them
  base::Duration judged{};          // time in judged intervals, all agents
  base::Duration issue_lag_limit{};

  bool bound() const { return !findings.empty(); }
};

ClientVerdict judge_client(const ClientFacts& facts, const ClientLimits& limits);

base::Duration issue_lag_limit(const std::optional<base::Duration>& ttft_p50,
                               const ClientLimits& limits);

// How long `row` was beyond the limits that forgive.
TimesBeyond times_beyond(const HealthRow& row, const ClientLimits& limits);

// What one interval alone breaks, for a live view; without the agent's name.
std::vector<Finding> broken_in(const HealthRow& row, base::Duration issue_lag_limit,
                               const ClientLimits& limits);

}  // namespace tutti::verdict
