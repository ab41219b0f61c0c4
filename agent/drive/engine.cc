#include "agent/drive/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "agent/drive/engine_inside.h"
#include "agent/target/frontend_picker.h"
#include "agent/target/http_start.h"
#include "agent/target/proxy.h"
#include "agent/target/sources.h"
#include "common/base/check.h"
#include "common/sys/limits.h"
#include "common/sys/process.h"

namespace tutti::drive {
namespace {

constexpr std::uint32_t kConnectRateDefault = 1500;  // per second: what one core opens calmly
constexpr std::uint32_t kConnectingMax = 128;        // per worker, as the reference client
constexpr std::uint32_t kPhaseMax = 0xFFFF;
constexpr std::uint64_t kFilesPerWorker = 5;  // epoll, timer, bell, stamps, one connection

// A worker makes a round of so many entries; the coordinator sends weights in lowest terms.
constexpr std::uint64_t kWeightSumMax = 100'000;

bool weights_fit(const wire::TargetSpec& target) {
  const auto& weights = target.weights;
  const auto sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  return target.balance != base::Balance::kWeighted ||
         (weights.size() == target.urls.size() && sum > 0 && sum <= kWeightSumMax);
}

std::string problems_of(const EngineConfig& config) {
  std::vector<std::string> found;
  const auto need = [&found](bool fine, const char* text) {
    if (!fine) {
      found.emplace_back(text);
    }
  };
  need(config.workers > 0, "workers is 0; at least 1 is needed");
  need(config.workers <= 1024, "more than 1024 workers; one per core is plenty");
  need(config.slots > 0, "slots is 0; at least 1 is needed");
  need(config.bodies != nullptr && config.bodies->rows() > 0, "there are no request bodies");
  need(config.queue_max > 0, "queue_max is 0; at least 1 is needed");
  need(config.record_ring > 0, "record_ring is 0; at least 1 is needed");
  need(config.target.connect_timeout.ns >= 0, "connect timeout is negative; 0 means none");
  need(config.target.request_timeout.ns >= 0, "request timeout is negative; 0 means none");
  need(config.target.idle_connection_max.ns >= 0, "idle connection age is negative; 0 means none");
  need(weights_fit(config.target),
       "balance weighted needs one weight per frontend, 1 to 100000 in all");
  need(config.target.way != base::Way::kDirect || !target::needs_multi(config.target),
       "transport direct goes through no proxy and speaks no HTTP/2; use multi");
  need(config.target.client_cert_pem.empty() == config.target.client_key_pem.empty(),
       "a client certificate needs its key, and a key its certificate");
  return fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace

// ---- orders ----------------------------------------------------------------------------------

void Engine::Inside::give(std::size_t worker, Order&& order) {
  touched[worker] = true;
  if (!backlogs[worker].empty() || !workers[worker]->order(std::move(order))) {
    // A refused order was not moved from.
    backlogs[worker].push_back(std::move(order));  // NOLINT(bugprone-use-after-move)
  }
}

void Engine::Inside::flush_backlogs() {
  for (std::size_t i = 0; i < workers.size(); ++i) {
    auto& backlog = backlogs[i];
    while (!backlog.empty() && workers[i]->order(std::move(backlog.front()))) {
      backlog.pop_front();
      touched[i] = true;
    }
  }
}

void Engine::Inside::ring_touched() {
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (touched[i]) {
      workers[i]->ring();
      touched[i] = false;
    }
  }
}

void Engine::Inside::refresh() {
  flush_backlogs();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    // Settled first: what is finished is settled, so the pair can only look more loaded than it is.
    const std::uint64_t settled = workers[i]->gauges().settled.get();
    dealer.update(i, settled, workers[i]->gauges().finished.get());
  }
}

bool Engine::Inside::deal(std::uint32_t phase, const base::IssueCommand& command) {
  const int worker = dealer.deal();
  if (worker < 0) {
    return false;
  }
  Order order;
  order.kind = Order::Kind::kIssue;
  order.phase = phase;
  order.command = command;
  give(static_cast<std::size_t>(worker), std::move(order));
  return true;
}

// Commands that waited for their phase to be armed, or for room after that.
void Engine::Inside::deal_held() {
  if (!armed || held.empty()) {
    return;
  }
  std::deque<Held> left;
  bool room = true;
  for (const auto& waiting : held) {
    room = room && (waiting.phase != armed_phase || deal(waiting.phase, waiting.command));
    if (!room || waiting.phase != armed_phase) {
      left.push_back(waiting);
    }
  }
  held = std::move(left);
}

Engine::Inside::Gathering& Engine::Inside::expect(Note::Kind kind) {
  Gathering gathering;
  gathering.ticket = ++last_ticket;
  gathering.kind = kind;
  gathering.answers_due = workers.size();
  gatherings.push_back(std::move(gathering));
  return gatherings.back();
}

void Engine::Inside::give_back_held(Gathering& gathering, const std::uint32_t* phase) {
  std::erase_if(held, [&gathering, phase](const Held& waiting) {
    const bool wanted = phase == nullptr || waiting.phase == *phase;
    if (wanted) {
      gathering.unstarted[waiting.phase].push_back(waiting.command.seq);
    }
    return wanted;
  });
}

void Engine::Inside::order_all(Order::Kind kind, std::uint64_t ticket, std::uint32_t phase,
                               const std::string& reason) {
  for (std::size_t i = 0; i < workers.size(); ++i) {
    Order order;
    order.kind = kind;
    order.ticket = ticket;
    order.phase = phase;
    if (!reason.empty()) {
      order.reason = std::make_unique<std::string>(reason);
    }
    if (kind == Order::Kind::kWarm) {
      order.warm = warm_plan(i);
    }
    give(i, std::move(order));
  }
  ring_touched();
}

// ---- warming ---------------------------------------------------------------------------------

std::unique_ptr<target::WarmPlan> Engine::Inside::warm_plan(std::size_t worker) const {
  const wire::TargetSpec& target = config.target;
  std::uint32_t wanted = target.connections_warm;
  if (target.connections_max > 0) {
    wanted = std::min(wanted, target.connections_max);
  }
  const std::uint32_t mine = share_of(wanted, workers.size(), worker);
  const std::size_t count = frontends.size();
  auto plan = std::make_unique<target::WarmPlan>();
  plan->connections.assign(count, 0);
  if (target.balance == base::Balance::kPinned) {
    plan->connections[(config.first_global_worker + worker) % count] = mine;
  } else if (target.balance == base::Balance::kWeighted) {
    std::uint64_t first = std::uint64_t{config.agent_number} * wanted;
    for (std::size_t before = 0; before < worker; ++before) {
      first += share_of(wanted, workers.size(), before);
    }
    plan->connections =
        tutti::target::dealt(tutti::target::weighted_round(target.weights), count, first, mine);
  } else {
    for (std::size_t f = 0; f < count; ++f) {
      // Rotated, so that the remainders of many workers do not all fall on the first frontend.
      plan->connections[(f + worker) % count] = share_of(mine, count, f);
    }
  }
  const std::uint32_t rate =
      target.connect_rate_max > 0 ? target.connect_rate_max : kConnectRateDefault;
  plan->rate_max = std::max(share_of(rate, workers.size(), worker), 1U);
  plan->connecting_max = kConnectingMax;
  return plan;
}

void Engine::Inside::stop() {
  if (stopped) {
    return;
  }
  stopped = true;
  Gathering& gathering = expect(Note::Kind::kAborted);
  give_back_held(gathering, nullptr);
  order_all(Order::Kind::kStop, gathering.ticket, 0, "the agent was stopped");
  bool waiting = true;
  while (waiting) {  // a full ring empties as its worker goes on
    flush_backlogs();
    ring_touched();
    waiting =
        std::any_of(backlogs.begin(), backlogs.end(), [](const auto& b) { return !b.empty(); });
  }
  for (auto& worker : workers) {
    worker->join();
  }
}

// ---- the public face -------------------------------------------------------------------------

base::Result<std::unique_ptr<Engine>> Engine::start(EngineConfig config, const base::Clock& clock) {
  std::string problems = problems_of(config);
  if (const auto http = target::start_http(); !http) {
    problems += (problems.empty() ? "" : "; ") + http.error().message;
  }
  auto frontends = target::parse_frontends(config.target);
  if (!frontends) {
    problems += (problems.empty() ? "" : "; ") + frontends.error().message;
  }
  const auto sources = target::parse_sources(config.target.source_addresses);
  if (!sources) {
    problems += (problems.empty() ? "" : "; ") + sources.error().message;
  }
  if (!problems.empty()) {
    return base::fail(base::ExitCode::kSetup, "engine: " + problems);
  }
  // A worker without a slot or a connection could do nothing.
  std::uint32_t count = std::min(config.workers, config.slots);
  if (config.target.connections_max > 0) {
    count = std::min(count, config.target.connections_max);
  }
  count = std::min<std::uint32_t>(count, static_cast<std::uint32_t>(config.queue_max));
  const std::uint64_t files = sys::open_files_limit().soft;
  const std::uint64_t files_needed = sys::open_descriptors() + kFilesPerWorker * count + 2;
  if (files_needed > files) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("engine: {} workers need {} open files before the first "
                                  "connection and the limit is {}; raise it (ulimit -n)",
                                  count, files_needed, files));
  }
  auto inside = std::make_unique<Inside>(std::move(config), clock, count);
  inside->frontends = std::move(*frontends);
  const EngineConfig& kept = inside->config;
  for (std::uint32_t i = 0; i < count; ++i) {
    WorkerConfig worker;
    worker.transport.target = &kept.target;
    worker.transport.bodies = kept.bodies;
    worker.transport.videos = &kept.videos;
    worker.transport.frontends = inside->frontends;
    worker.transport.slots = share_of(kept.slots, count, i);
    worker.transport.connections_max = share_of(kept.target.connections_max, count, i);
    worker.transport.worker = static_cast<std::uint16_t>(i);
    worker.transport.global_worker = kept.first_global_worker + i;
    worker.transport.sources = *sources;
    if (kept.target.connect_rate_max > 0) {
      worker.transport.connect_rate_max =
          std::max(share_of(kept.target.connect_rate_max, count, i), 1U);
    }
    worker.transport.trouble_rate_max = std::max(share_of(kConnectRateDefault, count, i), 1U);
    worker.queue_max = (kept.queue_max + count - 1) / count;
    worker.record_ring = kept.record_ring;
    inside->workers.push_back(std::make_unique<Worker>(std::move(worker), clock, inside->bell));
  }
  for (std::size_t i = 0; i < inside->workers.size(); ++i) {
    if (!inside->workers[i]->begin()) {
      inside->workers.resize(i);
      inside->stop();
      return base::fail(base::ExitCode::kSetup,
                        fmt::format("engine: the system gave only {} of {} threads; ask for fewer "
                                    "workers or raise its limit on threads",
                                    i, count));
    }
  }
  return std::unique_ptr<Engine>(new Engine(std::move(inside)));
}

Engine::Engine(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

Engine::~Engine() { inside_->stop(); }

void Engine::warm() {
  inside_->flush_backlogs();
  inside_->order_all(Order::Kind::kWarm, inside_->expect(Note::Kind::kWarmed).ticket, 0, {});
}

void Engine::arm(std::uint32_t phase, base::Pacing pacing, std::uint32_t slots,
                 base::Instant start_at) {
  TUTTI_CHECK(slots <= inside_->config.slots && phase <= kPhaseMax);
  inside_->refresh();
  inside_->armed = true;
  inside_->armed_phase = phase;
  inside_->dealer.arm(pacing, slots);
  inside_->meter.begin(inside_->read_workers(), inside_->clock.mono());
  std::uint64_t first_slot = std::uint64_t{inside_->config.agent_number} * slots;
  for (std::size_t i = 0; i < inside_->workers.size(); ++i) {
    Order order;
    order.kind = Order::Kind::kArm;
    order.phase = phase;
    order.pacing = pacing;
    order.slots = share_of(slots, inside_->workers.size(), i);
    order.first_slot = first_slot;
    order.start_at = start_at;
    first_slot += order.slots;
    inside_->give(i, std::move(order));
  }
  inside_->deal_held();
  inside_->ring_touched();
}

std::size_t Engine::issue(std::uint32_t phase, std::span<const base::IssueCommand> commands) {
  TUTTI_CHECK(phase <= kPhaseMax);
  if (inside_->stopped) {
    return 0;
  }
  inside_->refresh();
  inside_->deal_held();
  std::size_t taken = 0;
  if (inside_->armed && inside_->armed_phase == phase) {
    while (taken < commands.size() && inside_->deal(phase, commands[taken])) {
      ++taken;
    }
  } else {
    taken = std::min(commands.size(), room(phase));
    for (const auto& command : commands.first(taken)) {
      inside_->held.push_back({phase, command});
    }
  }
  inside_->phases[phase].taken += taken;
  inside_->ring_touched();
  return taken;
}

std::size_t Engine::play(std::uint32_t phase, std::span<const base::IssueCommand> commands,
                         std::span<const wire::Trajectory> trajectories) {
  TUTTI_CHECK(inside_->armed && inside_->armed_phase == phase);
  if (inside_->stopped) {
    return 0;
  }
  inside_->refresh();
  std::size_t taken = 0;
  for (const wire::Trajectory& leased : trajectories) {
    const int worker =
        leased.turns == 0 || leased.turns > commands.size() - taken ? -1 : inside_->dealer.deal();
    if (worker < 0) {
      break;
    }
    const auto turns = commands.subspan(taken, leased.turns);
    Order order;
    order.kind = Order::Kind::kIssue;
    order.phase = phase;
    order.trajectory = std::make_unique<Trajectory>();
    order.trajectory->conversation = {
        leased.conversation, target::routing_lines(inside_->config.target, leased.conversation),
        turns.front().sample};
    order.trajectory->turns.assign(turns.begin(), turns.end());
    inside_->give(static_cast<std::size_t>(worker), std::move(order));
    taken += leased.turns;
  }
  inside_->phases[phase].taken += taken;
  inside_->ring_touched();
  return taken;
}

void Engine::recall(std::uint32_t phase, std::uint32_t number) {
  inside_->flush_backlogs();
  auto& gathering = inside_->expect(Note::Kind::kRecalled);
  gathering.phase = phase;
  gathering.number = number;
  inside_->give_back_held(gathering, &phase);
  inside_->order_all(Order::Kind::kRecall, gathering.ticket, phase, {});
}

void Engine::abort(const std::string& reason) {
  inside_->flush_backlogs();
  auto& gathering = inside_->expect(Note::Kind::kAborted);
  inside_->give_back_held(gathering, nullptr);
  inside_->order_all(Order::Kind::kAbort, gathering.ticket, 0, reason.empty() ? "aborted" : reason);
}

int Engine::wake_fd() const { return inside_->bell.fd(); }

void Engine::poll(std::vector<EngineEvent>& out) {
  inside_->bell.quiet();
  inside_->refresh();
  inside_->deal_held();
  inside_->ring_touched();
  inside_->take_records(out);
  inside_->take_notes(out);
}

std::uint64_t Engine::outstanding(std::uint32_t phase) const {
  const auto it = inside_->phases.find(phase);
  if (it == inside_->phases.end()) {
    return 0;
  }
  std::uint64_t back = it->second.returned;
  for (const auto& worker : inside_->workers) {
    back += worker->recorder().lost(phase);
  }
  return it->second.taken - std::min(back, it->second.taken);
}

std::size_t Engine::room(std::uint32_t phase) const {
  if (inside_->armed && inside_->armed_phase == phase) {
    inside_->refresh();
    return inside_->dealer.room();
  }
  return inside_->config.queue_max - std::min(inside_->held.size(), inside_->config.queue_max);
}

std::uint32_t Engine::workers() const {
  return static_cast<std::uint32_t>(inside_->workers.size());
}

std::uint64_t Engine::records_lost() const {
  std::uint64_t sum = 0;
  for (const auto& worker : inside_->workers) {
    sum += worker->recorder().lost();
  }
  return sum;
}

void Engine::stop() { inside_->stop(); }

}  // namespace tutti::drive
