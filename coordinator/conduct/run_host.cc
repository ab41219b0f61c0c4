#include "coordinator/conduct/run_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "common/base/log.h"
#include "common/data/body_transfer.h"
#include "common/sys/limits.h"
#include "common/sys/rendezvous.h"
#include "common/sys/suspend.h"
#include "coordinator/conduct/centre_room.h"
#include "coordinator/conduct/clock_fit.h"

namespace tutti::conduct {
namespace {

constexpr base::Duration kClosePatience = base::Duration::seconds(2);
constexpr int kLocalAgentsPatienceMs = 3000;
constexpr base::Duration kTermEcho = base::Duration::seconds(1);
constexpr base::Duration kWatchEvery = base::Duration::seconds(10);

void log_notice(const Notice& notice) {
  switch (notice.level) {
    case NoticeLevel::kInfo:
      base::log_info("conduct", notice.text);
      return;
    case NoticeLevel::kWarning:
      base::log_warning("conduct", notice.text);
      return;
    case NoticeLevel::kError:
      base::log_error("conduct", notice.text);
      return;
  }
}

class RunHost {
 public:
  RunHost(HostSettings settings, const base::Clock& clock, sys::StopSignals& signals,
          ledger::Ledger ledger)
      : settings_(std::move(settings)),
        clock_(clock),
        signals_(signals),
        machine_(settings_.plan),
        terminal_(stdout),
        ledger_(std::move(ledger)) {}

  ~RunHost() {
    if (published_) {
      std::error_code ignored;
      std::filesystem::remove(*settings_.rendezvous, ignored);
    }
    if (!private_folder_.empty()) {
      std::error_code ignored;
      std::filesystem::remove_all(private_folder_, ignored);
    }
  }
  RunHost(const RunHost&) = delete;
  RunHost& operator=(const RunHost&) = delete;

  base::Status begin();
  base::Status publish();
  RunOutcome run();

 private:
  struct Shipping {
    AgentKey agent = 0;
    bool bodies = false;  // wanted …
    bool model = false;   // … and after them, if both
    std::size_t offset = 0;
  };

  void turn();
  void feed(const Event& event);
  void perform(Command&& command);
  void take(const PeerEvent& event);
  void take_batch(AgentKey agent, const wire::RecordBatch& batch);
  void refuse_batch(AgentKey agent, const wire::RecordBatch& batch);
  void take_progress(AgentKey agent, const wire::Progress& progress);
  void take_signals();
  void watch_children();
  void watch_sleep();
  void ship_bodies();
  void begin_phase(const PhaseStarted& started);
  void draw();
  void tell_watch();
  std::vector<report::AgentFacts> agent_facts(base::Instant ended_at);

  HostSettings settings_;
  const base::Clock& clock_;
  sys::StopSignals& signals_;
  RunMachine machine_;
  console::Terminal terminal_;
  ledger::Ledger ledger_;
  std::unique_ptr<Peers> peers_;
  LocalAgents local_;
  std::string private_folder_;  // of the ipc socket
  bool published_ = false;      // the rendezvous file is there

  base::Instant now_{};
  bool finished_ = false;
  std::uint32_t signals_seen_ = 0;
  base::Instant terminated_at_{};  // the last SIGTERM
  std::vector<Command> commands_;
  std::vector<PeerEvent> arrivals_;
  std::vector<Shipping> shipping_;
  std::map<AgentKey, std::uint32_t> numbers_;  // as told in Welcome
  std::map<AgentKey, std::size_t> rows_;       // in the live view
  std::map<AgentKey, report::AgentHealth> health_;
  std::map<AgentKey, report::HealthSeries> series_;
  std::map<AgentKey, std::uint32_t> performance_slots_;
  std::unique_ptr<console::LiveView> view_;
  std::vector<report::PhaseFacts> phases_;
  std::uint64_t phase_stored_ = 0;
  std::uint64_t phase_failed_ = 0;
  sys::SuspendWatch suspend_watch_;
  std::string unstored_;  // why records are stored no more
  base::Instant watch_told_at_{};
  base::Instant started_at_{};
  bool interrupted_by_user_ = false;
};

base::Status RunHost::begin() {
  now_ = clock_.mono();
  PeerSettings peers;
  peers.dial = settings_.dial;
  if (settings_.listen) {
    peers.listen.push_back(*settings_.listen);
  }
  if (settings_.local_agents > 0) {
    // Socket paths are short (108 bytes), run folders need not be.
    private_folder_ = fmt::format("{}/tutti-{}-{}", std::filesystem::temp_directory_path().string(),
                                  getpid(), settings_.plan.run.hex().substr(0, 8));
    std::error_code error;
    std::filesystem::create_directory(private_folder_, error);
    std::filesystem::permissions(private_folder_, std::filesystem::perms::owner_all, error);
    if (error) {
      return base::fail(base::ExitCode::kSetup,
                        fmt::format("{}: {}; set TMPDIR to a folder that can be written",
                                    private_folder_, error.message()));
    }
    peers.listen.push_back("ipc://" + private_folder_ + "/agents");
  }
  peers.sockets.insecure = settings_.insecure;
  peers.sockets.keys = settings_.keys;
  peers.agent_keys = settings_.agent_keys;
  peers.link.heartbeat = settings_.plan.heartbeat;
  peers.link.lost_after = settings_.plan.lost_after;
  // Leases carry acks, and agents repeat nothing before four times as long: no need to wake them.
  peers.link.ack_after = base::Duration::millis(100);
  // Not before the machine has called the run off, naming who is silent.
  peers.dial_patience = settings_.plan.timeouts.gather + base::Duration::seconds(2);
  auto opened = Peers::open(std::move(peers), now_);
  if (!opened) {
    return tl::unexpected(opened.error());
  }
  peers_ = std::move(*opened);
  for (const auto& endpoint : peers_->listening()) {
    if (endpoint.rfind("tcp://", 0) == 0) {
      base::log_info("conduct", fmt::format("listening for agents at {}", endpoint));
    }
  }
  if (settings_.rendezvous) {
    auto status = publish();
    if (!status) {
      return status;
    }
  }
  for (std::size_t i = 0; i < settings_.dial.size(); ++i) {
    base::log_info("conduct", "dialling agent at " + settings_.dial[i]);
  }
  if (settings_.local_agents > 0) {
    const std::string logs = settings_.folder + "/logs";
    std::error_code error;
    std::filesystem::create_directories(logs, error);
    return local_.start(settings_.local_agents, "ipc://" + private_folder_ + "/agents",
                        settings_.workers, logs);
  }
  return {};
}

base::Status RunHost::publish() {
  std::vector<std::string> endpoints;
  for (const auto& endpoint : peers_->listening()) {
    if (endpoint.rfind("tcp://", 0) == 0) {
      endpoints = sys::reachable_endpoints(endpoint);
    }
  }
  auto status = sys::publish_endpoints(*settings_.rendezvous, endpoints);
  published_ = status.has_value();
  return status;
}

RunOutcome RunHost::run() {
  started_at_ = now_;
  const std::int64_t started_wall_ns = clock_.wall_unix_ns();
  peers_->announce_dialled(arrivals_);
  feed(Tick{});
  while (!finished_ || !peers_->all_closed()) {
    turn();
  }
  if (view_ != nullptr && settings_.show_progress) {
    terminal_.finish(*view_, now_);
  }
  local_.stop(kLocalAgentsPatienceMs);
  const base::Instant ended_at = clock_.mono();
  std::vector<report::AgentFacts> agents = agent_facts(ended_at);
  return RunOutcome{machine_.outcome(),   std::move(phases_), std::move(agents),
                    started_at_,          ended_at,           started_wall_ns,
                    interrupted_by_user_, machine_.budget(),  std::move(ledger_)};
}

// One turn: everything that arrived, then time, then what is due on the wire, then sleep.
void RunHost::turn() {
  now_ = clock_.mono();
  peers_->receive(now_, arrivals_);
  // Read anew: a pong that was taken came before this, and bounds of clocks rest on that.
  now_ = clock_.mono();
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    take(arrivals_[i]);
  }
  arrivals_.clear();
  take_signals();
  watch_children();
  watch_sleep();
  if (now_ >= machine_.next_tick()) {
    feed(Tick{peers_->all_heard()});
  }
  ship_bodies();
  peers_->set_lost_after(machine_.lost_after());
  peers_->poll(now_, arrivals_);
  draw();
  tell_watch();
  if (!arrivals_.empty()) {
    return;  // losses are events like any other: take them before sleeping
  }
  std::vector<wire::WaitFd> fds{{signals_.fd(), false}};
  base::Instant until = std::min(peers_->next_deadline(), machine_.next_tick());
  if (!shipping_.empty()) {
    until = std::min(until, now_ + base::Duration::millis(1));
  }
  peers_->wait(now_, until, fds);
}

void RunHost::feed(const Event& event) {
  commands_.clear();
  machine_.step(event, now_, commands_);
  for (auto& command : commands_) {
    perform(std::move(command));
  }
}

void RunHost::perform(Command&& command) {
  if (auto* send = std::get_if<Send>(&command)) {
    if (const auto* welcome = std::get_if<wire::Welcome>(&send->message)) {
      numbers_[send->agent] = welcome->agent;
    }
    peers_->send(send->agent, send->message, now_);
  } else if (const auto* ship = std::get_if<ShipBodies>(&command)) {
    shipping_.push_back(Shipping{ship->agent, ship->bodies, ship->model});
  } else if (const auto* close = std::get_if<Close>(&command)) {
    peers_->close(close->agent, now_, kClosePatience);
  } else if (const auto* started = std::get_if<PhaseStarted>(&command)) {
    begin_phase(*started);
  } else if (const auto* issuing = std::get_if<PhaseIssuingEnded>(&command)) {
    if (!issuing->reason.empty()) {
      base::log_info("conduct", issuing->reason);
    }
    if (view_ != nullptr) {
      view_->note_issued(issuing->issued);
    }
  } else if (const auto* ended = std::get_if<PhaseEnded>(&command)) {
    if (ended->phase < phases_.size()) {
      phases_[ended->phase].stop_at = ended->at;
      phases_[ended->phase].issued = ended->totals.prefix;
      ledger_.withhold(ended->phase, ended->totals.withheld);
      view_->end_phase();
    }
  } else if (const auto* notice = std::get_if<Notice>(&command)) {
    log_notice(*notice);
  } else if (std::holds_alternative<Finish>(command)) {
    finished_ = true;
    peers_->close_all(now_, kClosePatience);
  }
}

void RunHost::take(const PeerEvent& event) {
  if (const auto* joined = std::get_if<PeerJoined>(&event)) {
    feed(*joined);
    return;
  }
  if (const auto* lost = std::get_if<PeerLost>(&event)) {
    if (view_ != nullptr && rows_.count(lost->agent) != 0) {
      view_->note_lost(rows_[lost->agent]);
    }
    feed(*lost);
    return;
  }
  const auto& arrival = std::get<Arrival>(event);
  if (const auto* batch = std::get_if<wire::RecordBatch>(&arrival.message)) {
    take_batch(arrival.agent, *batch);
    return;
  }
  if (const auto* progress = std::get_if<wire::Progress>(&arrival.message)) {
    take_progress(arrival.agent, *progress);
  }
  feed(MessageFrom{arrival.agent, arrival.message});
}

void RunHost::take_batch(AgentKey agent, const wire::RecordBatch& batch) {
  const auto number = numbers_.find(agent);
  if (number == numbers_.end()) {
    base::log_warning("conduct", "records from an agent that has not joined: ignored");
    return;
  }
  if (const roster::Agent* known = machine_.roster().find(agent); known != nullptr && known->lost) {
    return;  // what it still had is called missing by now; not acknowledged, it stays in its spool
  }
  if (!unstored_.empty()) {
    refuse_batch(agent, batch);
    return;
  }
  const auto accepted = ledger_.accept(number->second, batch);
  if (!accepted) {
    // Nothing that comes after is stored either: an ack speaks for all batches up to its own.
    unstored_ = fmt::format(
        "records cannot be stored: {}; what is not here stays in the agents' "
        "spools (tutti report --from-spools)",
        accepted.error().message);
    refuse_batch(agent, batch);
    return;
  }
  RecordsStored stored{agent, batch.number, {}};
  stored.records.reserve(accepted->fresh.size());
  std::uint64_t failed = 0;
  for (const auto& record : accepted->fresh) {
    failed += record.outcome == wire::Outcome::kOk ? 0 : 1;
    stored.records.push_back(
        StoredRecord{static_cast<std::uint16_t>(record.phase), record.seq, record.outcome});
  }
  if (view_ != nullptr) {
    view_->note_stored(accepted->fresh.size(), failed);
  }
  phase_stored_ += accepted->fresh.size();
  phase_failed_ += failed;
  feed(stored);
}

void RunHost::refuse_batch(AgentKey agent, const wire::RecordBatch& batch) {
  RecordsRefused refused{agent, batch.number, {}, unstored_};
  for (const auto& record : batch.records) {
    refused.records.push_back(StoredRecord{record.phase, record.seq, record.outcome});
  }
  feed(refused);
}

void RunHost::take_progress(AgentKey agent, const wire::Progress& progress) {
  health_[agent].see(progress.health);
  const std::size_t rows_max = report::HealthSeries::rows_max_of(settings_.plan.agents_expected);
  series_.try_emplace(agent, rows_max)
      .first->second.add({progress.phase, progress.in_flight, progress.health});
  if (settings_.progress_log != nullptr) {
    settings_.progress_log->push_back(ProgressSeen{agent, now_, progress});
  }
  const auto row = rows_.find(agent);
  if (view_ != nullptr && row != rows_.end() && machine_.phase() != nullptr &&
      machine_.phase()->phase() == progress.phase) {
    view_->note_progress(row->second, progress, now_);
  }
}

// The first asks for an orderly stop, the second cancels what is in flight, the third leaves.
// SIGUSR1 and SIGUSR2 name the first and the second step outright, however often they come: a
// launcher's words. A batch system may send SIGTERM twice in one breath: that is one.
void RunHost::take_signals() {
  while (const auto signal = signals_.take()) {
    const bool echo =
        *signal == SIGTERM && terminated_at_.is_set() && now_ - terminated_at_ < kTermEcho;
    if (*signal == SIGTERM) {
      terminated_at_ = now_;
    }
    if (echo || (*signal == SIGUSR1 && signals_seen_ >= 1) ||
        (*signal == SIGUSR2 && signals_seen_ >= 2)) {
      continue;
    }
    const char* const name = sys::StopSignals::name(*signal);
    interrupted_by_user_ = true;
    if (*signal == SIGUSR2 && signals_seen_ == 0) {
      ++signals_seen_;
      feed(StopAsked{StopKind::kInterrupt, name});
    }
    ++signals_seen_;
    if (signals_seen_ >= 3) {
      local_.kill_now();
      _exit(static_cast<int>(base::ExitCode::kInterrupted));
    }
    base::log_warning("conduct",
                      signals_seen_ == 1
                          ? fmt::format("{}: issuing stops, what is in flight may end; again to "
                                        "cancel it",
                                        name)
                          : fmt::format("{} again: cancelling what is in flight", name));
    feed(StopAsked{StopKind::kInterrupt, name});
  }
}

void RunHost::watch_children() {
  if (finished_ || !local_.any()) {
    return;
  }
  for (const auto& end : local_.reap()) {
    base::log_error("conduct", fmt::format("agent {} ended: {}; see {}/logs/{}.log", end.name,
                                           end.how, settings_.folder, end.name));
    for (const auto* agent : machine_.roster().by_name()) {
      if (agent->name() == end.name && !agent->lost) {
        feed(PeerLost{agent->key, "its process ended: " + end.how});
        return watch_children();  // the roster changed under us
      }
    }
    if (machine_.state() == RunState::kGathering) {
      feed(StopAsked{StopKind::kWatchdog,
                     fmt::format("agent {} could not start: {}", end.name, end.how)});
    }
  }
}

void RunHost::watch_sleep() {
  const base::Duration lasted = suspend_watch_.look(sys::read_suspended());
  if (lasted.ns > 0 && !finished_) {
    feed(StopAsked{StopKind::kWatchdog,
                   fmt::format("the coordinator's host was suspended for {:.1f} s: agents may have "
                               "given it up, and their clocks are not known any more",
                               lasted.to_seconds())});
  }
}

// One slice for each at a time: compressing takes a while, and the loop has others to serve.
void RunHost::ship_bodies() {
  for (auto at = shipping_.begin(); at != shipping_.end();) {
    const std::string_view file = at->bodies ? settings_.bodies->file() : settings_.model;
    if (peers_->can_send(at->agent, data::kSliceBytes)) {
      const std::string_view slice = file.substr(at->offset, data::kSliceBytes);
      wire::BodyChunk chunk;
      chunk.offset = at->offset;
      chunk.compressed = data::compress_slice(slice);
      chunk.last = at->offset + slice.size() == file.size();
      chunk.model = !at->bodies;
      peers_->send(at->agent, chunk, now_);
      at->offset += slice.size();
      if (chunk.last) {
        (at->bodies ? at->bodies : at->model) = false;
        at->offset = 0;
      }
    }
    const bool gone = !machine_.roster().alive(at->agent);
    at = gone || !(at->bodies || at->model) ? shipping_.erase(at) : at + 1;
  }
}

void RunHost::begin_phase(const PhaseStarted& started) {
  const RunPhase& phase = settings_.plan.phases[started.phase];
  report::PhaseFacts facts;
  facts.name = phase.name;
  facts.kind = phase.schedule.kind;
  facts.start_at = started.start_at;
  facts.pacing = phase.schedule.pacing;
  facts.first_row = phase.schedule.first_row;
  facts.plays = phase.schedule.trajectories != nullptr;
  phases_.resize(std::max<std::size_t>(phases_.size(), started.phase + 1));
  phases_[started.phase] = std::move(facts);
  phase_stored_ = 0;
  phase_failed_ = 0;
  watch_told_at_ = {};  // told at the end of this turn: agents are armed first

  if (view_ == nullptr) {
    std::vector<std::string> names;
    for (const auto& [agent, slots] : started.slots) {
      rows_[agent] = names.size();
      const auto* known = machine_.roster().find(agent);
      names.push_back(known == nullptr ? "?" : known->name());
    }
    view_ = std::make_unique<console::LiveView>(std::move(names), settings_.frontends);
  }
  std::vector<std::uint32_t> targets(rows_.size(), 0);  // of agents lost before: nothing
  for (const auto& [agent, slots] : started.slots) {
    if (phase.schedule.kind == base::PhaseKind::kPerformance) {
      performance_slots_[agent] = slots;
    }
    targets[rows_.at(agent)] = phase.schedule.pacing == base::Pacing::kClosedLoop ? slots : 0;
  }
  view_->begin_phase(phase.name, phase.schedule.total, std::move(targets), started.start_at);
  base::log_info("conduct", fmt::format("phase {}: {} queries", phase.name, phase.schedule.total));
}

void RunHost::tell_watch() {
  if (settings_.watch && !finished_ && !phases_.empty() && !phases_.back().stop_at.is_set() &&
      now_ - watch_told_at_ >= kWatchEvery) {
    watch_told_at_ = now_;
    settings_.watch(phases_.back(), phase_stored_, phase_failed_);
  }
}

void RunHost::draw() {
  if (settings_.show_progress && view_ != nullptr && !finished_ && machine_.phase() != nullptr &&
      now_ >= machine_.phase()->start_at()) {
    terminal_.draw(*view_, now_);
  }
}

std::vector<report::AgentFacts> RunHost::agent_facts(base::Instant ended_at) {
  std::vector<report::AgentFacts> agents;
  for (const auto* agent : machine_.roster().by_name()) {
    agents.resize(std::max<std::size_t>(agents.size(), agent->number + 1));
    report::AgentFacts& facts = agents[agent->number];
    facts.name = agent->name();
    facts.host = agent->hello.host;
    facts.version = agent->hello.software_version;
    facts.workers = agent->hello.workers;
    facts.slots = performance_slots_.count(agent->key) != 0 ? performance_slots_[agent->key] : 0;
    facts.clock_rtt = agent->clock.rtt_min();
    facts.lost_at = agent->lost ? agent->lost_at : base::Instant{};
    facts.health = health_[agent->key];
    facts.fd_limit = agent->hello.fd_limit;
    facts.ephemeral_ports = agent->hello.ephemeral_ports;
    facts.health_series = std::move(series_[agent->key]);
    if (agent->clock.exchanges() > 0) {
      ledger_.set_clock(agent->number,
                        fit_clock(agent->clock, agent->lost ? agent->lost_at : ended_at));
    }
  }
  return agents;
}

// kSetup when the records of this run cannot fit here.
base::Result<CentreRoom> room_for(const HostSettings& settings) {
  std::error_code error;
  const auto disk = std::filesystem::space(settings.folder, error);
  const CentreHost host{sys::available_memory(),
                        error ? 0 : std::max<std::uint64_t>(disk.available, 1)};
  CentreRoom room = centre_room(settings.plan, host);
  if (!room.problems.empty()) {
    return base::fail(
        base::ExitCode::kSetup,
        fmt::format("this host cannot hold the run's records: {}", fmt::join(room.problems, "; ")));
  }
  for (const auto& warning : room.warnings) {
    base::log_warning("conduct", warning);
  }
  return room;
}

}  // namespace

base::Result<RunOutcome> conduct_run(HostSettings settings, const base::Clock& clock,
                                     sys::StopSignals& signals) {
  if (const auto problems = check(settings.plan); !problems.empty()) {
    std::string text = "this run cannot be planned:";
    for (const auto& problem : problems) {
      text += fmt::format("\n  {}: {}", problem.field, problem.remedy);
    }
    return base::fail(base::ExitCode::kInput, text);
  }
  sys::raise_open_files_limit();  // a descriptor per agent, several per agent that is dialled
  auto room = room_for(settings);
  if (!room) {
    return tl::unexpected(room.error());
  }
  auto ledger = ledger::Ledger::open(settings.folder);
  if (!ledger) {
    return tl::unexpected(ledger.error());
  }
  RunHost host(std::move(settings), clock, signals, std::move(*ledger));
  if (auto status = host.begin(); !status) {
    return tl::unexpected(status.error());
  }
  RunOutcome outcome = host.run();
  outcome.budget.insert(outcome.budget.end(), room->budget.begin(), room->budget.end());
  outcome.budget.insert(outcome.budget.end(), room->warnings.begin(), room->warnings.end());
  return outcome;
}

}  // namespace tutti::conduct
