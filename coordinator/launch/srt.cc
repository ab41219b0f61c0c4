#include "coordinator/launch/srt.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "common/text/json_write.h"
#include "coordinator/launch/slurm_plan.h"

namespace tutti::launch {
namespace {

using base::ExitCode;
using text::JsonValue;
using Members = std::vector<JsonValue::Member>;

// Parted by commas or blanks; empties dropped.
std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : text + ",") {
    if (c != ',' && c != ' ' && c != '\t' && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::exchange(word, {}));
    }
  }
  return out;
}

std::string or_default(const std::optional<std::string>& value, std::string fallback) {
  return value && !value->empty() ? *value : std::move(fallback);
}

JsonValue word(std::string text) { return JsonValue::of_string(std::move(text)); }

JsonValue words(const std::vector<std::string>& texts) {
  std::vector<JsonValue> items;
  std::transform(texts.begin(), texts.end(), std::back_inserter(items), word);
  return JsonValue::of_array(std::move(items));
}

// The member at a path of names; null when it is not there.
const JsonValue* at(const JsonValue* value, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) {
    value = value == nullptr ? nullptr : value->find(name);
  }
  return value == nullptr || value->is_null() ? nullptr : value;
}

void put(Members& out, std::string name, const JsonValue* value) {
  if (value != nullptr) {
    out.emplace_back(std::move(name), *value);
  }
}

// Nanoseconds to milliseconds.
void put_ms(Members& out, std::string name, const JsonValue* value) {
  if (value != nullptr && value->is_number()) {
    out.emplace_back(std::move(name), JsonValue::of_double(value->as_double() / 1e6));
  }
}

constexpr std::pair<const char*, const char*> kQuantiles[] = {
    {"p50", "50.0"}, {"p90", "90.0"}, {"p95", "95.0"}, {"p99", "99.0"}, {"p99_9", "99.9"}};

// Flat keys that the monitor and the tools around it read.
void put_flat(Members& out, const JsonValue& summary) {
  put(out, "concurrency", at(&summary, {"run_config", "load_pattern", "target_concurrency"}));
  put(out, "throughput_toks", at(&summary, {"tps"}));
  put(out, "request_throughput", at(&summary, {"qps"}));
  for (const auto& [ours, theirs] :
       {std::pair{"ttft", "ttft"}, {"tpot", "tpot"}, {"e2el", "latency"}}) {
    put_ms(out, fmt::format("{}_mean_ms", ours), at(&summary, {theirs, "avg"}));
    for (const auto& [name, key] : kQuantiles) {
      put_ms(out, fmt::format("{}_{}_ms", ours, name), at(&summary, {theirs, "percentiles", key}));
    }
  }
  put(out, "completed_requests", at(&summary, {"n_samples_completed"}));
  put(out, "failed_requests", at(&summary, {"n_samples_failed"}));
  put(out, "osl", at(&summary, {"output_sequence_lengths", "avg"}));
  put(out, "total_output_tokens", at(&summary, {"output_sequence_lengths", "total"}));
}

JsonValue latency_block(const JsonValue& series) {
  Members out;
  put_ms(out, "min_ms", at(&series, {"min"}));
  put_ms(out, "max_ms", at(&series, {"max"}));
  put_ms(out, "mean_ms", at(&series, {"avg"}));
  put_ms(out, "median_ms", at(&series, {"median"}));
  for (const auto& [name, key] : kQuantiles) {
    put_ms(out, fmt::format("{}_ms", name), at(&series, {"percentiles", key}));
  }
  return JsonValue::of_object(std::move(out));
}

JsonValue length_block(const JsonValue& series) {
  Members out;
  for (const auto& [ours, theirs] :
       {std::pair{"min", "min"}, {"max", "max"}, {"mean", "avg"}, {"median", "median"}}) {
    put(out, ours, at(&series, {theirs}));
  }
  return JsonValue::of_object(std::move(out));
}

JsonValue performance_metrics(const JsonValue& summary) {
  Members out;
  for (const auto& [ours, theirs] : {std::pair{"qps", "qps"},
                                     {"tps", "tps"},
                                     {"samples_issued", "n_samples_issued"},
                                     {"samples_completed", "n_samples_completed"},
                                     {"samples_failed", "n_samples_failed"},
                                     {"state", "state"},
                                     {"complete", "complete"}}) {
    put(out, ours, at(&summary, {theirs}));
  }
  const bool legacy = at(&summary, {"legacy_loadgen_window_duration_ns"}) != nullptr;
  out.emplace_back("qps_window", word(legacy ? "legacy_loadgen" : "native"));
  if (const JsonValue* ns = at(&summary, {"duration_ns"}); ns != nullptr && ns->is_number()) {
    out.emplace_back("duration_s", JsonValue::of_double(ns->as_double() / 1e9));
  }
  put(out, "finish_reason_counts", at(&summary, {"finish_reason_counts"}));
  for (const char* name : {"ttft", "tpot", "latency"}) {
    if (const JsonValue* series = at(&summary, {name}); at(series, {"min"}) != nullptr) {
      out.emplace_back(name, latency_block(*series));
    }
  }
  for (const char* name : {"input_sequence_lengths", "output_sequence_lengths"}) {
    if (const JsonValue* series = at(&summary, {name}); at(series, {"min"}) != nullptr) {
      out.emplace_back(name, length_block(*series));
    }
  }
  put(out, "verdict", at(&summary, {"verdict"}));
  return JsonValue::of_object(std::move(out));
}

JsonValue accuracy_metrics(const JsonValue& accuracy) {
  Members out;
  put(out, "average_accuracy", at(&accuracy, {"average_accuracy"}));
  std::vector<JsonValue> datasets;
  if (const JsonValue* scores = at(&accuracy, {"accuracy_scores"}); scores != nullptr) {
    for (const JsonValue& score : scores->items()) {
      Members each;
      put(each, "name", at(&score, {"dataset_name"}));
      put(each, "score", at(&score, {"score"}));
      put(each, "samples", at(&score, {"total_samples"}));
      put(each, "complete", at(&score, {"complete"}));
      put(each, "subset_scores", at(&score, {"breakdown", "subset_scores"}));
      datasets.push_back(JsonValue::of_object(std::move(each)));
    }
  }
  out.emplace_back("datasets", JsonValue::of_array(std::move(datasets)));
  return JsonValue::of_object(std::move(out));
}

void put_metrics(Members& run, const RollupFacts& facts) {
  Members metrics;
  std::vector<std::string> sources;
  if (facts.summary) {
    put_flat(run, *facts.summary);
    metrics.emplace_back("performance", performance_metrics(*facts.summary));
    sources.emplace_back("performance/result_summary.json");
  }
  if (facts.accuracy) {
    metrics.emplace_back("accuracy", accuracy_metrics(*facts.accuracy));
    sources.emplace_back("accuracy/accuracy_results.json");
  }
  run.emplace_back("metrics", JsonValue::of_object(std::move(metrics)));
  run.emplace_back("metrics_sources", words(sources));
}

// Who took part: name, host and completions of each agent and endpoint.
void put_parts(Members& run, const JsonValue& summary) {
  for (const auto& [list, label] : {std::pair{"agents", "name"}, {"endpoints", "url"}}) {
    const JsonValue* found = at(&summary, {"distributed", list});
    std::vector<JsonValue> parts;
    for (const JsonValue& part : found == nullptr ? std::vector<JsonValue>{} : found->items()) {
      Members each;
      put(each, label, at(&part, {label}));
      put(each, "host", at(&part, {"host"}));
      put(each, "completed", at(&part, {"completed"}));
      put(each, "failed", at(&part, {"failed"}));
      parts.push_back(JsonValue::of_object(std::move(each)));
    }
    run.emplace_back(fmt::format("{}_served", list), JsonValue::of_array(std::move(parts)));
  }
}

}  // namespace

std::vector<std::string> with_scheme(const std::vector<std::string>& addresses) {
  std::vector<std::string> out;
  for (const std::string& address : addresses) {
    const bool has = address.rfind("http://", 0) == 0 || address.rfind("https://", 0) == 0;
    out.push_back(has ? address : "http://" + address);
  }
  return out;
}

base::Result<std::vector<std::string>> srt_frontends(const Environment& environment) {
  if (auto given = listed(environment("MLPERF_ENDPOINTS").value_or("")); !given.empty()) {
    return with_scheme(given);
  }
  const auto host = environment("SRT_FRONTEND_HOST");
  if (!host || host->empty()) {
    return base::fail(ExitCode::kUsage,
                      "SRT_FRONTEND_HOST is not set: start this as srt-slurm's benchmark command, "
                      "or name the frontends in MLPERF_ENDPOINTS");
  }
  const std::string port = or_default(environment("SRT_FRONTEND_PORT"), "8000");
  return std::vector<std::string>{fmt::format("http://{}:{}", *host, port)};
}

base::Result<std::vector<std::string>> srt_agents(const Environment& environment) {
  const auto addresses = listed(environment("SRT_SERVICE_AGENTS_IPS").value_or(""));
  const std::string port =
      or_default(environment("TUTTI_AGENT_PORT"), std::to_string(kDefaultPort));
  std::uint16_t number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != port.data() + port.size() || number == 0) {
    return base::fail(ExitCode::kUsage,
                      fmt::format("TUTTI_AGENT_PORT: \"{}\" is no port from 1 to 65535", port));
  }
  std::vector<std::string> out;
  for (const std::string& address : addresses) {
    const bool six = address.find(':') != std::string::npos && address.front() != '[';
    out.push_back(six ? fmt::format("tcp://[{}]:{}", address, number)
                      : fmt::format("tcp://{}:{}", address, number));
  }
  return out;
}

std::string rollup_json(const RollupFacts& facts) {
  Members run;
  run.emplace_back("mode", word(facts.mode));
  run.emplace_back("state", word(facts.state));
  run.emplace_back("endpoints", words(facts.endpoints));
  run.emplace_back("client_config", word(facts.client_config));
  run.emplace_back("exit_code",
                   facts.exit_code ? JsonValue::of_int(*facts.exit_code) : JsonValue{});
  run.emplace_back("report_dir", word(facts.report_dir));
  run.emplace_back("report_files", words(facts.report_files));
  if (facts.live) {
    Members live;
    live.emplace_back("phase", word(facts.live->phase));
    live.emplace_back("completed", JsonValue::of_uint(facts.live->completed));
    live.emplace_back("failed", JsonValue::of_uint(facts.live->failed));
    live.emplace_back("elapsed_s", JsonValue::of_double(facts.live->elapsed_s));
    run.emplace_back("live", JsonValue::of_object(std::move(live)));
  }
  put_metrics(run, facts);
  if (facts.summary) {
    put_parts(run, *facts.summary);
  }
  Members out;
  out.emplace_back("benchmark_type", word("mlperf"));
  out.emplace_back("client", word("tutti"));
  out.emplace_back("timestamp", word(facts.timestamp));
  out.emplace_back("runs", JsonValue::of_array({JsonValue::of_object(std::move(run))}));
  return JsonValue::of_object(std::move(out)).to_json() + "\n";
}

std::string window_json(const Window& window) {
  const auto number = [](const std::optional<double>& value) {
    return value ? JsonValue::of_double(*value) : JsonValue{};
  };
  std::optional<double> duration_s;
  if (window.end_unix_s) {
    duration_s = *window.end_unix_s - window.start_unix_s;
  }
  Members out;
  out.emplace_back("schema_version", JsonValue::of_int(1));
  out.emplace_back("benchmark_type", word("custom"));
  out.emplace_back("result_path", word(window.result_path));
  out.emplace_back("concurrency", JsonValue::of_int(window.concurrency));
  out.emplace_back("benchmark_start_time_unix", JsonValue::of_double(window.start_unix_s));
  out.emplace_back("benchmark_end_time_unix", number(window.end_unix_s));
  out.emplace_back("duration", number(duration_s));
  out.emplace_back("clock_source", word("head_node_unix_clock"));
  out.emplace_back("status", word(window.status));
  out.emplace_back("reason", window.reason ? word(*window.reason) : JsonValue{});
  return JsonValue::of_object(std::move(out)).to_json() + "\n";
}

std::string utc_seconds(std::int64_t unix_ns) {
  const std::time_t seconds = unix_ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace tutti::launch
