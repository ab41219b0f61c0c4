#include "coordinator/run_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/id.h"
#include "common/data/dataset.h"
#include "common/plan/salts.h"
#include "common/plan/schedule.h"
#include "common/spec/redact.h"
#include "common/sys/process.h"
#include "coordinator/report/conversations_played.h"
#include "coordinator/report/run_note.h"
#include "coordinator/token_counting.h"

namespace tutti {
namespace {

// One agent process holds this many streams well; more processes only where there are cores for
// them.
constexpr std::uint64_t kStreamsPerAgent = 4000;
// … and no process can hold more than its descriptors allow, cores or not.
constexpr std::uint64_t kStreamsPerAgentMax = 15'000;

std::uint32_t automatic_agents(const conduct::RunInput& input) {
  std::uint64_t streams = 1;
  for (const auto& phase : input.phases) {
    streams = std::max<std::uint64_t>(streams, phase.spec.concurrency);
  }
  const std::uint64_t wanted = (streams + kStreamsPerAgent - 1) / kStreamsPerAgent;
  const std::uint64_t cores = std::max(1U, sys::usable_cores() / 2);
  const std::uint64_t needed = (streams + kStreamsPerAgentMax - 1) / kStreamsPerAgentMax;
  return static_cast<std::uint32_t>(std::max(std::min(wanted, cores), needed));
}

// I/O threads of each agent started here: as asked for, or its share of the reference's num_workers
// as far as this host has cores for it.
std::uint32_t workers_of_local_agents(const spec::Config& config, std::uint32_t agents) {
  if (config.distributed.workers > 0) {
    return static_cast<std::uint32_t>(config.distributed.workers);
  }
  const std::int64_t asked = config.settings.client.num_workers;
  if (asked <= 0 || agents == 0) {
    return 1;
  }
  const std::int64_t cores = std::max(1U, sys::usable_cores() / agents);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(asked / agents, 1, cores));
}

base::Duration seconds_or_none(const std::optional<double>& s) {
  return s ? base::Duration::from_seconds(*s) : base::Duration{};
}

conduct::RunPlan run_plan(const spec::Config& config, const conduct::RunInput& input) {
  const spec::Distributed& distributed = config.distributed;
  const spec::Timeouts& timeouts = config.settings.timeouts;
  conduct::RunPlan plan;
  plan.run = base::fresh_id();
  for (const auto& phase : input.phases) {
    plan.phases.push_back(conduct::RunPhase{
        phase.name, phase.spec, phase.issue_cap.value_or(base::Duration{}),
        phase.drain_timeout.value_or(base::Duration{}), phase.ends_with_first_user});
  }
  plan.prefetch = distributed.prefetch;
  plan.heartbeat = base::Duration::from_seconds(distributed.heartbeat_s);
  plan.lost_after = base::Duration::from_seconds(distributed.lost_after_s);
  plan.on_agent_loss = distributed.on_agent_loss == spec::OnAgentLoss::kContinue
                           ? conduct::AgentLoss::kContinue
                           : conduct::AgentLoss::kStop;
  plan.clock_error_max = base::Duration::from_seconds(distributed.max_clock_error_ms / 1000);
  plan.target = input.target;
  plan.bodies.hash = input.bodies.hash();
  plan.bodies.bytes = input.bodies.file().size();
  plan.bodies.rows = static_cast<std::uint32_t>(input.bodies.rows());
  plan.connections_max = static_cast<std::uint32_t>(input.connections_max.value_or(0));
  plan.connections_warm =
      input.connections_warm ? static_cast<std::int64_t>(*input.connections_warm) : -1;
  plan.timeouts.gather = base::Duration::from_seconds(
      distributed.gather_timeout_s.value_or(timeouts.service_ready_timeout_s));
  plan.timeouts.grace = base::Duration::from_seconds(timeouts.interrupted_teardown_grace_s);
  plan.timeouts.response_idle = seconds_or_none(timeouts.endpoint_response_idle_timeout_s);
  plan.timeouts.run = seconds_or_none(timeouts.run_timeout_s);
  return plan;
}

conduct::CountingPlan counting_plan(const spec::Config& config, const RunTokenizer& tokenizer) {
  constexpr double kDrainMaxS = 60;
  conduct::CountingPlan plan;
  switch (config.distributed.token_counting) {
    case spec::TokenCounting::kAuto:
      plan.where = conduct::CountingWhere::kAuto;
      break;
    case spec::TokenCounting::kAgents:
      plan.where = conduct::CountingWhere::kAgents;
      break;
    case spec::TokenCounting::kCoordinator:
      plan.where = conduct::CountingWhere::kCoordinator;
      break;
  }
  plan.terms.model_hash = tokenizer.hash;
  plan.terms.model_bytes = tokenizer.packed.size();
  plan.terms.drain_max = base::Duration::from_seconds(
      config.settings.timeouts.metrics_drain_timeout_s.value_or(kDrainMaxS));
  return plan;
}

const char* pattern_name(spec::Pattern pattern) {
  switch (pattern) {
    case spec::Pattern::kMaxThroughput:
      return "max_throughput";
    case spec::Pattern::kPoisson:
      return "poisson";
    case spec::Pattern::kAgenticInference:
      return "agentic_inference";
    case spec::Pattern::kConcurrency:
      break;
  }
  return "concurrency";
}

std::string reach_text(const spec::Distributed& distributed) {
  std::string text;
  if (distributed.http_version == spec::HttpVersion::kHttp2) {
    text = fmt::format("over HTTP/2, at most {} streams of one connection",
                       distributed.streams_per_connection);
  }
  if (distributed.proxy) {
    text += fmt::format("{}through the proxy {}", text.empty() ? "" : ", ",
                        spec::redact_url(*distributed.proxy));
  }
  return text;
}

report::ConfigFacts config_facts(const spec::Config& config, const conduct::HostSettings& host) {
  const spec::Settings& settings = config.settings;
  report::ConfigFacts facts;
  facts.load_pattern.type = pattern_name(settings.load_pattern.type);
  facts.load_pattern.target_qps = settings.load_pattern.target_qps;
  if (settings.load_pattern.target_concurrency) {
    facts.load_pattern.target_concurrency =
        static_cast<std::uint64_t>(*settings.load_pattern.target_concurrency);
  }
  facts.load_pattern.use_legacy_qps_window = settings.load_pattern.use_legacy_loadgen_qps_metrics;
  facts.warmup.enabled = settings.warmup.enabled;
  facts.warmup.n_requests = settings.warmup.n_requests;
  facts.warmup.salt = settings.warmup.salt;
  facts.warmup.drain = settings.warmup.drain;
  facts.warmup.random_seed = settings.warmup.warmup_random_seed;
  facts.scheduler_random_seed = settings.runtime.scheduler_random_seed;
  facts.dataloader_random_seed = settings.runtime.dataloader_random_seed;
  facts.streaming = config.model_params.streaming == spec::Streaming::kOn;
  facts.early_stopping = settings.early_stopping.enabled;
  facts.stream_all_chunks = settings.client.stream_all_chunks;
  facts.reach = reach_text(config.distributed);
  facts.kernel_stamps = config.distributed.transport != base::Way::kMulti;
  switch (config.distributed.token_source) {
    case spec::TokenSource::kUsage:
      facts.token_source = report::TokenSource::kUsage;
      break;
    case spec::TokenSource::kNone:
      facts.token_source = report::TokenSource::kNone;
      break;
    case spec::TokenSource::kAuto:
    case spec::TokenSource::kTokenizer:
      facts.token_source = report::TokenSource::kTokenizer;
      facts.model_hash = host.plan.counting.terms.model_hash;
      facts.tokenizer = config.model_params.tokenizer_name.value_or(config.model_params.name);
      break;
  }
  facts.balance = host.plan.target.balance;
  facts.endpoints = host.frontends;
  return facts;
}

// For the agents' spools: the report's facts as far as they are known before the run.
std::string note_of(const spec::Config& config, const conduct::RunInput& input,
                    const conduct::HostSettings& settings) {
  const base::SystemClock clock;
  report::RunFacts facts;
  facts.run = settings.plan.run;
  facts.version = TUTTI_VERSION;
  facts.started_wall_ns = clock.wall_unix_ns();
  facts.started_at = clock.mono();
  facts.config = config_facts(config, settings);
  for (const auto& phase : input.phases) {
    report::PhaseFacts it;
    it.name = phase.name;
    it.kind = phase.spec.kind;
    it.pacing = phase.spec.pacing;
    it.first_row = phase.spec.first_row;
    it.plays = phase.spec.trajectories != nullptr;
    facts.phases.push_back(std::move(it));
  }
  facts.agents.resize(settings.plan.agents_expected);
  return report::run_note(facts);
}

}  // namespace

base::Result<RunKeys> read_run_keys(const spec::Distributed& distributed) {
  RunKeys keys;
  if (!distributed.keys || !distributed.agent_keys) {
    return keys;
  }
  if (distributed.agents.empty() && !distributed.listen) {
    return base::fail(base::ExitCode::kInput,
                      "distributed.keys: is for agents on other hosts; name them with listen or "
                      "agents, or leave keys out");
  }
  auto own = wire::read_key_pair(*distributed.keys);
  if (!own) {
    return tl::unexpected(own.error());
  }
  auto agents = wire::read_public_keys(*distributed.agent_keys);
  if (!agents) {
    return tl::unexpected(agents.error());
  }
  if (agents->size() > 1 && agents->size() < distributed.agents.size()) {
    return base::fail(
        base::ExitCode::kSetup,
        fmt::format(
            "{}: {} public keys for {} agents that are dialled; give one for all of them, or "
            "one for each in the order of distributed.agents",
            *distributed.agent_keys, agents->size(), distributed.agents.size()));
  }
  keys.own = std::move(*own);
  keys.agents = std::move(*agents);
  return keys;
}

conduct::HostSettings host_settings(const spec::Config& config, const conduct::RunInput& input,
                                    const std::string& folder, const RunTokenizer* tokenizer) {
  const spec::Distributed& distributed = config.distributed;
  conduct::HostSettings settings;
  settings.plan = run_plan(config, input);
  settings.folder = folder;
  settings.bodies = &input.bodies;
  for (const auto& url : config.endpoint_config.endpoints) {
    settings.frontends.push_back(spec::redact_url(url));
  }
  settings.dial = distributed.agents;
  settings.listen = distributed.listen;
  settings.rendezvous = distributed.rendezvous;
  settings.insecure = distributed.insecure;
  settings.local_agents = static_cast<std::uint32_t>(distributed.local_agents);
  const bool others = !distributed.agents.empty() || distributed.listen.has_value();
  if (settings.local_agents == 0 && !others) {
    settings.local_agents = automatic_agents(input);
  }
  settings.workers = workers_of_local_agents(config, settings.local_agents);
  const auto expected = static_cast<std::uint64_t>(distributed.expect);
  settings.plan.agents_expected = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(expected, distributed.agents.size() + settings.local_agents));
  if (settings.plan.agents_expected == 0) {
    settings.plan.agents_expected = 1;  // `listen` alone: the first that comes
  }
  if (tokenizer != nullptr) {
    settings.plan.counting = counting_plan(config, *tokenizer);
    settings.model = tokenizer->packed;
  }
  settings.plan.note = note_of(config, input, settings);
  return settings;
}

report::RunFacts run_facts(const spec::Config& config, const conduct::HostSettings& settings,
                           const conduct::RunOutcome& outcome) {
  report::RunFacts facts;
  facts.run = settings.plan.run;
  facts.version = TUTTI_VERSION;
  facts.started_wall_ns = outcome.started_wall_ns;
  facts.started_at = outcome.started_at;
  facts.ended_at = outcome.ended_at;
  facts.state =
      outcome.outcome.complete ? report::RunState::kComplete : report::RunState::kInterrupted;
  facts.interrupted_by_user = outcome.interrupted_by_user;
  if (!outcome.interrupted_by_user && outcome.outcome.exit != base::ExitCode::kOk) {
    facts.watchdogs = outcome.outcome.reasons;
  }
  facts.config = config_facts(config, settings);
  facts.phases = outcome.phases;
  for (std::uint32_t i = 0; i < facts.phases.size(); ++i) {
    const auto& trajectories = settings.plan.phases[i].schedule.trajectories;
    if (trajectories == nullptr) {
      continue;
    }
    facts.phases[i].conversations =
        report::count_conversations(outcome.ledger, i, facts.phases[i].issued, *trajectories);
    if (facts.phases[i].kind == base::PhaseKind::kPerformance) {
      facts.phases[i].tracked_until = report::tracking_end(outcome.ledger, i, *trajectories);
    }
  }
  facts.agents = outcome.agents;
  facts.went_on = outcome.outcome.went_on;
  facts.budget = outcome.budget;
  return facts;
}

SentPrompts::SentPrompts(const conduct::RunInput& input) : input_(input) {
  for (const auto& phase : input.phases) {
    std::vector<std::uint64_t> salts;
    if (phase.spec.salted) {
      plan::Salts source(phase.spec.salt_seed);
      salts.resize(phase.spec.total);
      std::generate(salts.begin(), salts.end(), [&] { return source.next(); });
    }
    salts_.push_back(std::move(salts));
  }
}

std::optional<base::SampleIndex> SentPrompts::sample_of(std::uint32_t phase, base::Seq seq) const {
  if (phase >= input_.phases.size()) {
    return std::nullopt;
  }
  samples_.resize(input_.phases.size());
  auto& samples = samples_[phase];
  if (samples.empty()) {
    plan::Schedule schedule(input_.phases[phase].spec);
    while (const auto command = schedule.next()) {
      samples.push_back(command->sample);
    }
  }
  return seq < samples.size() ? std::optional(samples[seq]) : std::nullopt;
}

void SentPrompts::turn(std::uint32_t phase, base::Seq seq, report::TurnName& out) const {
  out = {};
  const plan::Trajectories* const all =
      phase < input_.phases.size() ? input_.phases[phase].spec.trajectories.get() : nullptr;
  if (all != nullptr && seq < all->queries()) {
    const auto place = all->place_of(seq);
    out = {all->logical_id(place.trajectory),
           all->conversation(place.trajectory).turns[place.turn].number};
  }
}

void SentPrompts::conversation_prompt(std::uint32_t phase, base::Seq seq, base::SampleIndex sample,
                                      report::Prompt& out) const {
  const auto& all = input_.phases[phase].spec.trajectories;
  std::string mark;
  if (const auto command = all->command(seq); command.salted) {
    mark = plan::mark_text(command.salt);
  }
  const data::Row row = input_.conversations->row(sample, mark);
  out.kind = report::Prompt::Kind::kMessages;
  out.value = data::prompt_of(row).text;
  if (const auto* tools = row.cells.find("tools"); tools != nullptr) {
    out.tools = tools->to_json();
  }
}

void SentPrompts::prompt(std::uint32_t phase, base::Seq seq, base::SampleIndex sample,
                         report::Prompt& out) const {
  out.kind = report::Prompt::Kind::kNone;
  out.value.clear();
  out.tools.clear();
  if (input_.conversations != nullptr && sample < input_.measured_rows()) {
    conversation_prompt(phase, seq, sample, out);
    return;
  }
  const data::Row* const row = input_.row(sample);
  if (row == nullptr) {
    return;
  }
  data::Prompt prompt = data::prompt_of(*row);
  if (prompt.kind == data::PromptKind::kMessages) {
    out.kind = report::Prompt::Kind::kMessages;
    out.value = std::move(prompt.text);
    if (const auto* tools = row->cells.find("tools"); tools != nullptr && !tools->is_null()) {
      out.tools = tools->to_json();
    }
  } else if (prompt.kind == data::PromptKind::kTokenIds) {
    out.kind = report::Prompt::Kind::kTokenIds;
    out.value = std::move(prompt.text);
  } else if (prompt.kind == data::PromptKind::kText) {
    out.kind = report::Prompt::Kind::kText;
    if (phase < salts_.size() && seq < salts_[phase].size()) {
      out.value = plan::view(plan::salt_text(salts_[phase][seq]));
    }
    out.value += prompt.text;
  }
}

}  // namespace tutti
