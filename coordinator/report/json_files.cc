// metrics/final_snapshot.json and performance/result_summary.json.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/report/client_report.h"
#include "coordinator/report/report.h"

namespace tutti::report {
namespace {

using Json = nlohmann::ordered_json;

// Non-finite doubles become null, as JSON has no word for them.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json number(const stats::Number& value) {
  return std::holds_alternative<std::int64_t>(value) ? Json(std::get<std::int64_t>(value))
                                                     : finite(std::get<double>(value));
}

Json percentiles(const stats::SeriesStat& stat) {
  Json out = Json::object();
  for (std::size_t i = 0; i < stats::kPercentileGrid.size(); ++i) {
    out[std::string(stats::kPercentileGrid[i].key)] = finite(stat.percentiles[i]);
  }
  return out;
}

Json estimates(const stats::Estimates& values) {
  Json out = Json::object();
  for (std::size_t i = 0; i < stats::kEarlyStoppingCount; ++i) {
    out[std::string(stats::kEarlyStoppingGrid[i].key)] =
        values[i] ? finite(*values[i]) : Json(nullptr);
  }
  return out;
}

Json counter(std::string_view name, std::int64_t value) {
  return Json{{"type", "counter"}, {"name", name}, {"value", value}};
}

// In metrics/final_snapshot.json, after "type" and "name".
void put_snapshot_series(Json& out, const stats::SeriesStat& stat) {
  out["count"] = stat.count;
  out["total"] = number(stat.total);
  out["min"] = number(stat.min);
  out["max"] = number(stat.max);
  out["sum_sq"] = stat.count == 0 ? Json(0) : finite(stat.sum_sq);
  out["percentiles"] = percentiles(stat);
  if (stat.early_stopping) {
    out["early_stopping_percentiles"] = estimates(*stat.early_stopping);
  }
  Json histogram = Json::array();
  for (const stats::Bucket& bucket : stat.histogram) {
    histogram.push_back({{finite(bucket.low), finite(bucket.high)}, bucket.count});
  }
  out["histogram"] = std::move(histogram);
}

// In result_summary.json. An empty series is {}, or the all-null estimates alone when they are on.
Json summary_series(const stats::SeriesStat& stat) {
  Json out = Json::object();
  if (stat.count > 0) {
    out["total"] = number(stat.total);
    out["min"] = number(stat.min);
    out["max"] = number(stat.max);
    out["median"] = finite(stat.median());
    out["avg"] = finite(stat.avg);
    out["std_dev"] = finite(stat.std_dev);
    out["percentiles"] = percentiles(stat);
  }
  if (stat.early_stopping) {
    out["early_stopping_percentiles"] = estimates(*stat.early_stopping);
  }
  if (stat.count > 0) {
    Json buckets = Json::array();
    Json counts = Json::array();
    for (const stats::Bucket& bucket : stat.histogram) {
      buckets.push_back({finite(bucket.low), finite(bucket.high)});
      counts.push_back(bucket.count);
    }
    out["histogram"] = {{"buckets", std::move(buckets)}, {"counts", std::move(counts)}};
  }
  return out;
}

Json series(std::string_view name, const stats::SeriesStat& stat) {
  Json out{{"type", "series"}, {"name", name}};
  put_snapshot_series(out, stat);
  return out;
}

// Gaps in ns. `edges` and `counts` are the histogram's cells that were hit, [low, high).
Json itl_json(const Itl& itl) {
  using stats::LiveHistogram;
  Json out{{"source", itl.exact ? "exact" : "histogram"},
           {"count", itl.count},
           {"counted", itl.counted},
           {"total", itl.total_ns},
           {"avg", itl.count == 0 ? Json(nullptr) : finite(itl.mean_ns())},
           {"relative_error", itl.relative_error()}};
  if (itl.counted > 0) {
    out["min"] = itl.min_ns;
    out["max"] = itl.max_ns;
    out["median"] = itl.median_ns();
    Json grid = Json::object();
    for (std::size_t i = 0; i < stats::kPercentileGrid.size(); ++i) {
      grid[std::string(stats::kPercentileGrid[i].key)] = itl.percentiles[i];
    }
    out["percentiles"] = std::move(grid);
  }
  Json edges = Json::array();
  Json counts = Json::array();
  for (const auto& [cell, count] : itl.cells) {
    const bool last = cell + 1U == LiveHistogram::kCells;
    edges.push_back({LiveHistogram::low_of(cell),
                     last ? LiveHistogram::kValueMax : LiveHistogram::low_of(cell + 1U)});
    counts.push_back(count);
  }
  out["edges"] = itl.exact ? Json(nullptr) : std::move(edges);
  out["counts"] = itl.exact ? Json(nullptr) : std::move(counts);
  return out;
}

Json setup_tail(const std::optional<SetupTail>& tail) {
  return tail ? Json{{"count", tail->count},
                     {"min", tail->min_us},
                     {"p50", tail->p50_us},
                     {"p99", tail->p99_us},
                     {"max", tail->max_us}}
              : Json(nullptr);
}

template <class T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// 2026-10-02T10:00:00.123456789Z
std::string utc_text(std::int64_t unix_ns) {
  const std::time_t seconds = unix_ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     unix_ns % 1'000'000'000);
}

Json run_config(const ConfigFacts& config) {
  const LoadPatternFacts& pattern = config.load_pattern;
  Json load{{"type", pattern.type},
            {"target_qps", optional(pattern.target_qps)},
            {"target_concurrency", optional(pattern.target_concurrency)}};
  if (pattern.type == "poisson") {
    load["use_legacy_loadgen_qps_metrics"] = pattern.use_legacy_qps_window;
  }
  const WarmupFacts& warmup = config.warmup;
  return Json{{"load_pattern", std::move(load)},
              {"warmup",
               {{"enabled", warmup.enabled},
                {"n_requests", optional(warmup.n_requests)},
                {"salt", warmup.salt},
                {"drain", warmup.drain},
                {"warmup_random_seed", warmup.random_seed}}},
              {"scheduler_random_seed", config.scheduler_random_seed},
              {"dataloader_random_seed", config.dataloader_random_seed}};
}

Json tail(const std::optional<Tail>& value) {
  return value ? Json{{"p50", value->p50_ns}, {"p99", value->p99_ns}, {"max", value->max_ns}}
               : Json(nullptr);
}

void put_part(Json& out, const Part& part) {
  out["completed"] = part.completed;
  out["failed"] = part.failed;
  out["output_tokens"] = part.output_tokens;
  out["connections_opened"] = part.connections_opened;
  out["ttft_ns"] = tail(part.ttft);
  out["latency_ns"] = tail(part.latency);
  out["issued_minus_due_ns"] = tail(part.issue_lag);
  out["sent_minus_issued_ns"] = tail(part.send_lag);
}

// Seconds of the run; null when it did not happen.
Json since_start(const RunFacts& facts, base::Instant at) {
  return at.is_set() ? Json((at - facts.started_at).to_seconds()) : Json(nullptr);
}

Json verdict_json(const verdict::Verdict& verdict) {
  Json reasons = Json::array();
  for (const verdict::Reason& reason : verdict.reasons) {
    reasons.push_back({{"weight", reason.weight == verdict::Weight::kFailure ? "failure" : "flaw"},
                       {"text", reason.text}});
  }
  return Json{{"valid", verdict.valid},
              {"exit_code", static_cast<int>(verdict.exit_code)},
              {"reasons", std::move(reasons)},
              {"warnings", verdict.warnings}};
}

std::string phase_name(const RunFacts& facts, std::size_t phase) {
  return phase < facts.phases.size() ? facts.phases[phase].name : fmt::format("phase {}", phase);
}

Json endpoint_name(const RunFacts& facts, std::size_t endpoint) {
  return endpoint < facts.config.endpoints.size() ? Json(facts.config.endpoints[endpoint])
                                                  : Json(nullptr);
}

Json failures_json(const Report& report) {
  Json out = Json::array();
  for (const FailureCount& failure : report.breakdown.failures) {
    const FailureKind& kind = failure.kind;
    out.push_back({{"phase", phase_name(report.facts, kind.phase)},
                   {"cause", failure_text(kind.failure, kind.http_status)},
                   {"endpoint", endpoint_name(report.facts, kind.frontend)},
                   {"count", failure.count},
                   {"example", failure.example}});
  }
  return out;
}

// What was known of the offset at one instant; null: nothing was measured (a rebuilt run).
Json knot_json(const RunFacts& facts, const ledger::ClockMap& clock, double part) {
  if (clock.knots.empty()) {
    return nullptr;
  }
  const auto last = static_cast<double>(clock.knots.size() - 1);
  const ledger::ClockKnot& knot = clock.knots[static_cast<std::size_t>(last * part)];
  return Json{{"at_s", (knot.at + knot.offset - facts.started_at).to_seconds()},
              {"offset_ns", knot.offset.ns},
              {"error_ns", knot.error.ns}};
}

Json clock_json(const RunFacts& facts, const ledger::ClockMap& clock, base::Duration rtt) {
  return Json{{"offset_ns", clock.offset.ns},
              {"error_ns", clock.error.ns},
              {"rtt_ns", rtt.ns},
              {"exchanges", clock.exchanges},
              {"drift_ppm", clock.drift * 1e6},
              {"drift_error_ppm", clock.drift_error * 1e6},
              {"before", knot_json(facts, clock, 0)},
              {"during", knot_json(facts, clock, 0.5)},
              {"after", knot_json(facts, clock, 1)}};
}

Json agent_json(const Report& report, std::size_t i) {
  const AgentFacts& agent = report.facts.agents[i];
  const ledger::ClockMap clock = i < report.clocks.size() ? report.clocks[i] : ledger::ClockMap{};
  Json out{{"number", i},
           {"name", agent.name},
           {"host", agent.host},
           {"version", agent.version},
           {"workers", agent.workers},
           {"slots", agent.slots},
           {"lost_at_s", nullptr},
           {"clock", clock_json(report.facts, clock, agent.clock_rtt)}};
  if (agent.lost_at.is_set()) {
    out["lost_at_s"] = (agent.lost_at - report.facts.started_at).to_seconds();
  }
  put_part(out, i < report.breakdown.agents.size() ? report.breakdown.agents[i] : Part{});
  const AgentHealth& health = agent.health;
  out["worst"] = {{"issue_lag_p99_ns", health.issue_lag_p99.ns},
                  {"turn_max_ns", health.turn_max.ns},
                  {"cpu_busiest_worker", finite(health.cpu_busiest_worker)},
                  {"open_fds", health.open_fds},
                  {"rss_bytes", health.rss_bytes},
                  {"records_lost", health.records_lost},
                  {"ring_fill_percent", health.ring_fill_percent},
                  {"unsent_batches", health.unsent_batches},
                  {"read_lag_p99_ns", health.read_lag_p99.ns},
                  {"reads_unstamped", health.reads_unstamped},
                  {"issue_lag_max_ns", health.issue_lag_max.ns},
                  {"read_lag_max_ns", health.read_lag_max.ns},
                  {"turn_p99_ns", health.turn_p99.ns},
                  {"stalls", health.stalls},
                  {"session_turn_max_ns", health.session_turn_max.ns},
                  {"cpu_session", finite(health.cpu_session)},
                  {"connections", health.connections},
                  {"connect_failures", health.connect_failures},
                  {"spool_bytes", health.spool_bytes},
                  {"unspooled_batches", health.unspooled_batches},
                  {"host_tcp_retransmits", health.retransmits},
                  {"host_tcp_sockets", health.sockets_in_use},
                  {"host_tcp_time_wait", health.sockets_time_wait},
                  {"cpu_counting", finite(health.cpu_counting)},
                  {"counting_queued", health.counting_queued},
                  {"counting_queued_bytes", health.counting_queued_bytes}};
  out["replies_counted"] = health.replies_counted;
  out["replies_left_uncounted"] = health.replies_uncounted;
  out["counting_drain_s"] = health.counting_drain.to_seconds();
  Json at = Json::object();
  for (const WorstAt& worst : worst_instants(agent, clock)) {
    at[worst.key] = (worst.at - report.facts.started_at).to_seconds();
  }
  out["worst_at_s"] = std::move(at);
  out["fd_limit"] = agent.fd_limit;
  out["ephemeral_ports"] = agent.ephemeral_ports;
  out["health_intervals_per_row"] = agent.health_series.intervals_per_row();
  return out;
}

Json limits_json(const Report& report) {
  const verdict::ClientLimits& limits = report.client_limits;
  return Json{{"issue_lag_p99_ms", report.client.issue_lag_limit.to_seconds() * 1e3},
              {"issue_lag_count_min", limits.issue_lag_count_min},
              {"cpu_thread_percent", limits.cpu_thread_max * 100},
              {"turn_max_ms", limits.turn_max.to_seconds() * 1e3},
              {"connect_failures", limits.connect_failures_max},
              {"records_lost", limits.records_lost_max},
              {"in_flight_percent_min", limits.in_flight_share_min * 100},
              {"frontend_imbalance_percent", limits.frontend_imbalance_max * 100},
              {"clock_error_ms", limits.clock_error_max.to_seconds() * 1e3},
              {"time_beyond_percent", limits.time_beyond_max * 100}};
}

Json client_health_json(const Report& report) {
  const verdict::ClientVerdict& client = report.client;
  Json findings = Json::array();
  for (const verdict::Finding& finding : client.findings) {
    const auto at_s =
        finding.at ? Json((*finding.at - report.facts.started_at).to_seconds()) : Json(nullptr);
    findings.push_back({{"agent", finding.agent.empty() ? Json(nullptr) : Json(finding.agent)},
                        {"metric", finding.metric},
                        {"value", finite(finding.value)},
                        {"limit", finite(finding.limit)},
                        {"unit", finding.unit},
                        {"at_s", at_s},
                        {"beyond_s", finding.beyond.to_seconds()},
                        {"text", finding.text}});
  }
  const bool known = client.bound() || client.judged.ns > 0;
  return Json{{"client_bound", known ? Json(client.bound()) : Json(nullptr)},
              {"findings", std::move(findings)},
              {"judged_s", client.judged.to_seconds()},
              {"agents_not_known", client.unseen},
              {"limits", limits_json(report)},
              {"file", "performance/client_health.csv"}};
}

Json conversations_json(const ConversationCount& count) {
  return Json{{"planned", count.planned},
              {"begun", count.begun},
              {"whole", count.whole},
              {"failed", count.failed},
              {"turns_skipped", count.turns_skipped},
              {"turns_withheld", count.turns_withheld}};
}

Json distributed_json(const Report& report) {
  Json agents = Json::array();
  for (std::size_t i = 0; i < report.facts.agents.size(); ++i) {
    agents.push_back(agent_json(report, i));
  }
  Json endpoints = Json::array();
  for (std::size_t i = 0; i < report.breakdown.frontends.size(); ++i) {
    Json endpoint = Json::object();
    endpoint["url"] = endpoint_name(report.facts, i);
    const Part& part = report.breakdown.frontends[i];
    put_part(endpoint, part);
    endpoint["first_failure_s"] = since_start(report.facts, part.first_failure_at);
    endpoint["last_failure_s"] = since_start(report.facts, part.last_failure_at);
    endpoint["last_success_s"] = since_start(report.facts, part.last_success_at);
    endpoints.push_back(std::move(endpoint));
  }
  Json phases = Json::array();
  const bool rebuilt = !report.facts.rebuilt.empty();
  for (const verdict::PhaseCount& phase : report.count.phases) {
    phases.push_back({{"name", phase.name},
                      {"issued", phase.issued},
                      {"records", phase.completed},
                      {"failed", phase.failed},
                      {"missing", rebuilt ? Json(nullptr) : Json(phase.missing)},
                      {"doubled", phase.doubled},
                      {"never_issued", rebuilt ? Json(nullptr) : Json(phase.never_issued)}});
    const std::size_t place = phases.size() - 1;
    if (place < report.facts.phases.size() && report.facts.phases[place].conversations) {
      phases.back()["conversations"] =
          conversations_json(*report.facts.phases[place].conversations);
    }
  }
  return Json{{"agents", std::move(agents)},
              {"endpoints", std::move(endpoints)},
              {"phases", std::move(phases)},
              {"budget", report.facts.budget},
              {"repeated_batches", report.repeated_batches},
              {"stamps", report.facts.config.kernel_stamps ? "kernel receive" : "read"},
              {"reached", report.facts.config.reach},
              {"mean_in_flight", optional(report.breakdown.mean_in_flight)},
              {"resent", report.breakdown.resent},
              {"malformed_events", report.breakdown.malformed_events},
              {"issued_minus_due_ns", tail(report.breakdown.all.issue_lag)},
              {"slot_fills_left_out_of_it", report.breakdown.fills},
              {"slot_fill_ns", tail(report.breakdown.fill)},
              {"client_health", client_health_json(report)},
              {"sent_minus_issued_ns", tail(report.breakdown.all.send_lag)}};
}

void put_reference_part(Json& out, const Report& report) {
  const Snapshot& snapshot = report.snapshot;
  const Summary& summary = report.summary;
  out["version"] = report.facts.version;
  out["git_sha"] = nullptr;  // a commit of the reference client, which this is not
  out["test_started_at"] = report.facts.started_wall_ns;
  out["n_samples_issued"] = summary.n_issued;
  out["n_samples_completed"] = summary.n_completed;
  out["n_samples_failed"] = summary.n_failed;
  out["n_samples_succeeded"] = summary.n_succeeded;
  out["n_samples_dropped"] = summary.n_dropped;
  out["duration_ns"] = optional(summary.duration_ns);
  out["state"] = snapshot.state == RunState::kComplete ? "complete" : "interrupted";
  out["complete"] = snapshot.complete();
  out["ttft"] = snapshot.streaming ? summary_series(snapshot.ttft) : Json::object();
  out["tpot"] = snapshot.streaming ? summary_series(snapshot.tpot) : Json::object();
  out["latency"] = summary_series(snapshot.latency);
  out["output_sequence_lengths"] = summary_series(snapshot.osl);
  out["input_sequence_lengths"] = summary_series(snapshot.isl);
  out["legacy_loadgen_window_duration_ns"] = optional(summary.legacy_window_ns);
  out["qps"] = optional(summary.qps);
  out["tps"] = optional(summary.tps);
  out["e2e_avg_interactivity"] = optional(summary.e2e_avg_interactivity);
  const Counters& c = snapshot.counters;
  out["finish_reason_counts"] = {{"stop", c.finish_stop},
                                 {"length", c.finish_length},
                                 {"tool_calls", c.finish_tool_calls},
                                 {"content_filter", c.finish_content_filter},
                                 {"function_call", c.finish_function_call},
                                 {"other", c.finish_other}};
  out["run_config"] = run_config(report.facts.config);
}

}  // namespace

std::string snapshot_json(const Snapshot& snapshot) {
  const Counters& c = snapshot.counters;
  const std::array<std::pair<std::string_view, std::int64_t>, 15> counters{{
      {"total_samples_issued", c.total_issued},
      {"total_samples_completed", c.total_completed},
      {"total_samples_failed", c.total_failed},
      {"tracked_samples_issued", c.tracked_issued},
      {"tracked_samples_completed", c.tracked_completed},
      {"tracked_samples_failed", c.tracked_failed},
      {"tracked_finish_reason_stop", c.finish_stop},
      {"tracked_finish_reason_length", c.finish_length},
      {"tracked_finish_reason_tool_calls", c.finish_tool_calls},
      {"tracked_finish_reason_content_filter", c.finish_content_filter},
      {"tracked_finish_reason_function_call", c.finish_function_call},
      {"tracked_finish_reason_other", c.finish_other},
      {"tracked_duration_ns", c.tracked_duration_ns},
      {"legacy_loadgen_window_duration_ns", c.legacy_window_ns},
      {"total_duration_ns", c.total_duration_ns},
  }};
  Json metrics = Json::array();
  for (const auto& [name, value] : counters) {
    metrics.push_back(counter(name, value));
  }
  metrics.push_back(series("sample_latency_ns", snapshot.latency));
  metrics.push_back(series("isl", snapshot.isl));
  metrics.push_back(series("osl", snapshot.osl));
  if (snapshot.streaming) {
    metrics.push_back(series("ttft_ns", snapshot.ttft));
    metrics.push_back(series("chunk_delta_ns", snapshot.chunk_delta));
    metrics.push_back(series("tpot_ns", snapshot.tpot));
  }
  const Json out{{"counter", snapshot.number},
                 {"timestamp_ns", snapshot.taken_at.ns},
                 {"state", snapshot.state == RunState::kComplete ? "complete" : "interrupted"},
                 {"n_pending_tasks", snapshot.pending},
                 {"metrics", std::move(metrics)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string result_summary_json(const Report& report) {
  Json out = Json::object();
  put_reference_part(out, report);
  out["client_implementation"] = {{"name", "tutti"},
                                  {"version", report.facts.version},
                                  {"reference_client", false},
                                  {"notice", kRehearsal}};
  out["run_id"] = report.facts.run.hex();
  out["test_started_at_utc"] = utc_text(report.facts.started_wall_ns);
  out["verdict"] = verdict_json(report.verdict);
  if (report.facts.went_on) {
    Json& lost = out["went_on_without_lost_agents"] = Json::array();
    for (const AgentFacts& agent : report.facts.agents) {
      if (agent.lost_at.is_set()) {
        lost.push_back({{"name", agent.name},
                        {"host", agent.host},
                        {"slots", agent.slots},
                        {"lost_at_s", (agent.lost_at - report.facts.started_at).to_seconds()}});
      }
    }
  }
  if (!report.facts.rebuilt.empty()) {
    out["rebuilt_from_spools"] = report.facts.rebuilt;
  }
  Json& tokens = out["tokens"];
  tokens = {
      {"source", report.token_source()},
      {"succeeded", report.breakdown.succeeded},
      {"succeeded_with_usage", report.breakdown.with_usage},
      {"tpot_divisor", report.tokens ? "tokens after the first chunk" : "completion_tokens - 1"}};
  if (report.tokens) {
    tokens["tokenizer"] = report.facts.config.tokenizer;
    tokens["prompts"] = report.tokens->prompts;
    tokens["model_hash"] = report.facts.config.model_hash;
    tokens["replies"] = report.tokens->replies;
    tokens["replies_by_agents"] = report.tokens->by_agents;
    tokens["replies_without_template"] = report.tokens->without_template;
    tokens["pending"] = report.tokens->pending;
    tokens["usage_output_tokens"] = report.breakdown.usage_tokens;
  }
  out["latency_succeeded"] = summary_series(report.breakdown.success_latency);
  out["itl"] = itl_json(report.timing.itl);
  out["ttft_from_sent"] = summary_series(report.timing.ttft_from_sent);
  out["connection_setup"] = {{"sent", report.timing.sent},
                             {"first_on_connection", report.timing.first_on_connection},
                             {"dns_us", setup_tail(report.timing.dns)},
                             {"tcp_us", setup_tail(report.timing.tcp)},
                             {"tls_us", setup_tail(report.timing.tls)}};
  out["failures"] = failures_json(report);
  out["distributed"] = distributed_json(report);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::report
