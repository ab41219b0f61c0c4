#include "coordinator/calibrate_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "common/base/log.h"
#include "coordinator/ledger/texts.h"
#include "coordinator/run_setup.h"

namespace tutti {
namespace {

using base::Duration;
using base::Instant;

constexpr double kHeartbeatS = 0.1;
constexpr std::uint32_t kConnectRate = 5000;       // per agent; the null server takes them all
constexpr std::uint32_t kInFlightPerAgent = 2000;  // of arrivals: far beyond what 1 ms replies need
constexpr std::uint32_t kWarmPerAgent = 200;
constexpr Duration kOverhead = Duration::seconds(20);  // joining, opening, ending; then it is cut

spec::Config config_of(const CalibrationRig& rig, const StepLoad& load) {
  spec::Config config;
  config.type = spec::TestType::kOnline;
  config.model_params.name = "mock-model";
  config.model_params.streaming = load.streaming ? spec::Streaming::kOn : spec::Streaming::kOff;
  config.settings.client.stream_all_chunks = load.stamps;
  config.distributed.local_agents = rig.agents;
  config.distributed.workers = rig.workers;
  config.distributed.transport = rig.way;
  config.distributed.heartbeat_s = kHeartbeatS;
  config.endpoint_config.endpoints = load.urls;
  return config;
}

base::Result<conduct::RunInput> input_of(const spec::Config& config, const CalibrationRig& rig,
                                         const StepLoad& load) {
  conduct::RunInput input;
  data::Row row;
  row.cells =
      text::JsonValue::of_object({{"prompt", text::JsonValue::of_string(std::string(900, 'x'))}});
  input.dataset.path = "calibrate";
  input.dataset.rows.push_back(std::move(row));
  data::BodyParams params;
  params.model = config.model_params.name;
  params.stream = load.streaming;
  auto bodies = conduct::write_bodies(input.dataset, params, rig.folder + "/bodies");
  if (!bodies) {
    return tl::unexpected(bodies.error());
  }
  input.bodies = std::move(*bodies);
  conduct::PhaseInput phase;
  phase.name = "calibrate";
  phase.spec.kind = base::PhaseKind::kPerformance;
  phase.spec.dataset_rows = 1;
  if (load.concurrency > 0) {
    phase.spec.pacing = base::Pacing::kClosedLoop;
    phase.spec.concurrency = load.concurrency;
  } else {
    phase.spec.pacing = base::Pacing::kTimed;
    phase.spec.target_qps = load.per_s;
    input.connections_warm = std::uint64_t{kWarmPerAgent} * rig.agents;
  }
  phase.spec.total = ledger::kSeqMax;  // the cap ends it
  phase.issue_cap = load.settle + load.window;
  phase.drain_timeout = load.drain;
  input.phases.push_back(std::move(phase));
  input.target = conduct::target_of(config);
  input.target.connect_rate_max = kConnectRate;
  return input;
}

template <class T>
T percentile(std::vector<T>& values, double q) {
  if (values.empty()) {
    return {};
  }
  const auto i = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(i);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

StampError error_of(std::vector<std::int64_t>& ns) {
  return {ns.size(), Duration{percentile(ns, 0.5)}, Duration{percentile(ns, 0.99)},
          Duration{percentile(ns, 0.999)}};
}

// The text of a reply is the server's stamps, one a word.
bool next_stamp(std::string_view& text, std::int64_t& ns) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), ns);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return problem == std::errc{};
}

struct Window {
  Instant from{};
  Instant to{};
  bool holds(Instant at) const { return at >= from && at < to; }
};

// Agents run on this host, so their clock is the one the window is on.
void read_records(const ledger::Ledger& ledger, const Window& window, bool stamps,
                  StepResult& out) {
  std::vector<std::int64_t> lags;
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> later;
  ledger::Texts texts;
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    ++out.seen.queries;
    if (!fact.ok()) {
      ++out.seen.failed;
      if (out.seen.failure.empty() && ledger.texts(fact, texts)) {
        out.seen.failure = texts.error_message;
      }
      continue;
    }
    if (window.holds(fact.issued_at) && fact.due_at.is_set()) {
      lags.push_back((fact.issued_at - fact.due_at).ns);
    }
    if (!stamps || !ledger.texts(fact, texts)) {
      continue;
    }
    std::int64_t sent_ns = 0;
    std::string_view text = texts.output.content_first;
    if (next_stamp(text, sent_ns) && window.holds(fact.first_token_at)) {
      first.push_back(fact.first_token_at.ns - sent_ns);
    }
    text = texts.output.content_rest;
    for (const Instant at : texts.chunk_at) {
      if (next_stamp(text, sent_ns) && window.holds(at)) {
        later.push_back(at.ns - sent_ns);
      }
    }
  }
  out.lag_p50 = Duration{percentile(lags, 0.5)};
  out.seen.lag_p99 = Duration{percentile(lags, 0.99)};
  out.first_tokens = error_of(first);
  out.later_tokens = error_of(later);
}

void read_progress(const std::vector<conduct::ProgressSeen>& log, const Window& window,
                   const StepLoad& load, StepResult& out) {
  std::map<conduct::AgentKey, std::vector<const conduct::ProgressSeen*>> by_agent;
  for (const auto& seen : log) {
    if (window.holds(seen.at)) {
      by_agent[seen.agent].push_back(&seen);
    }
  }
  double in_flight = 0;
  for (const auto& [agent, notes] : by_agent) {
    double cpu = 0;
    double held = 0;
    for (const auto* note : notes) {
      cpu += note->progress.health.cpu_busiest_worker;
      held += note->progress.in_flight;
      out.seen.read_lag_p99 = std::max(out.seen.read_lag_p99, note->progress.health.read_lag_p99);
      out.seen.lost = std::max(out.seen.lost, note->progress.health.records_lost);
    }
    const auto count = static_cast<double>(notes.size());
    out.seen.cpu_busiest = std::max(out.seen.cpu_busiest, cpu / count);
    in_flight += held / count;
    const double seconds = (notes.back()->at - notes.front()->at).to_seconds();
    const wire::Progress& last = notes.back()->progress;
    const wire::Progress& began = notes.front()->progress;
    const std::uint64_t events =
        load.streaming ? last.output_tokens - began.output_tokens : last.done - began.done;
    if (seconds <= 0) {
      continue;
    }
    out.seen.achieved_per_s += static_cast<double>(events) / seconds;
    if (load.concurrency == 0) {
      out.seen.offered_per_s += static_cast<double>(last.started - began.started) / seconds;
    }
  }
  if (load.concurrency > 0) {
    out.seen.in_flight_share = in_flight / load.concurrency;
  }
}

// Nobody reads the log lines of some twenty short runs; what goes wrong is in the outcome.
void drop_line(void*, const std::string&) {}

}  // namespace

base::Result<StepResult> run_step(const CalibrationRig& rig, const StepLoad& load) {
  const spec::Config config = config_of(rig, load);
  const auto input = input_of(config, rig, load);
  if (!input) {
    return tl::unexpected(input.error());
  }
  std::vector<conduct::ProgressSeen> log;
  conduct::HostSettings settings = host_settings(config, *input, rig.folder);
  settings.show_progress = false;
  settings.progress_log = &log;
  settings.plan.timeouts.run = load.settle + load.window + load.drain + kOverhead;
  if (load.concurrency == 0) {
    settings.plan.in_flight_max = kInFlightPerAgent * rig.agents;
  }
  base::redirect_log(drop_line, nullptr);
  auto outcome = conduct::conduct_run(settings, *rig.clock, *rig.signals);
  base::redirect_log(nullptr, nullptr);
  if (!outcome) {
    return tl::unexpected(outcome.error());
  }
  StepResult out;
  out.interrupted = outcome->interrupted_by_user;
  if (!outcome->outcome.complete || outcome->phases.empty()) {
    out.broke = outcome->outcome.reasons.empty() ? "the run did not begin"
                                                 : outcome->outcome.reasons.front();
    return out;
  }
  const Instant from = outcome->phases[0].start_at + load.settle;
  const Window window{from, from + load.window};
  out.seen.offered_per_s = load.offered_per_s;
  read_records(outcome->ledger, window, load.stamps, out);
  read_progress(log, window, load, out);
  out.seen.lost += outcome->ledger.missing_count(0, outcome->phases[0].issued);
  return out;
}

}  // namespace tutti
