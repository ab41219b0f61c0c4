// The schema's tables for how much load and when to give up: settings.*, and our own distributed.*.

#include "common/spec/schema_rows.h"

namespace tutti::spec {
namespace {

std::vector<Row> runtime_rows() {
  return {
      field("min_issue_duration_ms", &Runtime::min_issue_duration_ms)
          .about("Issue at least this long; sizes a Poisson run and is for Poisson only.")
          .duration()
          .above(0),
      field("max_issue_duration_ms", &Runtime::max_issue_duration_ms)
          .about("Stop issuing after this long; what is in flight still ends normally.")
          .duration()
          .above(0),
      field("n_samples_to_issue", &Runtime::n_samples_to_issue)
          .about("Requests of the performance phase; the data set once when null.")
          .above(0)
          .flag("num-samples"),
      field("scheduler_random_seed", &Runtime::scheduler_random_seed)
          .about("Seed of the Poisson gaps."),
      field("dataloader_random_seed", &Runtime::dataloader_random_seed)
          .about("Seed of the order of the samples."),
  };
}

std::vector<Row> load_pattern_rows() {
  return {
      field("type", &LoadPattern::type)
          .about("All at once, at random instants of a mean rate, a fixed number in flight, or a "
                 "fixed number of conversations played turn by turn.")
          .one_of({"max_throughput", "poisson", "concurrency", "agentic_inference"})
          .not_yet({"burst", "step"},
                   "use max_throughput, poisson, concurrency or agentic_inference"),
      field("target_qps", &LoadPattern::target_qps)
          .about("Mean requests per second; required by poisson.")
          .above(0),
      field("target_concurrency", &LoadPattern::target_concurrency)
          .about("Requests in flight, or conversations at a time; required by concurrency and "
                 "agentic_inference.")
          .above(0)
          .flag("concurrency"),
      field("use_legacy_loadgen_qps_metrics", &LoadPattern::use_legacy_loadgen_qps_metrics)
          .about("Count a Poisson run's rate the way the older LoadGen did."),
  };
}

std::vector<Row> transport_rows() {
  const std::string inert = "tutti has its own transport and sizes its buffers itself";
  return {
      field("type", &Transport::type).about("Message bus of the reference client.").inert(inert),
      field("recv_buffer_size", &Transport::recv_buffer_size)
          .about("Bytes.")
          .at_least(1)
          .inert(inert),
      field("send_buffer_size", &Transport::send_buffer_size)
          .about("Bytes.")
          .at_least(1)
          .inert(inert),
      field("io_threads", &Transport::io_threads).about("Threads.").at_least(1).inert(inert),
      field("worker_io_threads", &Transport::worker_io_threads)
          .about("Threads per worker.")
          .at_least(1)
          .inert(inert),
      field("high_water_mark", &Transport::high_water_mark)
          .about("Messages; 0 is unlimited.")
          .at_least(0)
          .inert(inert),
      field("linger", &Transport::linger).about("Milliseconds; -1 is for ever.").inert(inert),
      field("immediate", &Transport::immediate)
          .about("Queue only to connected peers.")
          .at_least(0)
          .at_most(1)
          .inert(inert),
  };
}

// Names the reference keeps for itself; files that hold them load, and they mean nothing.
std::vector<Row> client_internal_rows() {
  std::vector<Row> rows;
  for (const char* name : {"endpoint_urls", "api_type", "api_key", "event_logs_dir", "cpu_affinity",
                           "adapter", "accumulator"}) {
    rows.push_back(ignored(name).inert("internal to the reference client; use endpoint_config"));
  }
  return rows;
}

std::vector<Row> connection_rows() {
  return {
      field("num_workers", &ClientSettings::num_workers)
          .about("I/O threads in all; -1 takes as many as the agents' cores allow.")
          .at_least(-1)
          .not_zero()
          .flag("workers")
          .flag("num-workers"),
      field("log_level", &ClientSettings::log_level)
          .about("Log level of the reference's workers.")
          .inert("use -vv for debug lines"),
      field("warmup_connections", &ClientSettings::warmup_connections)
          .about("Connections opened before the first request; -1 chooses, 0 opens none.")
          .at_least(-1),
      field("auto_warmup_budget_fraction", &ClientSettings::auto_warmup_budget_fraction)
          .about("Share of the connection budget that -1 opens.")
          .above(0)
          .at_most(1)
          .inert("-1 opens what the agents' slots need"),
      field("max_concurrent_warmup_connects", &ClientSettings::max_concurrent_warmup_connects)
          .about("Connection attempts at the same time while warming.")
          .at_least(1)
          .flag("max-concurrent-warmup-connects")
          .inert("agents bound their own rate of new connections"),
      field("max_connections", &ClientSettings::max_connections)
          .about("Most connections of the whole run; -1 allows what the ports allow.")
          .at_least(-1)
          .not_zero()
          .flag("max-connections"),
  };
}

std::vector<Row> client_rows() {
  const std::string processes = "agents are started and stopped by other rules";
  return together(
      connection_rows(),
      section(heading("transport").about("Message bus between the reference's processes."),
              &ClientSettings::transport, transport_rows()),
      std::vector<Row>{
          field("stream_all_chunks", &ClientSettings::stream_all_chunks)
              .about("Record the instant of every chunk, not only of first and last."),
          field("worker_initialization_timeout", &ClientSettings::worker_initialization_timeout)
              .about("Seconds a worker may take to start.")
              .inert(processes),
          field("worker_graceful_shutdown_wait", &ClientSettings::worker_graceful_shutdown_wait)
              .about("Seconds a worker may take to stop.")
              .inert(processes),
          field("worker_force_kill_timeout", &ClientSettings::worker_force_kill_timeout)
              .about("Seconds until a worker is killed.")
              .inert(processes),
          field("insecure", &ClientSettings::insecure)
              .about("Do not verify the frontends' TLS certificates.")
              .flag("insecure"),
          field("max_idle_time", &ClientSettings::max_idle_time)
              .about("Seconds after which an idle connection is not used again."),
          field("min_required_connections", &ClientSettings::min_required_connections)
              .about("Warn when fewer connections are possible; -1 is an eighth of the port range.")
              .inert("the pre-flight check compares ports and descriptors with the load"),
          field("worker_gc_mode", &ClientSettings::worker_gc_mode)
              .about("Garbage collection of the reference's workers.")
              .one_of({"disabled", "relaxed", "system"})
              .inert("there is no garbage collector here"),
      },
      client_internal_rows());
}

std::vector<Row> timeouts_rows() {
  return {
      field("run_timeout_s", &Timeouts::run_timeout_s)
          .about("Whole-run watchdog: firing aborts the run (exit 4).")
          .above(0)
          .flag("timeout"),
      field("endpoint_response_idle_timeout_s", &Timeouts::endpoint_response_idle_timeout_s)
          .about(
              "Abort when requests are in flight and no byte has come for this long; 300 or more "
              "is wise.")
          .above(0)
          .flag("endpoint-response-idle-timeout"),
      field("interrupted_teardown_grace_s", &Timeouts::interrupted_teardown_grace_s)
          .about("How long an interrupted run may take to write its files.")
          .above(0),
      field("service_ready_timeout_s", &Timeouts::service_ready_timeout_s)
          .about("How long agents may take to join and get ready.")
          .above(0)
          .flag("service-ready-timeout"),
      field("warmup_drain_timeout_s", &Timeouts::warmup_drain_timeout_s)
          .about("Wait for the last warm-up replies; null waits for ever.")
          .above(0)
          .flag("warmup-drain-timeout"),
      field("performance_drain_timeout_s", &Timeouts::performance_drain_timeout_s)
          .about("Wait for the last measured replies; null waits for ever.")
          .above(0)
          .flag("performance-drain-timeout"),
      field("accuracy_drain_timeout_s", &Timeouts::accuracy_drain_timeout_s)
          .about("Wait for the last accuracy replies.")
          .above(0)
          .flag("accuracy-drain-timeout"),
      field("metrics_drain_timeout_s", &Timeouts::metrics_drain_timeout_s)
          .about(
              "Most time for counting tokens after the run; what is left is reported as pending. "
              "Agents that count wait as long, or 60 s, for their last counts.")
          .above(0)
          .flag("metrics-drain-timeout"),
      field("steady_state_timeout_s", &Timeouts::steady_state_timeout_s)
          .about("Wait for the reference's steady-state step.")
          .above(0)
          .inert("there is no steady-state step yet"),
  };
}

std::vector<Row> warmup_rows() {
  return {
      field("enabled", &Warmup::enabled)
          .about("Send requests before the measured phase; they never enter the results.")
          .flag("warmup"),
      field("n_requests", &Warmup::n_requests)
          .about("Warm-up requests; the data set once when null.")
          .above(0)
          .flag("warmup-requests"),
      field("salt", &Warmup::salt)
          .about("Make every warm-up prompt unique, so that the server's prefix cache stays cold.")
          .flag("warmup-salt"),
      field("drain", &Warmup::drain)
          .about("Wait for every warm-up reply before the measured phase. tutti always does.")
          .flag("warmup-drain"),
      field("warmup_random_seed", &Warmup::warmup_random_seed)
          .about("Seed of gaps (W), order (W+1) and salts (W+2) of the warm-up.")
          .flag("warmup-seed"),
  };
}

std::vector<Row> profiling_rows() {
  return {
      field("engine", &Profiling::engine)
          .about("Start and stop the server's profiler around the measured phase.")
          .one_of({"", "vllm"})
          .flag("profile")
          .refused("profiling is not supported yet; start the profiler yourself, or set null"),
      field("urls", &Profiling::urls)
          .about("Base URLs of the profiled servers; the endpoints when null.")
          .nullable()
          .flag("profile-urls")
          .refused("profiling is not supported yet; remove the list"),
  };
}

}  // namespace

std::vector<Row> settings_rows() {
  return together(
      section(heading("runtime").about("How long, how many, which seeds."), &Settings::runtime,
              runtime_rows()),
      section(heading("load_pattern").about("When requests are issued."), &Settings::load_pattern,
              load_pattern_rows()),
      section(heading("client").about("Workers and connections."), &Settings::client,
              client_rows()),
      section(heading("timeouts").about("When to give up; seconds."), &Settings::timeouts,
              timeouts_rows()),
      section(heading("warmup").about("Requests before the measured phase."), &Settings::warmup,
              warmup_rows()),
      section(heading("profiling").about("The server's profiler."), &Settings::profiling,
              profiling_rows()),
      section(heading("early_stopping").about("Confidence of the percentiles."),
              &Settings::early_stopping,
              {field("enabled", &EarlyStopping::enabled)
                   .about("Add MLPerf's early-stopping estimates to the report.")
                   .flag("early-stopping")}),
      section(heading("steady_state").about("Steady-state window of the reference client."),
              &Settings::steady_state,
              {field("enabled", &SteadyState::enabled)
                   .about("Find the steady-state window after the run.")
                   .flag("steady-state")
                   .inert("there is no steady-state step yet; the report covers the whole phase")}),
      std::vector<Row>{field("metrics_tokenizer_workers", &Settings::metrics_tokenizer_workers)
                           .about("Threads that count tokens after the run; 0: one per core.")
                           .at_least(0)});
}

std::vector<Row> distributed_rows() {
  return {
      field("agents", &Distributed::agents)
          .about("Listening agents to dial, each tcp://HOST:PORT; as a flag, separated by commas "
                 "or repeated.")
          .flag("agents")
          .commas(),
      field("listen", &Distributed::listen)
          .about("Where agents may dial in, e.g. tcp://0.0.0.0:7777.")
          .flag("listen"),
      field("rendezvous", &Distributed::rendezvous)
          .about("File on a shared folder where agents find the addresses of `listen`; it is "
                 "removed when the run ends.")
          .flag("rendezvous"),
      field("expect", &Distributed::expect)
          .about("Remote agents to wait for, dialled ones included; 0 means those in `agents`.")
          .at_least(0)
          .at_most(10'000)
          .flag("expect-agents"),
      field("local_agents", &Distributed::local_agents)
          .about("Agents to start on this host; 0 chooses when no others are named, else none.")
          .at_least(0)
          .at_most(1'024)
          .flag("local-agents"),
      field("workers", &Distributed::workers)
          .about("I/O threads per agent; 0 derives them from num_workers and the agent's cores.")
          .at_least(0)
          .at_most(1'024)
          .flag("agent-workers"),
      field("prefetch", &Distributed::prefetch)
          .about(
              "Commands an agent holds beyond its free slots: -1 follows the reply rate, 0 gives "
              "strict one-for-one credits.")
          .at_least(-1)
          .at_most(1'000'000)
          .flag("prefetch"),
      field("balance", &Distributed::balance)
          .about("Which frontend gets the next request; pinned is the reference's fixed share per "
                 "worker, weighted follows `weights`, affinity always sends a sample to the same "
                 "one.")
          .one_of({"least_in_flight", "round_robin", "pinned", "weighted", "affinity"})
          .flag("balance"),
      field("weights", &Distributed::weights)
          .about("For balance weighted: a whole number per endpoint, in their order; as a flag, "
                 "separated by commas.")
          .flag("weights")
          .commas(),
      field("affinity_header", &Distributed::affinity_header)
          .about("Name of a header, such as X-Session-ID, in which every request says its sample, "
                 "for routers that keep a session on one server.")
          .flag("affinity-header"),
      field("source_addresses", &Distributed::source_addresses)
          .about("Addresses that connections come from; each agent uses those of its own host. As "
                 "a flag, separated by commas.")
          .flag("source-addresses")
          .commas(),
      field("connect_rate_max", &Distributed::connect_rate_max)
          .about("New connections per second of each agent, at any time; 0 bounds only the warming "
                 "of connections, at 1500.")
          .at_least(0)
          .at_most(1'000'000)
          .flag("connect-rate-max"),
      field("transport", &Distributed::transport)
          .about("How agents talk to frontends, http or https: direct frames HTTP/1.1 itself and "
                 "stamps replies with the kernel's receive time; multi is libcurl; auto is direct, "
                 "and "
                 "multi with a proxy or HTTP/2.")
          .one_of({"auto", "direct", "multi"})
          .flag("transport"),
      field("http_version", &Distributed::http_version)
          .about("What frontends are spoken to: http2 sends many requests over one connection, to "
                 "https frontends by ALPN and to http ones at once (prior knowledge); a frontend "
                 "that answers in another version fails.")
          .one_of({"http1.1", "http2"})
          .flag("http-version"),
      field("streams_per_connection", &Distributed::streams_per_connection)
          .about("HTTP/2: most requests at once over one connection; fewer where the frontend says "
                 "so.")
          .at_least(1)
          .at_most(1'000)
          .flag("streams-per-connection"),
      field("proxy", &Distributed::proxy)
          .about("Proxy on the way to all frontends: http, https, socks5 or socks5h "
                 "(names resolved there)://USER:PASSWORD@HOST:PORT, the login where it wants one. "
                 "Proxies of the environment are never followed.")
          .flag("proxy"),
      field("headers", &Distributed::headers)
          .about("Headers of every request besides tutti's own, as name: text. Their values are "
                 "treated as secrets; better written as \"${NAME}\" than in plain text.")
          .flag("headers"),
      field("user_password", &Distributed::user_password)
          .about(
              "USER:PASSWORD, sent as basic authentication instead of an api_key. Better written "
              "as \"${NAME}\" than in plain text.")
          .flag("user-password"),
      field("ca_file", &Distributed::ca_file)
          .about("PEM file with the certificates to trust, and no others, for https frontends and "
                 "an https proxy. Read here and sent to the agents, as are the next two.")
          .flag("ca-file"),
      field("client_cert_file", &Distributed::client_cert_file)
          .about(
              "PEM file with the certificate that https frontends are shown, and those above it. "
              "Needs client_key_file.")
          .flag("client-cert-file"),
      field("client_key_file", &Distributed::client_key_file)
          .about("PEM file with the key of client_cert_file, without a passphrase.")
          .flag("client-key-file"),
      field("connect_timeout_s", &Distributed::connect_timeout_s)
          .about("Longest wait for a connection to a frontend.")
          .above(0)
          .flag("connect-timeout"),
      field("request_timeout_s", &Distributed::request_timeout_s)
          .about("Longest life of one request, from sent to done; null sets no limit.")
          .above(0)
          .flag("request-timeout"),
      field("keys", &Distributed::keys)
          .about("File with this coordinator's key pair (tutti keys new FILE): traffic with agents "
                 "is encrypted, and only agents of agent_keys are let in. Needs agent_keys.")
          .flag("keys"),
      field("agent_keys", &Distributed::agent_keys)
          .about("File with the agents' public keys, one a line (their .pub files one after "
                 "another). With `agents`: one key for all, or one for each in order.")
          .flag("agent-keys"),
      field("insecure", &Distributed::insecure)
          .about("Allow agents on other hosts without keys: anyone who reaches the port can join.")
          .flag("insecure-agents"),
      field("gather_timeout_s", &Distributed::gather_timeout_s)
          .about("How long agents may take to join; null takes timeouts.service_ready_timeout_s. "
                 "Launchers that start agents slowly give it.")
          .above(0)
          .flag("gather-timeout"),
      field("on_agent_loss", &Distributed::on_agent_loss)
          .about("What a lost agent does to the run, which is INVALID either way and keeps its "
                 "records: stop ends it; continue goes on with the agents that are left, each with "
                 "the slots it had, and ends when none is left. Before the first phase a lost "
                 "agent always ends the run.")
          .one_of({"stop", "continue"})
          .flag("on-agent-loss"),
      field("heartbeat_s", &Distributed::heartbeat_s)
          .about("How often coordinator and agents show that they are alive.")
          .at_least(0.01)
          .at_most(60),
      field("lost_after_s", &Distributed::lost_after_s)
          .about("Silence after which the other side is lost; at least twice heartbeat_s. While "
                 "agents prepare, 30 s at least.")
          .at_least(0.02)
          .at_most(3'600),
      field("token_source", &Distributed::token_source)
          .about("How tokens are counted: tokenizer uses the model's, from "
                 "model_params.tokenizer_name "
                 "or its name; auto does so where it is on this host; usage asks the server "
                 "(stream_options.include_usage); none counts nothing.")
          .one_of({"auto", "tokenizer", "usage", "none"})
          .flag("token-source"),
      field("token_counting", &Distributed::token_counting)
          .about("Where a tokenizer counts replies: agents do it while they run, beside their "
                 "workers, and get the tokenizer's files from here; coordinator does it on this "
                 "host after the run; auto is agents where their hosts have a core for every "
                 "worker, session and counting thread of them, and twice the memory of their "
                 "tokenizers, else coordinator.")
          .one_of({"auto", "agents", "coordinator"})
          .flag("token-counting"),
      field("max_clock_error_ms", &Distributed::max_clock_error_ms)
          .about("Largest error bound of an agent's clock against ours that a run may have.")
          .above(0)
          .flag("max-clock-error-ms"),
  };
}

}  // namespace tutti::spec
