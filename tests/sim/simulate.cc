#include "tests/sim/simulate.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "tests/sim/fates.h"

namespace tutti::sim {
namespace {

// One universe: the nodes, the faults, the verdict.
class Play {
 public:
  explicit Play(const Scenario& scenario)
      : scenario_(scenario),
        world_(scenario.seed),
        witness_(world_),
        network_(world_, scenario.network),
        coordinator_(world_, network_, witness_, scenario.plan, a_clock()),
        fates_(world_, witness_) {
    std::vector<plan::PhaseSpec> specs;
    for (const conduct::RunPhase& phase : scenario.plan.phases) {
      specs.push_back(phase.schedule);
    }
    witness_.expect(specs);
    coordinator_.plant(scenario.planted);
    for (std::size_t i = 0; i + scenario.absent < scenario.agents; ++i) {
      add_agent(fmt::format("agent-{}", i));
    }
  }

  Report run() {
    coordinator_.begin();
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      start_agent(i, Duration::millis(static_cast<std::int64_t>(world_.below(200))));
    }
    for (const Fault& fault : scenario_.faults) {
      world_.at(fault.at, [this, fault] { inject(fault); });
    }
    const Instant end = world_.now() + scenario_.limit;
    bool more = true;
    while (more && !ended()) {
      for (int i = 0; more && i < 32; ++i) {
        more = world_.advance(end);
      }
    }
    judge();
    return report();
  }

 private:
  SimClock a_clock() {
    const auto skew = static_cast<std::int64_t>(world_.below(std::uint64_t{1} << 50));
    return {skew, world_.uniform(-scenario_.clock_drift_max, scenario_.clock_drift_max)};
  }

  std::size_t add_agent(const std::string& name) {
    AgentOptions options;
    options.name = name;
    options.clock = a_clock();
    options.engine = scenario_.engine;
    options.engine.planted = scenario_.planted;
    options.counting = scenario_.counting;
    options.link.heartbeat = scenario_.plan.heartbeat;
    options.link.lost_after = scenario_.plan.lost_after;
    options.link.retransmit_after = Duration::millis(100);
    options.bodies_cached = scenario_.bodies_cached;
    options.listening = scenario_.listening;
    agents_.push_back(std::make_unique<AgentNode>(world_, network_, witness_, options));
    return agents_.size() - 1;
  }

  void start_agent(std::size_t i, Duration delay) {
    world_.after(delay, [this, i] {
      agents_[i]->begin();
      if (scenario_.listening && !coordinator_.crashed()) {
        coordinator_.dial(agents_[i]->node());
      }
    });
  }

  void inject(const Fault& fault) {
    AgentNode& agent = *agents_[fault.agent % agents_.size()];
    switch (fault.kind) {
      case FaultKind::kStop:
        coordinator_.ask_stop(conduct::StopKind::kInterrupt);
        break;
      case FaultKind::kWatchdogStop:
        coordinator_.ask_stop(conduct::StopKind::kWatchdog);
        break;
      case FaultKind::kAgentCrash:
        if (!agent.gone()) {
          fates_.crashed(agent, coordinator_);
          agent.crash();
        }
        break;
      case FaultKind::kAgentSignal:
        fates_.signalled(agent.node());
        agent.signal();
        break;
      case FaultKind::kAgentFreeze:
        if (!agent.gone()) {
          fates_.frozen(agent, coordinator_, fault.lasts);
          agent.freeze(fault.lasts);
        }
        break;
      case FaultKind::kCoordinatorFreeze:
        fates_.coordinator_silent(fault.lasts, running());
        coordinator_.freeze(fault.lasts);
        break;
      case FaultKind::kCoordinatorSlow:
        slow_down(world_.now() + fault.lasts);
        break;
      case FaultKind::kPartition: {
        world_.note("cut", agent.node());
        network_.cut(0, agent.node());
        const std::size_t node = agent.node();
        world_.after(fault.lasts, [this, node] {
          world_.note("heal", node);
          network_.heal(0, node);
        });
        break;
      }
      case FaultKind::kCoordinatorCrash:
        world_.note("coordinator crash", 0);
        fates_.coordinator_silent(base::kFarFuture - Instant{}, running());
        coordinator_.crash();
        break;
      case FaultKind::kDiskFull:
        world_.note("disk full", 0);
        coordinator_.fill_disk();
        break;
      case FaultKind::kLateAgent:
        start_agent(add_agent(fmt::format("agent-{}", fault.agent)), Duration{});
        break;
    }
  }

  std::set<std::size_t> running() const {
    std::set<std::size_t> nodes;
    for (const auto& agent : agents_) {
      if (agent->machine().state() == session::AgentState::kInPhase) {
        nodes.insert(agent->node());
      }
    }
    return nodes;
  }

  // Awake for a tenth of the time.
  void slow_down(Instant until) {
    const Duration nap = Duration::millis(static_cast<std::int64_t>(world_.between(9, 450)));
    if (world_.now() >= until) {
      return;
    }
    fates_.coordinator_silent(nap, {});
    coordinator_.freeze(nap);
    world_.after(Duration::nanos(nap.ns + nap.ns / 9), [this, until] { slow_down(until); });
  }

  bool ended() const {
    const bool gone = std::all_of(agents_.begin(), agents_.end(),
                                  [](const auto& agent) { return agent->gone(); });
    return gone && (coordinator_.finished() || coordinator_.crashed());
  }

  // ---- the promises --------------------------------------------------------------------------

  void judge() {
    if (!coordinator_.finished() && !coordinator_.crashed()) {
      witness_.complain("the run did not end: state {}, phase {}",
                        conduct::name_of(coordinator_.machine().state()),
                        coordinator_.machine().phase() == nullptr
                            ? -1
                            : static_cast<int>(coordinator_.machine().phase()->phase()));
    }
    for (const auto& agent : agents_) {
      if (!agent->gone()) {
        witness_.complain("node {} did not end: state {}, {} in hand", agent->node(),
                          session::name_of(agent->machine().state()), agent->machine().in_hand());
      }
    }
    if (coordinator_.finished()) {
      judge_phases();
      judge_outcome();
    }
    judge_spools();
    judge_counts();
    const Duration lost_after = scenario_.plan.lost_after;
    fates_.judge_detection(coordinator_, lost_after);
    for (const auto& agent : agents_) {
      fates_.judge_orphan(*agent, coordinator_, lost_after);
    }
    judge_clocks();
  }

  // What the coordinator thinks of an agent's clock is right within the bound it gives: at every
  // instant from the beginning to now, whatever the network did to the pings.
  void judge_clocks() {
    constexpr int kLooks = 40;
    for (const auto& agent : agents_) {
      const roster::Agent* known = coordinator_.machine().roster().find(agent->node());
      if (known == nullptr || known->clock.exchanges() == 0) {
        continue;
      }
      for (int i = 0; i <= kLooks; ++i) {
        const Instant truth{1 + world_.now().ns / kLooks * i};
        const Instant ours = coordinator_.clock().at(truth);
        const roster::ClockOffset offset = known->clock.offset_at(ours);
        const Duration off = agent->clock().at(truth) - ours - offset.value;
        if (std::llabs(off.ns) > offset.error.ns + 2) {  // each clock shows whole nanoseconds
          witness_.complain("node {}: its clock is off by {} ns at {} ns, the bound says {} ns",
                            agent->node(), off.ns, truth.ns, offset.error.ns);
          break;
        }
      }
    }
  }

  void judge_phases() {
    for (std::uint32_t p = 0; p < witness_.phases().size(); ++p) {
      const PhaseTruth& truth = witness_.phases()[p];
      const auto totals = coordinator_.totals().find(p);
      if (totals == coordinator_.totals().end()) {
        if (truth.started > 0) {
          witness_.complain("phase {} started {} queries and never ended", p, truth.started);
        }
        continue;
      }
      judge_phase(p, truth, totals->second);
    }
  }

  void judge_phase(std::uint32_t p, const PhaseTruth& truth, const conduct::PhaseTotals& totals) {
    static const std::map<base::Seq, wire::Outcome> kNone;
    const auto found = coordinator_.ledger().records().find(p);
    const auto& records = found == coordinator_.ledger().records().end() ? kNone : found->second;
    std::set<base::Seq> missing;
    for (const conduct::Missing& one : totals.missing) {
      missing.insert(one.seq);
      if (one.why.empty()) {
        witness_.complain("phase {}: seq {} is missing without a reason", p, one.seq);
      }
      if (scenario_.engine.record_loss == 0 && one.why.rfind("the agent ended", 0) == 0) {
        witness_.complain("phase {}: seq {}: {}, but no record was lost", p, one.seq, one.why);
      }
    }
    if (missing.size() != totals.missing.size()) {
      witness_.complain("phase {}: a query is named missing twice", p);
    }
    if (totals.ok + totals.failed + totals.cancelled != records.size()) {
      witness_.complain("phase {}: the machine counts {} records, the ledger has {}", p,
                        totals.ok + totals.failed + totals.cancelled, records.size());
    }
    judge_end_of_prefix(p, truth, totals);
    const std::set<base::Seq> withheld(totals.withheld.begin(), totals.withheld.end());
    for (base::Seq seq = 0; seq < truth.starts.size(); ++seq) {
      const bool started = truth.starts[seq] > 0;
      const bool recorded = records.count(seq) > 0;
      const bool named = missing.count(seq) > 0;
      if (seq >= totals.prefix && (started || recorded || named)) {
        witness_.complain("phase {}: seq {} lies beyond the prefix {} but was {}", p, seq,
                          totals.prefix, started ? "started" : "recorded or named");
      }
      if (withheld.count(seq) > 0) {
        if (started || recorded || named || truth.trajectories == nullptr) {
          witness_.complain("phase {}: seq {} is withheld but was {}", p, seq,
                            started ? "started" : "recorded or named");
        }
        continue;
      }
      if (seq < totals.prefix && recorded == named) {
        witness_.complain("phase {}: seq {} of the prefix {} {}", p, seq, totals.prefix,
                          recorded ? "has a record and is named missing"
                                   : "has no record and is not named missing");
      }
      if (recorded && !started) {
        witness_.complain("phase {}: seq {} has a record but was never started", p, seq);
      }
    }
  }

  // A stop issues no more than it must: the last of the prefix was started, and before all commands
  // were back; or nobody can know, since its agent was lost.
  void judge_end_of_prefix(std::uint32_t p, const PhaseTruth& truth,
                           const conduct::PhaseTotals& totals) {
    if (totals.prefix == 0) {
      return;
    }
    const base::Seq last = totals.prefix - 1;
    const bool unknown = !totals.missing.empty() && totals.missing.back().seq == last &&
                         !totals.missing.back().agent.empty();
    const Instant settled = coordinator_.settled_at(p);
    if (!unknown && truth.starts[last] == 0) {
      witness_.complain("phase {}: the prefix {} ends in a query nobody started", p, totals.prefix);
    }
    if (!unknown && settled.is_set() && truth.started_at[last] > settled) {
      witness_.complain("phase {}: seq {} was issued after the stop and fills no hole", p, last);
    }
  }

  void judge_outcome() {
    const conduct::Outcome& outcome = coordinator_.outcome();
    bool lost = false;
    for (const auto& [p, totals] : coordinator_.totals()) {
      for (const conduct::Missing& one : totals.missing) {
        lost = lost || !one.agent.empty();
      }
    }
    if (lost && (outcome.valid || outcome.exit == base::ExitCode::kOk)) {
      witness_.complain("queries are missing, but the run is valid or ended with 0");
    }
    if (!outcome.complete && (outcome.exit == base::ExitCode::kOk || outcome.reasons.empty())) {
      witness_.complain("an incomplete run ended with 0 or without a reason");
    }
    if (scenario_.quiet() && (!outcome.complete || !outcome.valid || illegal() > 0 ||
                              outcome.exit != base::ExitCode::kOk)) {
      witness_.complain("nothing went wrong, but the run is {}{}, {} events made no sense",
                        outcome.complete ? "complete" : "incomplete",
                        outcome.valid ? "" : " and invalid", illegal());
    }
    const bool named =
        std::any_of(outcome.reasons.begin(), outcome.reasons.end(),
                    [](const std::string& reason) { return reason == CoordinatorNode::kDiskFull; });
    const bool good = outcome.complete || (outcome.valid && coordinator_.refused_records());
    if (named != coordinator_.refused() || (named && good)) {
      witness_.complain("records were {}refused, and the run {} it", named ? "" : "not ",
                        named ? "says" : "does not say");
    }
    judge_losses(outcome);
    if (outcome.complete) {
      for (std::uint32_t p = 0; p < scenario_.plan.phases.size(); ++p) {
        const auto totals = coordinator_.totals().find(p);
        const bool capped = scenario_.plan.phases[p].issue_cap.ns > 0 ||
                            scenario_.plan.phases[p].ends_with_first_user;
        if (totals == coordinator_.totals().end() ||
            (!capped && (totals->second.prefix != scenario_.plan.phases[p].schedule.total ||
                         !totals->second.withheld.empty()))) {
          witness_.complain("a complete run did not issue all of phase {}", p);
        }
      }
    }
  }

  // Each lost agent is named; with on_agent_loss: continue it stops nobody else.
  void judge_losses(const conduct::Outcome& outcome) {
    bool left = false;
    for (const roster::Agent* agent : coordinator_.machine().roster().by_name()) {
      left = left || !agent->lost;
      const std::string words = fmt::format("agent {} was lost", agent->name());
      const auto says = [&words](const std::string& text) {
        return text.find(words) != std::string::npos;
      };
      const auto& notices = coordinator_.notices();
      if (agent->lost && std::none_of(notices.begin(), notices.end(), says)) {
        witness_.complain("agent {} was lost, and nobody says so", agent->name());
      }
    }
    if (scenario_.absent > 0 &&
        (outcome.exit != base::ExitCode::kSetup || outcome.reasons.empty() ||
         outcome.reasons[0].find("agents joined within") == std::string::npos)) {
      witness_.complain("an agent did not come, and the run was not called off for it");
    }
    // With a slot for everybody, whoever is left can go on.
    const bool served =
        std::all_of(scenario_.plan.phases.begin(), scenario_.plan.phases.end(),
                    [this](const conduct::RunPhase& phase) {
                      const bool closed = phase.schedule.pacing == base::Pacing::kClosedLoop;
                      return !closed || phase.schedule.concurrency >= scenario_.agents;
                    });
    const bool goes_on = scenario_.plan.on_agent_loss == conduct::AgentLoss::kContinue &&
                         scenario_.only_agents_fail() && served && left;
    const bool too_late = std::any_of(  // what was given back when all others were drained
        outcome.reasons.begin(), outcome.reasons.end(), [](const std::string& reason) {
          return reason.find("not all queries were issued") != std::string::npos;
        });
    if (goes_on && outcome.any_phase && !outcome.complete && !too_late) {
      witness_.complain("agents are left, and the run did not go on: {}",
                        outcome.reasons.empty() ? "" : outcome.reasons[0]);
    }
  }

  // Whatever became of the coordinator and the network: a query that was started is in the ledger,
  // or on an agent's disk, unless its process was killed before it had written it.
  void judge_spools() {
    if (scenario_.engine.record_loss > 0) {
      return;
    }
    std::map<std::uint32_t, std::set<base::Seq>> kept;
    for (const auto& agent : agents_) {
      for (const wire::RecordBatch& batch : agent->spool()) {
        for (const wire::Record& record : batch.records) {
          kept[record.phase].insert(record.seq);
        }
      }
    }
    for (std::uint32_t p = 0; p < witness_.phases().size(); ++p) {
      const PhaseTruth& truth = witness_.phases()[p];
      const auto records = coordinator_.ledger().records().find(p);
      for (base::Seq seq = 0; seq < truth.starts.size(); ++seq) {
        const bool stored =
            records != coordinator_.ledger().records().end() && records->second.count(seq) > 0;
        if (truth.starts[seq] > 0 && !stored && kept[p].count(seq) == 0 &&
            !fates_.is_crashed(truth.started_by[seq])) {
          witness_.complain("phase {}: seq {} is in no spool and not in the ledger", p, seq);
        }
      }
    }
  }

  // What an agent counted is in the ledger or in its spool, unless it was killed; and where nothing
  // went wrong, every answer of a performance phase was counted before its phase ended.
  void judge_counts() {
    const auto& ledger = coordinator_.ledger();
    SimCounter::Told answered;
    bool whole = true;
    for (const auto& agent : agents_) {
      std::set<std::pair<std::uint32_t, base::Seq>> kept = ledger.counts();
      for (const wire::RecordBatch& batch : agent->spool()) {
        for (const wire::TokenCount& count : batch.tokens) {
          kept.emplace(count.phase, count.seq);
        }
      }
      const SimCounter& counter = agent->counter();
      whole = whole && counter.whole();
      answered.insert(counter.counted().begin(), counter.counted().end());
      answered.insert(counter.uncounted().begin(), counter.uncounted().end());
      for (const auto& count : counter.counted()) {
        if (!agent->crashed() && kept.count(count) == 0) {
          witness_.complain("node {}: the count of seq {} of phase {} is lost", agent->node(),
                            count.second, count.first);
        }
      }
    }
    if (!scenario_.quiet() || !whole || !scenario_.plan.counting.terms.wanted()) {
      return;
    }
    for (const auto& [phase, records] : ledger.records()) {
      const bool counts =
          scenario_.plan.phases.at(phase).schedule.kind == base::PhaseKind::kPerformance;
      for (const auto& [seq, outcome] : records) {
        const bool wanted = counts && outcome == wire::Outcome::kOk;
        if (wanted != (answered.count({phase, seq}) > 0)) {
          witness_.complain("seq {} of phase {} was {}counted", seq, phase, wanted ? "not " : "");
        }
      }
    }
  }

  Report report() {
    Report report;
    report.complaints = witness_.complaints();
    report.hash = world_.trace().hash();
    report.happened = world_.happened();
    report.finished = coordinator_.finished();
    if (report.finished) {
      report.outcome = coordinator_.outcome();
    }
    report.phases = witness_.phases();
    for (const auto& [phase, totals] : coordinator_.totals()) {
      report.totals.push_back(totals);
    }
    report.illegal = illegal();
    report.counts = coordinator_.ledger().counts().size();
    report.took = Duration{world_.now().ns};
    if (!report.complaints.empty()) {  // words cost more than the world they tell of
      report.tail = world_.trace().tail();
      report.description = describe();
    }
    return report;
  }

  std::uint64_t illegal() const {
    std::uint64_t sum = coordinator_.machine().illegal();
    for (const auto& agent : agents_) {
      sum += agent->machine().illegal();
    }
    return sum;
  }

  std::string describe() const {
    std::string text = fmt::format("seed {}: {} agents, prefetch {}, loss {:.3f}, dup {:.3f}\n",
                                   scenario_.seed, scenario_.agents, scenario_.plan.prefetch,
                                   scenario_.network.loss, scenario_.network.duplication);
    text += fmt::format(
        "  service {:.3f} s, fails {:.3f}, loses {:.3f}, hangs {:.3f}, in flight max {}\n",
        scenario_.engine.service_mean.to_seconds(), scenario_.engine.failure,
        scenario_.engine.record_loss, scenario_.engine.hang, scenario_.plan.in_flight_max);
    if (const conduct::PhaseRun* phase = coordinator_.machine().phase()) {
      text += fmt::format(
          "  last phase: mode {}, prefix {}, outstanding {}, strays {}, tail recalls {}\n",
          static_cast<int>(phase->mode()), phase->prefix_end(), phase->outstanding(),
          phase->strays(), phase->tail_recalls());
      for (const conduct::Seat& seat : phase->seats()) {
        text += fmt::format(
            "    {}: slots {}, leased {}, outstanding {}, lost records {}, batch {}{}{}{}\n",
            seat.name, seat.slots, seat.leased, seat.outstanding, seat.records_lost,
            seat.batch_stored, seat.lost ? ", lost" : "", seat.recall_out != 0 ? ", recalling" : "",
            seat.drained ? fmt::format(", drained at {}", seat.drained->last_batch) : "");
      }
    }
    for (const conduct::RunPhase& phase : scenario_.plan.phases) {
      text += fmt::format("  phase {}: pacing {}, C {}, total {}, cap {:.3f} s, drain {:.3f} s\n",
                          phase.name, static_cast<int>(phase.schedule.pacing),
                          phase.schedule.concurrency, phase.schedule.total,
                          phase.issue_cap.to_seconds(), phase.drain_timeout.to_seconds());
    }
    for (const Fault& fault : scenario_.faults) {
      text += fmt::format("  fault {} at {:.3f} s, agent {}, lasts {:.3f} s\n",
                          static_cast<int>(fault.kind), static_cast<double>(fault.at.ns) / 1e9,
                          fault.agent, fault.lasts.to_seconds());
    }
    for (const auto& [phase, totals] : coordinator_.totals()) {
      if (!totals.missing.empty()) {
        const conduct::Missing& last = totals.missing.back();
        text += fmt::format("  phase {}: {} missing, the last is {} of agent \"{}\": {}\n", phase,
                            totals.missing.size(), last.seq, last.agent, last.why);
      }
    }
    for (const std::string& notice : coordinator_.notices()) {
      text += "  notice: " + notice + "\n";
    }
    return text;
  }

  Scenario scenario_;
  World world_;
  Witness witness_;
  SimNetwork network_;
  CoordinatorNode coordinator_;
  std::vector<std::unique_ptr<AgentNode>> agents_;
  Fates fates_;
};

}  // namespace

Report simulate(const Scenario& scenario) { return Play(scenario).run(); }

std::string explain(const Report& report) {
  std::string text = report.description;
  for (const std::string& complaint : report.complaints) {
    text += "  BROKEN: " + complaint + "\n";
  }
  return text + "the end of its trace:\n" + report.tail;
}

}  // namespace tutti::sim
