#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/sim/simulate.h"

// Random scenarios: wide on purpose, but each small enough to play in some milliseconds.

namespace tutti::sim {
namespace {

constexpr Duration kHarmlessFreeze = Duration::millis(1500);

using base::Pacing;
using base::PhaseKind;

conduct::RunPhase draw_phase(World& world, PhaseKind kind, double service_s) {
  conduct::RunPhase phase;
  phase.name = kind == PhaseKind::kWarmup        ? "warmup"
               : kind == PhaseKind::kPerformance ? "performance"
                                                 : "accuracy";
  plan::PhaseSpec& spec = phase.schedule;
  spec.kind = kind;
  spec.pacing = static_cast<Pacing>(world.below(3));
  spec.dataset_rows = static_cast<std::uint32_t>(world.between(1, 500));
  spec.order = kind == PhaseKind::kAccuracy ? plan::OrderKind::kSequential
                                            : plan::OrderKind::kWithoutReplacement;
  spec.order_seed = world.bits();
  spec.salted = kind == PhaseKind::kWarmup || world.maybe(0.3);
  spec.salt_seed = world.bits();
  const double most = kind == PhaseKind::kPerformance ? 900 : 150;
  spec.total = static_cast<base::Seq>(world.log_uniform(1, most));
  if (spec.pacing == Pacing::kClosedLoop) {
    spec.concurrency = static_cast<std::uint32_t>(world.log_uniform(1, 301));
    // Not more than about half a minute of it.
    const double passes = 30.0 / service_s;
    spec.total = std::min(spec.total, static_cast<base::Seq>(std::ceil(spec.concurrency * passes)));
  } else if (spec.pacing == Pacing::kTimed) {
    spec.target_qps = world.log_uniform(5, 500);
    spec.gap_seed = world.bits();
    spec.total = std::min(spec.total, static_cast<base::Seq>(std::ceil(spec.target_qps * 20)));
  }
  if (kind == PhaseKind::kPerformance && world.maybe(0.2)) {
    phase.issue_cap = Duration::from_seconds(world.uniform(0.05, 8.0));
  }
  if (world.maybe(0.15)) {
    phase.drain_timeout = Duration::from_seconds(world.uniform(0.05, 3.0));
  }
  return phase;
}

void draw_network(World& world, Scenario& scenario) {
  NetworkOptions& network = scenario.network;
  network.delay_min = Duration::from_seconds(world.log_uniform(50e-6, 10e-3));
  network.delay_jitter = Duration::from_seconds(world.log_uniform(10e-6, 10e-3));
  if (world.maybe(0.5)) {
    network.loss = world.uniform(0, 0.15);
    network.duplication = world.uniform(0, 0.10);
    network.reorder = world.uniform(0, 0.20);
  }
  if (world.maybe(0.3)) {
    network.asymmetry = Duration::from_seconds(world.uniform(0, 10e-3));
  }
}

void draw_faults(World& world, Scenario& scenario, double span_s) {
  const auto when = [&world, span_s] {
    return Instant{static_cast<std::int64_t>(world.uniform(0.0, span_s) * 1e9)};
  };
  const auto add = [&](double probability, FaultKind kind, Duration lasts) {
    if (world.maybe(probability)) {
      scenario.faults.push_back({kind, when(), world.below(scenario.agents), lasts});
      return true;
    }
    return false;
  };
  if (world.maybe(0.25)) {
    return;  // a quiet one
  }
  if (add(0.35, FaultKind::kStop, {})) {
    add(0.3, FaultKind::kStop, {});
  }
  add(0.05, FaultKind::kWatchdogStop, {});
  add(0.15, FaultKind::kAgentCrash, {});
  add(0.05, FaultKind::kAgentCrash, {});
  add(0.05, FaultKind::kAgentSignal, {});
  add(0.25, FaultKind::kPartition, Duration::from_seconds(world.log_uniform(0.05, 8.0)));
  add(0.10, FaultKind::kPartition, Duration::from_seconds(world.log_uniform(0.05, 8.0)));
  add(0.06, FaultKind::kCoordinatorCrash, {});
  add(0.05, FaultKind::kLateAgent, {});
  const auto freeze = [&world] { return Duration::from_seconds(world.log_uniform(0.05, 12.0)); };
  add(0.12, FaultKind::kAgentFreeze, freeze());
  add(0.05, FaultKind::kAgentFreeze, freeze());
  add(0.06, FaultKind::kCoordinatorFreeze, freeze());
  add(0.08, FaultKind::kCoordinatorSlow, Duration::from_seconds(world.log_uniform(0.5, 20.0)));
}

// Its chance is its own, so that the rest of a seed's scenario stays what it is.
void draw_counting(std::uint64_t seed, Scenario& scenario) {
  World world(seed ^ 0xC0047ULL);
  if (world.maybe(0.4)) {
    return;
  }
  conduct::CountingPlan& plan = scenario.plan.counting;
  plan.where = conduct::CountingWhere::kAgents;
  plan.terms = {"model", 10, Duration::from_seconds(world.log_uniform(0.01, 5))};
  scenario.counting.mean = Duration::from_seconds(world.log_uniform(1e-5, 1e-1));
  scenario.counting.uncounted = world.maybe(0.3) ? world.uniform(0, 0.3) : 0;
  scenario.counting.stall = world.maybe(0.2) ? world.uniform(0, 0.02) : 0;
}

// Back-pressure may slow a run down, and a stop shorter than this is nobody's loss.
bool harmless(const Fault& fault) {
  const bool freeze =
      fault.kind == FaultKind::kAgentFreeze || fault.kind == FaultKind::kCoordinatorFreeze;
  return fault.kind == FaultKind::kCoordinatorSlow || (freeze && fault.lasts < kHarmlessFreeze);
}

}  // namespace

bool Scenario::only_agents_fail() const {
  const bool limited =
      std::any_of(plan.phases.begin(), plan.phases.end(),
                  [](const conduct::RunPhase& phase) { return phase.drain_timeout.ns > 0; });
  const bool ours = std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::kStop || fault.kind == FaultKind::kWatchdogStop ||
           fault.kind == FaultKind::kCoordinatorCrash || fault.kind == FaultKind::kDiskFull ||
           (fault.kind == FaultKind::kCoordinatorFreeze && !harmless(fault));
  });
  // A reply that comes late because somebody stood still must not count as silence.
  const bool idle = plan.timeouts.response_idle.ns > 0 && !faults.empty();
  return !ours && !limited && !idle && absent == 0 && engine.record_loss == 0 && engine.hang == 0 &&
         plan.timeouts.run.ns == 0 && plan.clock_error_max > Duration::millis(100);
}

bool Scenario::quiet() const {
  // One after the other they may add up.
  const bool harmed = std::count_if(faults.begin(), faults.end(),
                                    [](const Fault& fault) {
                                      return fault.kind != FaultKind::kCoordinatorSlow;
                                    }) > 1 ||
                      !std::all_of(faults.begin(), faults.end(), harmless);
  return only_agents_fail() && !harmed && network.loss == 0;
}

conduct::RunPlan plain_plan(std::size_t agents, std::uint32_t concurrency, base::Seq total) {
  conduct::RunPlan plan;
  plan.run = base::Id{7, 7};
  plan.agents_expected = static_cast<std::uint32_t>(agents);
  plan.heartbeat = Duration::millis(500);
  plan.lost_after = Duration::millis(2500);
  plan.target.urls = {"http://a/v1/chat/completions", "http://b/v1/chat/completions"};
  plan.bodies = {"00ff", 12, 3};
  conduct::RunPhase phase;
  phase.name = "performance";
  phase.schedule.pacing = Pacing::kClosedLoop;
  phase.schedule.concurrency = concurrency;
  phase.schedule.total = total;
  phase.schedule.dataset_rows = 100;
  phase.schedule.order_seed = 42;
  plan.phases.push_back(phase);
  return plan;
}

Scenario draw_scenario(std::uint64_t seed) {
  World world(seed ^ 0x5EEDC0DEULL);
  Scenario scenario;
  scenario.seed = seed;
  scenario.agents = world.between(1, 9);
  scenario.plan = plain_plan(scenario.agents, 1, 1);
  scenario.plan.phases.clear();
  draw_counting(seed, scenario);
  scenario.plan.clock_error_max = world.maybe(0.03) ? Duration::millis(2) : Duration::millis(500);
  scenario.plan.prefetch = world.maybe(0.3) ? 0 : world.maybe(0.2) ? 5 : -1;
  scenario.plan.in_flight_max =
      world.maybe(0.5) ? 0 : static_cast<std::uint32_t>(world.between(scenario.agents, 300));
  conduct::Timeouts& timeouts = scenario.plan.timeouts;
  timeouts.gather = Duration::seconds(5);
  timeouts.prepare = Duration::seconds(10);
  timeouts.clock = Duration::seconds(5);
  timeouts.answer = Duration::seconds(3);
  timeouts.grace = Duration::seconds(3);
  timeouts.abort = Duration::seconds(5);
  if (world.maybe(0.05)) {
    timeouts.run = Duration::from_seconds(world.uniform(0.2, 15));
  }

  EngineOptions& engine = scenario.engine;
  const double service = world.log_uniform(0.001, 1.0);
  engine.service_mean = Duration::from_seconds(service);
  engine.service_spread = world.uniform(0, 1);
  engine.failure = world.maybe(0.3) ? world.uniform(0, 0.5) : 0;
  engine.record_loss = world.maybe(0.06) ? world.uniform(0, 0.05) : 0;
  engine.hang = world.maybe(0.06) ? world.uniform(0, 0.05) : 0;
  const bool impatient = engine.hang > 0 && world.maybe(0.4);
  if ((engine.hang > 0 && !impatient) || world.maybe(0.1)) {
    timeouts.response_idle = Duration::seconds(3);
  }

  if (world.maybe(0.5)) {
    scenario.plan.phases.push_back(draw_phase(world, PhaseKind::kWarmup, service));
  }
  scenario.plan.phases.push_back(draw_phase(world, PhaseKind::kPerformance, service));
  if (world.maybe(0.2)) {
    scenario.plan.phases.push_back(draw_phase(world, PhaseKind::kAccuracy, service));
  }
  draw_network(world, scenario);
  scenario.listening = world.maybe(0.3);
  scenario.bodies_cached = world.maybe(0.5);
  scenario.plan.on_agent_loss =
      world.maybe(0.5) ? conduct::AgentLoss::kContinue : conduct::AgentLoss::kStop;
  if (scenario.agents > 1 && world.maybe(0.02)) {
    scenario.absent = 1;
    timeouts.run = {};
    return scenario;
  }
  draw_faults(world, scenario, world.log_uniform(0.5, 40.0));
  if (impatient) {  // nothing but its user ends this one
    const double second = world.uniform(1.0, 60.0);
    scenario.faults.push_back({FaultKind::kStop, Instant{static_cast<std::int64_t>(second * 1e9)}});
  }
  if (world.maybe(0.25)) {  // as far as two clocks may run apart
    scenario.clock_drift_max = 0.999 * roster::ClockEstimate::kDriftMax / 2;
  }
  if (world.maybe(0.05)) {
    const double second = world.log_uniform(0.5, 40.0);
    scenario.faults.push_back(
        {FaultKind::kDiskFull, Instant{static_cast<std::int64_t>(second * 1e9)}});
  }
  return scenario;
}

Scenario draw_conversations(std::uint64_t seed) {
  Scenario scenario = draw_scenario(seed);
  World world(seed ^ 0xC0FFEEULL);
  for (conduct::RunPhase& phase : scenario.plan.phases) {
    plan::PhaseSpec& spec = phase.schedule;
    if (spec.kind == PhaseKind::kAccuracy) {
      continue;
    }
    auto conversations = std::make_shared<plan::Conversations>();
    base::SampleIndex sample = 0;
    const std::uint64_t count = world.between(1, 30);
    const Duration delay = Duration::from_seconds(world.maybe(0.5) ? world.uniform(0, 0.2) : 0);
    for (std::uint64_t i = 0; i < count; ++i) {
      plan::Conversation talk{fmt::format("c{}", i), {}};
      for (std::uint64_t turn = world.between(1, 9); turn > 0; --turn) {
        talk.turns.push_back({sample++, delay, sample});
      }
      conversations->push_back(std::move(talk));
    }
    plan::TrajectorySpec wanted;
    wanted.order_seed = world.bits();
    wanted.salted = world.maybe(0.3);
    wanted.delayed = true;
    if (spec.kind == PhaseKind::kWarmup) {
      wanted.queries_max = spec.total;
    } else {
      wanted.count = world.maybe(0.5) ? 0 : world.between(1, 90);
      phase.ends_with_first_user = world.maybe(0.25);
    }
    spec.trajectories = plan::Trajectories::make(conversations, wanted).value();
    spec.pacing = Pacing::kClosedLoop;
    spec.salted = false;
    spec.total = spec.trajectories->queries();
    spec.dataset_rows = sample;
    const double service_s = scenario.engine.service_mean.to_seconds() + delay.to_seconds();
    const double least = static_cast<double>(spec.total) * service_s / 30;  // half a minute of it
    spec.concurrency = static_cast<std::uint32_t>(std::max(least + 1, world.log_uniform(1, 60)));
  }
  return scenario;
}

}  // namespace tutti::sim
