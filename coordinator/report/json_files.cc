// metrics/final_snapshot.json and performance/result_summary.json.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/report/json_parts.h"
#include "coordinator/report/report.h"

namespace tutti::report {
namespace {

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

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string series_json(const stats::SeriesStat& stat) { return summary_series(stat).dump(); }

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
