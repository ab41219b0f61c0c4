#pragma once

// The `settings` and `distributed` parts of Config: how much load, how it is paced, what is given
// up when, and which agents carry it. Plain values after reading (see config.h for what that
// promises); names and nesting are the file's own, so a field's path is its member path.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/vocabulary.h"
#include "common/spec/tree.h"

namespace tutti::spec {

enum class Pattern : std::uint8_t { kMaxThroughput, kPoisson, kConcurrency, kAgenticInference };
enum class GcMode : std::uint8_t { kDisabled, kRelaxed, kSystem };
enum class ProfilerEngine : std::uint8_t { kNone, kVllm };
enum class TokenSource : std::uint8_t { kAuto, kTokenizer, kUsage, kNone };
enum class TokenCounting : std::uint8_t { kAuto, kAgents, kCoordinator };
enum class HttpVersion : std::uint8_t { kHttp11, kHttp2 };
enum class OnAgentLoss : std::uint8_t { kStop, kContinue };

struct Runtime {
  std::optional<std::int64_t> min_issue_duration_ms;
  std::optional<std::int64_t> max_issue_duration_ms;
  std::optional<std::int64_t> n_samples_to_issue;
  std::uint64_t scheduler_random_seed = 42;
  std::uint64_t dataloader_random_seed = 42;
};

struct LoadPattern {
  Pattern type = Pattern::kMaxThroughput;
  std::optional<double> target_qps;                // set when poisson
  std::optional<std::int64_t> target_concurrency;  // set when concurrency or agentic
  bool use_legacy_loadgen_qps_metrics = true;
};

// Settings of the reference's message bus. Kept so that its files load and are written back; no
// part of tutti reads them.
struct Transport {
  std::string type = "zmq";
  std::int64_t recv_buffer_size = 16777216;
  std::int64_t send_buffer_size = 16777216;
  std::int64_t io_threads = 4;
  std::int64_t worker_io_threads = 1;
  std::int64_t high_water_mark = 0;
  std::int64_t linger = -1;
  std::int64_t immediate = 1;
};

struct ClientSettings {
  std::int64_t num_workers = -1;  // -1: automatic
  std::string log_level = "INFO";
  std::int64_t warmup_connections = -1;  // -1: automatic, 0: none
  double auto_warmup_budget_fraction = 0.25;
  std::int64_t max_concurrent_warmup_connects = 128;
  std::int64_t max_connections = -1;  // -1: as many as the ports allow
  Transport transport;
  bool stream_all_chunks = false;
  double worker_initialization_timeout = 60.0;
  double worker_graceful_shutdown_wait = 0.5;
  double worker_force_kill_timeout = 0.5;
  bool insecure = false;  // do not verify TLS certificates of frontends
  double max_idle_time = 4.0;
  std::int64_t min_required_connections = -1;
  GcMode worker_gc_mode = GcMode::kRelaxed;
};

struct Timeouts {  // seconds; nullopt: unlimited
  std::optional<double> run_timeout_s;
  std::optional<double> endpoint_response_idle_timeout_s;
  double interrupted_teardown_grace_s = 30.0;
  double service_ready_timeout_s = 30.0;
  std::optional<double> warmup_drain_timeout_s = 240.0;
  std::optional<double> performance_drain_timeout_s;
  std::optional<double> accuracy_drain_timeout_s;
  std::optional<double> metrics_drain_timeout_s;
  std::optional<double> steady_state_timeout_s = 600.0;
};

struct Warmup {
  bool enabled = false;
  std::optional<std::int64_t> n_requests;  // none: the data set once
  bool salt = false;
  bool drain = false;
  std::uint64_t warmup_random_seed = 42;
};

struct Profiling {
  ProfilerEngine engine = ProfilerEngine::kNone;
  std::vector<std::string> urls;  // empty: the endpoints
};

struct EarlyStopping {
  bool enabled = true;
};

struct SteadyState {
  bool enabled = false;
};

struct Settings {
  Runtime runtime;
  LoadPattern load_pattern;
  ClientSettings client;
  Timeouts timeouts;
  Warmup warmup;
  Profiling profiling;
  EarlyStopping early_stopping;
  SteadyState steady_state;
  std::int64_t metrics_tokenizer_workers = 4;
};

// Our one extension of the file: how the load is spread over agents.
struct Distributed {
  std::vector<std::string> agents;        // tcp://HOST:PORT of listening agents, to be dialled
  std::optional<std::string> listen;      // tcp://ADDRESS:PORT for agents that dial us
  std::optional<std::string> rendezvous;  // file on a shared folder that gets our addresses
  std::int64_t expect = 0;                // agents to wait for; 0: all of `agents`
  std::int64_t local_agents = 0;  // started here; 0: as many as fit, when no others are named
  std::int64_t workers = 0;       // I/O threads per agent; 0: automatic
  std::int64_t prefetch = -1;     // commands queued beyond the slots; -1: automatic
  base::Balance balance = base::Balance::kLeastInFlight;
  std::vector<std::int64_t> weights;           // weighted: one per endpoint
  std::optional<std::string> affinity_header;  // sent with the sample's number
  std::vector<std::string> source_addresses;   // each agent uses those of its own host
  std::int64_t connect_rate_max = 0;           // per agent and second; 0: only warming is bounded
  base::Way transport = base::Way::kAuto;      // kMulti where auto and only that will do
  HttpVersion http_version = HttpVersion::kHttp11;
  std::int64_t streams_per_connection = 100;  // HTTP/2
  std::optional<std::string> proxy;           // URL of the one on the way to the frontends; secret
  Tree headers;                               // null, or name → text; secret
  std::optional<std::string> user_password;   // USER:PASSWORD of basic authentication; secret
  std::optional<std::string> ca_file;         // PEM files, read by the coordinator
  std::optional<std::string> client_cert_file;
  std::optional<std::string> client_key_file;
  double connect_timeout_s = 10.0;
  std::optional<double> request_timeout_s;
  std::optional<std::string> keys;         // file with our key pair
  std::optional<std::string> agent_keys;   // file with the agents' public keys
  bool insecure = false;                   // allow other hosts without keys
  std::optional<double> gather_timeout_s;  // for agents to join; not set: service_ready_timeout_s
  OnAgentLoss on_agent_loss = OnAgentLoss::kStop;
  double heartbeat_s = 0.5;
  double lost_after_s = 2.5;
  TokenSource token_source = TokenSource::kAuto;
  TokenCounting token_counting = TokenCounting::kAuto;  // of replies, by a tokenizer
  double max_clock_error_ms = 5.0;
};

}  // namespace tutti::spec
