#pragma once

// RunFacts: everything about a run that its files tell and the ledger does not know: what was
// asked, when the phases began and ended, who took part, how it ended. Filled once by the mains,
// read by the report. All instants are the coordinator's monotonic clock. PromptSource gives the
// report the text of a prompt without giving it the data folder. Plain values, no owner.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/id.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"
#include "common/wire/messages.h"
#include "coordinator/ledger/clock_map.h"
#include "coordinator/report/health_series.h"

namespace tutti::report {

enum class RunState : std::uint8_t { kComplete, kInterrupted };

// kUsage: where the server reports usage, it is counted. kTokenizer: by the model's tokenizer.
// kNone: nothing is counted.
enum class TokenSource : std::uint8_t { kUsage, kNone, kTokenizer };

struct LoadPatternFacts {
  std::string type;  // as in the configuration: "concurrency", "poisson", "max_throughput", …
  std::optional<double> target_qps;
  std::optional<std::uint64_t> target_concurrency;
  bool use_legacy_qps_window = true;  // use_legacy_loadgen_qps_metrics; means something for poisson
};

struct WarmupFacts {
  bool enabled = false;
  std::optional<std::int64_t> n_requests;
  bool salt = false;
  bool drain = false;
  std::uint64_t random_seed = 42;
};

struct ConfigFacts {
  LoadPatternFacts load_pattern;
  WarmupFacts warmup;
  std::uint64_t scheduler_random_seed = 42;
  std::uint64_t dataloader_random_seed = 42;
  bool streaming = true;  // resolved: the server is asked for event streams
  bool early_stopping = true;
  bool stream_all_chunks = false;
  bool kernel_stamps = true;  // of replies: the kernel's receive time, else the time of the read
  std::string reach;  // how frontends are reached, for people; empty: directly, over HTTP/1.1
  TokenSource token_source = TokenSource::kUsage;
  std::string tokenizer;   // where it was found; kTokenizer only
  std::string model_hash;  // of its files (model::content_hash); empty: there is none
  base::Balance balance = base::Balance::kLeastInFlight;
  std::vector<std::string> endpoints;  // as configured, without secrets; index = Record::frontend
};

// What became of the conversations of a phase. Those begun are whole, failed, or cut short by a
// stop, a lost agent or a cancelled turn.
struct ConversationCount {
  std::uint64_t planned = 0;
  std::uint64_t begun = 0;
  std::uint64_t whole = 0;          // every turn was answered well
  std::uint64_t failed = 0;         // a turn failed, and ended it
  std::uint64_t turns_skipped = 0;  // recorded as failed and never sent, after such a turn
  std::uint64_t turns_withheld =
      0;  // of the issued prefix; neither issued nor missing, after a stop
};

struct PhaseFacts {
  std::string name;  // "warmup", "performance", or an accuracy data set's name
  base::PhaseKind kind = base::PhaseKind::kPerformance;
  base::Instant start_at{};  // first order could be due
  base::Instant stop_at{};   // drained; not set: the run ended inside this phase
  std::uint64_t issued = 0;
  base::Pacing pacing = base::Pacing::kTimed;
  base::SampleIndex first_row = 0;  // a record's sample minus this is the row of its data set
  bool plays = false;               // its queries are turns of conversations
  // What is issued from here on is not measured, as the load only falls; not set: all is.
  base::Instant tracked_until{};
  std::optional<ConversationCount>
      conversations{};  // of a phase that plays, when its plan is known

  bool tracks(base::Instant issued_at) const {
    return kind == base::PhaseKind::kPerformance &&
           (!tracked_until.is_set() || issued_at < tracked_until);
  }
};

// The worst of each gauge over all intervals; records_lost also between them.
struct AgentHealth {
  base::Duration issue_lag_p99{};
  base::Duration turn_max{};
  double cpu_busiest_worker = 0;
  std::uint32_t open_fds = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t records_lost = 0;
  std::uint32_t ring_fill_percent = 0;
  std::uint64_t unsent_batches = 0;
  base::Duration read_lag_p99{};
  std::uint64_t reads_unstamped = 0;
  base::Duration issue_lag_max{};
  base::Duration read_lag_max{};
  base::Duration turn_p99{};
  base::Duration session_turn_max{};
  std::uint64_t stalls = 0;  // of one interval, as all here
  double cpu_session = 0;
  std::uint32_t connections = 0;
  std::uint64_t connect_failures = 0;
  std::uint64_t spool_bytes = 0;
  std::uint64_t unspooled_batches = 0;
  std::uint64_t retransmits = 0;
  std::uint32_t sockets_in_use = 0;
  std::uint32_t sockets_time_wait = 0;
  double cpu_counting = 0;
  std::uint64_t counting_queued = 0;
  std::uint64_t counting_queued_bytes = 0;
  std::uint64_t replies_counted = 0;
  std::uint64_t replies_uncounted = 0;
  base::Duration counting_drain{};

  void see(const wire::Health& now) {
    issue_lag_p99 = std::max(issue_lag_p99, now.issue_lag_p99);
    turn_max = std::max(turn_max, now.turn_max);
    cpu_busiest_worker = std::max(cpu_busiest_worker, now.cpu_busiest_worker);
    open_fds = std::max(open_fds, now.open_fds);
    rss_bytes = std::max(rss_bytes, now.rss_bytes);
    records_lost = std::max(records_lost, now.records_lost);
    ring_fill_percent = std::max(ring_fill_percent, now.ring_fill_percent);
    unsent_batches = std::max(unsent_batches, now.unsent_batches);
    read_lag_p99 = std::max(read_lag_p99, now.read_lag_p99);
    reads_unstamped = std::max(reads_unstamped, now.reads_unstamped);
    issue_lag_max = std::max(issue_lag_max, now.issue_lag_max);
    read_lag_max = std::max(read_lag_max, now.read_lag_max);
    turn_p99 = std::max(turn_p99, now.turn_p99);
    session_turn_max = std::max(session_turn_max, now.session_turn_max);
    stalls = std::max(stalls, now.stalls);
    cpu_session = std::max(cpu_session, now.cpu_session);
    connections = std::max(connections, now.connections);
    connect_failures = std::max(connect_failures, now.connect_failures);
    spool_bytes = std::max(spool_bytes, now.spool_bytes);
    unspooled_batches = std::max(unspooled_batches, now.unspooled_batches);
    retransmits = std::max(retransmits, now.retransmits);
    sockets_in_use = std::max(sockets_in_use, now.sockets_in_use);
    sockets_time_wait = std::max(sockets_time_wait, now.sockets_time_wait);
    cpu_counting = std::max(cpu_counting, now.cpu_counting);
    counting_queued = std::max(counting_queued, now.counting_queued);
    counting_queued_bytes = std::max(counting_queued_bytes, now.counting_queued_bytes);
    replies_counted = std::max(replies_counted, now.replies_counted);
    replies_uncounted = std::max(replies_uncounted, now.replies_uncounted);
    counting_drain = std::max(counting_drain, now.counting_drain);
  }
};

// Index in RunFacts::agents = the agent's number in the ledger. The clock map is the ledger's.
struct AgentFacts {
  std::string name;
  std::string host;
  std::string version;
  std::uint32_t workers = 1;
  std::uint32_t slots = 0;     // C_i of the performance phase
  base::Duration clock_rtt{};  // of the exchange the offset comes from
  base::Instant lost_at{};     // not set: it stayed to the end
  AgentHealth health;
  std::uint64_t fd_limit = 0;
  std::uint32_t ephemeral_ports = 0;  // per source address and frontend
  HealthSeries health_series;         // intervals on the agent's own clock
};

struct RunFacts {
  base::Id run{};
  std::string version;               // ours
  std::int64_t started_wall_ns = 0;  // unix time, for people
  base::Instant started_at{};        // session start
  base::Instant ended_at{};          // session end
  RunState state = RunState::kComplete;
  bool interrupted_by_user = false;    // SIGINT or SIGTERM; state is then kInterrupted
  std::vector<std::string> watchdogs;  // sentences, see verdict::RunCount
  bool went_on = false;                // after losing agents (on_agent_loss: continue)
  ConfigFacts config;
  std::vector<PhaseFacts> phases;  // index = Record::phase
  std::vector<AgentFacts> agents;
  std::vector<std::string> budget;  // sentences: what the load took of the hosts
  // Not empty: the coordinator was lost and this comes from the agents' spools (rebuild.h).
  // Sentences on what is known. PhaseFacts::issued is then the highest recorded seq + 1, of which
  // nobody knows whether all were issued.
  std::vector<std::string> rebuilt;
};

// One prompt as it was sent. kNone: nothing is known of it.
struct Prompt {
  enum class Kind : std::uint8_t { kNone, kText, kMessages, kTokenIds };
  Kind kind = Kind::kNone;
  std::string value;  // kText: the text itself; else a compact JSON array
  std::string tools;  // kMessages: a JSON array, or empty
};

// Where in which conversation a query stands.
struct TurnName {
  std::string conversation;  // "" : in none
  std::uint32_t turn = 0;    // from 1, recorded answers counted in
};

class PromptSource {
 public:
  PromptSource() = default;
  PromptSource(const PromptSource&) = delete;
  PromptSource& operator=(const PromptSource&) = delete;
  virtual ~PromptSource() = default;
  // The prompt of one query, its salt included when its phase was salted (the implementer knows the
  // schedule, so the seq gives the salt). `out` is overwritten; its buffers are reused.
  virtual void prompt(std::uint32_t phase, base::Seq seq, base::SampleIndex sample,
                      Prompt& out) const = 0;
  virtual void turn([[maybe_unused]] std::uint32_t phase, [[maybe_unused]] base::Seq seq,
                    TurnName& out) const {
    out = {};
  }
  // Which sample an issued query was for whose record never came; nothing: not known. Only such
  // queries are asked for; they stand in the sample map, so that scoring sees what is missing.
  virtual std::optional<base::SampleIndex> sample_of([[maybe_unused]] std::uint32_t phase,
                                                     [[maybe_unused]] base::Seq seq) const {
    return std::nullopt;
  }
};

}  // namespace tutti::report
