#include "agent/session/agent_host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "agent/drive/engine.h"
#include "agent/record/spool.h"
#include "agent/session/agent_machine.h"
#include "agent/session/coordinator_link.h"
#include "agent/session/model_cache.h"
#include "agent/session/reply_counter.h"
#include "agent/session/session_meter.h"
#include "agent/target/sources.h"
#include "common/base/log.h"
#include "common/data/body_transfer.h"
#include "common/sys/address.h"
#include "common/sys/limits.h"
#include "common/sys/process.h"
#include "common/sys/suspend.h"

namespace tutti::session {
namespace {

constexpr base::Duration kLastWords = base::Duration::seconds(2);

// The servers' API key comes as a header.
bool holds_key(const wire::Message& message) {
  const auto* const prepare = std::get_if<wire::Prepare>(&message);
  return prepare != nullptr &&
         std::any_of(prepare->target.headers.begin(), prepare->target.headers.end(),
                     [](const wire::Header& header) { return header.name == "Authorization"; });
}

wire::Hello hello_of(const AgentSettings& settings) {
  wire::Hello hello;
  hello.software_version = TUTTI_VERSION;
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  hello.host = host;
  hello.pid = static_cast<std::uint32_t>(getpid());
  hello.agent_name =
      settings.name.empty() ? fmt::format("{}:{}", hello.host, hello.pid) : settings.name;
  hello.cores = sys::usable_cores();
  hello.workers = settings.workers;
  hello.fd_limit = sys::open_files_limit().soft;
  hello.ephemeral_ports = sys::ephemeral_ports();
  hello.source_addresses = settings.source_addresses;
  hello.own_addresses = sys::own_addresses();
  hello.memory_bytes = sys::available_memory();
  hello.counts_tokens = model::has_tokenizers();
  return hello;
}

// One run: from the first word to the last.
class AgentHost {
 public:
  AgentHost(const AgentSettings& settings, const base::Clock& clock, sys::StopSignals& signals,
            CoordinatorLink& link)
      : settings_(settings),
        clock_(clock),
        signals_(signals),
        link_(link),
        machine_(AgentConfig{hello_of(settings)}),
        cache_(settings.cache_folder),
        model_(settings.cache_folder) {}

  base::ExitCode run();
  bool signalled() const { return signalled_; }

 private:
  void turn();
  void feed(Event event);
  void perform(Command&& command);
  SessionReading session_reading() const {
    return {sys::thread_cpu(), sys::tcp_counters(),
            counter_ != nullptr ? counter_->cpu() : base::Duration{}};
  }
  wire::Progress read_gauges(bool close_interval);
  void send(const wire::Message& message);
  void open_bodies(const OpenBodies& command);
  void store_bodies(const StoreBodies& command);
  void start_engine(EngineStart&& command);
  base::Status start_counting();
  void put_counting(wire::Health& health);
  void take_counts();
  void issue(const EngineIssue& command);
  void append_to_spool(const wire::RecordBatch& batch);
  void heed(const base::Status& status);  // of the spool
  void take_engine_events();
  void take(drive::EngineEvent&& event);
  void take_signals();
  void finish();

  const AgentSettings& settings_;
  const base::Clock& clock_;
  sys::StopSignals& signals_;
  CoordinatorLink& link_;
  AgentMachine machine_;
  data::BodyCache cache_;
  ModelCache model_;
  std::unique_ptr<ReplyCounter> counter_;  // null: none are counted here
  std::optional<data::BodySet> bodies_;
  std::unique_ptr<drive::Engine> engine_;
  std::optional<record::Spool> spool_;
  bool spool_failed_ = false;
  std::uint64_t unspooled_batches_ = 0;

  SessionMeter meter_;
  sys::SuspendWatch suspend_watch_;

  base::Instant now_{};
  base::Instant wait_ends_at_{};  // the wait before this turn ends then, at the latest
  bool connected_told_ = false;
  bool lost_told_ = false;
  bool signalled_ = false;
  bool new_terms_ = false;  // of liveness, in this message
  const pid_t parent_ = getppid();
  base::Instant leave_at_{};  // a stop signal that waits for the coordinator
  std::optional<Exit> exit_;
  std::vector<wire::WaitFd> fds_;  // of the last wait: the signals', the engine's
  std::vector<Command> commands_;
  std::vector<wire::Message> messages_;
  std::vector<drive::EngineEvent> engine_events_;
  std::string bodies_hash_;
  wire::Encoded spooled_;  // the newest spooled batch as it is about to be sent
  std::uint64_t spooled_number_ = 0;
};

base::ExitCode AgentHost::run() {
  now_ = wait_ends_at_ = clock_.mono();
  link_.begin(settings_.patience, now_);
  if (!link_.listening()) {
    connected_told_ = true;
    feed(Connected{false});
  }
  while (!exit_) {
    turn();
  }
  finish();
  return exit_->code;
}

void AgentHost::turn() {
  now_ = clock_.mono();
  if (link_.mute(now_)) {
    feed(StoodStill{now_ - link_.spoke_at()});
  }
  if (const auto lasted = suspend_watch_.look(sys::read_suspended()); lasted.ns > 0) {
    feed(Suspended{lasted});
  }
  const base::Instant looked_at = now_;  // silence is judged up to here
  link_.receive(now_, messages_);
  // Read anew: a ping that was taken was sent before this, and bounds of clocks rest on that.
  now_ = clock_.mono();
  if (!connected_told_ && link_.called()) {
    connected_told_ = true;
    feed(Connected{true});
  }
  for (auto& message : messages_) {
    if (holds_key(message)) {
      sys::keep_memory_private();
    }
    feed(MessageFrom{std::move(message)});
    // Borne with until it was armed: what was no silence then is one now.
    if (std::exchange(new_terms_, false) && link_.mute(now_)) {
      feed(StoodStill{now_ - link_.spoke_at()});
    }
  }
  messages_.clear();
  take_counts();
  take_engine_events();
  take_signals();
  if (!lost_told_ && link_.lost(looked_at)) {
    lost_told_ = true;
    feed(LinkLost{link_.why_lost(looked_at)});
  }
  if (now_ >= machine_.next_tick()) {
    feed(Tick{});
  }
  if (exit_) {
    return;
  }
  link_.poll(now_);
  fds_.assign(1, {signals_.fd(), false});
  if (engine_ != nullptr) {
    fds_.push_back({engine_->wake_fd(), false});
  }
  const base::Instant began_at = now_;
  now_ = clock_.mono();
  meter_.note_turn(wait_ends_at_, began_at, now_);
  wait_ends_at_ = std::max(now_, std::min({link_.next_deadline(), machine_.next_tick(),
                                           now_ + CoordinatorLink::kSleepMax}));
  link_.wait(now_, wait_ends_at_, fds_);
}

void AgentHost::feed(Event event) {
  // A command may feed an event itself (an answer of the disk): each level has its own list.
  std::vector<Command> commands;
  commands.swap(commands_);
  machine_.step(std::move(event), now_, commands);
  for (auto& command : commands) {
    perform(std::move(command));
  }
  commands.clear();
  commands_.swap(commands);
}

void AgentHost::perform(Command&& command) {
  if (const auto* say = std::get_if<Send>(&command)) {
    send(say->message);
  } else if (const auto* terms = std::get_if<SetLiveness>(&command)) {
    link_.set_liveness(terms->heartbeat, terms->lost_after);
    new_terms_ = true;
  } else if (const auto* open = std::get_if<OpenBodies>(&command)) {
    open_bodies(*open);
  } else if (const auto* store = std::get_if<StoreBodies>(&command)) {
    store_bodies(*store);
  } else if (auto* start = std::get_if<EngineStart>(&command)) {
    start_engine(std::move(*start));
  } else if (const auto* arm = std::get_if<EngineArm>(&command)) {
    engine_->arm(arm->phase.phase, arm->phase.pacing, arm->phase.slots, arm->phase.start_at);
    meter_.begin(session_reading());
  } else if (const auto* work = std::get_if<EngineIssue>(&command)) {
    issue(*work);
  } else if (const auto* recall = std::get_if<EngineRecall>(&command)) {
    engine_->recall(recall->phase, recall->number);
  } else if (const auto* abort = std::get_if<EngineAbort>(&command)) {
    engine_->abort(abort->reason);
  } else if (std::holds_alternative<ReadGauges>(command)) {
    if (engine_ != nullptr) {
      feed(Gauges{read_gauges(std::get<ReadGauges>(command).close_interval)});
    }
  } else if (auto* replies = std::get_if<CountReplies>(&command)) {
    counter_->add(std::move(replies->replies));
  } else if (std::holds_alternative<HurryCounting>(command)) {
    counter_->hurry();
  } else if (std::holds_alternative<StopCounting>(command)) {
    counter_->drop();
  } else if (const auto* spool = std::get_if<SpoolAppend>(&command)) {
    append_to_spool(spool->batch);
  } else if (const auto* note = std::get_if<SpoolNote>(&command)) {
    if (spool_ && !spool_failed_) {
      heed(spool_->note(wire::encode(note->message).bytes));
    }
  } else if (const auto* forget = std::get_if<SpoolForget>(&command)) {
    if (spool_) {
      spool_->forget(forget->number);
    }
  } else if (std::holds_alternative<SpoolRelease>(command)) {
    if (spool_) {
      spool_->release();
    }
  } else if (auto* exit = std::get_if<Exit>(&command)) {
    exit_ = std::move(*exit);
  }
}

wire::Progress AgentHost::read_gauges(bool close_interval) {
  wire::Progress progress = engine_->progress();
  if (close_interval) {
    // The engine's time, not this turn's: its counters are read now.
    progress.health = engine_->health(clock_.mono());
    progress.health.spool_bytes = spool_ ? spool_->bytes_on_disk() : 0;
    progress.health.unspooled_batches = unspooled_batches_;
    put_counting(progress.health);
    meter_.close(session_reading(), progress.health);
  }
  return progress;
}

void AgentHost::send(const wire::Message& message) {
  const auto* batch = std::get_if<wire::RecordBatch>(&message);
  if (batch != nullptr && batch->number == spooled_number_) {
    spooled_number_ = 0;
    link_.send(std::move(spooled_), now_);  // encoded once, for the spool
    return;
  }
  link_.send(wire::encode(message), now_);
}

void AgentHost::open_bodies(const OpenBodies& command) {
  bool model_present = false;
  if (command.counting.wanted()) {
    const auto here = model_.open(command.counting.model_hash, command.counting.model_bytes);
    if (!here) {
      feed(BodiesOpened{false, here.error().message});
      return;
    }
    model_present = *here;
  }
  bodies_hash_ = command.hash;
  auto found = cache_.find(command.hash);
  if (found) {
    bodies_ = std::move(*found);
    base::log_info("session", fmt::format("body set {} is cached", command.hash));
    feed(BodiesOpened{true, {}, model_present});
    return;
  }
  const auto status = cache_.begin(command.hash, command.bytes);
  feed(BodiesOpened{false, status ? "" : status.error().message, model_present});
}

void AgentHost::store_bodies(const StoreBodies& command) {
  const wire::BodyChunk& chunk = command.chunk;
  const auto status = chunk.model ? model_.add(chunk.offset, chunk.compressed)
                                  : cache_.add(chunk.offset, chunk.compressed);
  if (!status) {
    feed(BodiesStored{status.error().message});
    return;
  }
  if (!chunk.last) {
    return;
  }
  if (chunk.model) {
    const auto whole = model_.finish();
    feed(BodiesStored{whole ? "" : whole.error().message});
    return;
  }
  auto set = cache_.finish();
  if (!set) {
    feed(BodiesStored{set.error().message});
    return;
  }
  bodies_ = std::move(*set);
  feed(BodiesStored{});
}

// Before the engine: what reads a large tokenizer must not hold up replies.
base::Status AgentHost::start_counting() {
  if (!model_.wanted()) {
    return {};
  }
  auto counter = model_.counter();
  if (!counter) {
    return tl::unexpected(counter.error());
  }
  const std::size_t threads = ReplyCounter::threads_for(sys::usable_cores(), settings_.workers);
  counter_ = std::make_unique<ReplyCounter>(std::move(*counter), threads);
  base::log_info("session", fmt::format("counting tokens of replies, threads: {}", threads));
  return {};
}

void AgentHost::put_counting(wire::Health& health) {
  if (counter_ != nullptr) {
    const auto peak = counter_->take_peak();
    health.counting_queued = peak.replies;
    health.counting_queued_bytes = peak.bytes;
    health.replies_counted = counter_->counted();
    health.replies_uncounted = counter_->uncounted();
  }
}

void AgentHost::take_counts() {
  RepliesCounted counted;
  if (counter_ != nullptr && counter_->take(counted)) {
    feed(std::move(counted));
  }
}

void AgentHost::start_engine(EngineStart&& command) {
  if (const auto counting = start_counting(); !counting) {
    feed(EngineWarmed{counting.error().message, {}, 0});
    return;
  }
  drive::EngineConfig config;
  config.target = std::move(command.target);
  config.bodies = &*bodies_;
  config.videos = {settings_.video_folder, machine_.run()};
  config.workers = settings_.workers;
  config.slots = std::max(1U, command.slots);
  config.first_global_worker = machine_.number() * settings_.workers;
  config.agent_number = machine_.number();
  config.queue_max = command.queue_max;
  auto engine = drive::Engine::start(std::move(config), clock_);
  if (!engine) {
    feed(EngineWarmed{engine.error().message, {}, 0});
    return;
  }
  engine_ = std::move(*engine);
  auto spool = record::Spool::create(settings_.spool_folder, machine_.run(), machine_.number());
  if (!spool) {
    feed(EngineWarmed{"no spool: " + spool.error().message, {}, 0});
    return;
  }
  spool_ = std::move(*spool);
  engine_->warm();
}

void AgentHost::issue(const EngineIssue& command) {
  const std::size_t taken =
      command.trajectories.empty()
          ? engine_->issue(command.phase, command.commands)
          : engine_->play(command.phase, command.commands, command.trajectories);
  if (taken < command.commands.size()) {
    // The coordinator leases within queue_max; more is its defect, and it must be loud.
    exit_ =
        Exit{base::ExitCode::kExecution, fmt::format("leased {} commands beyond this agent's queue",
                                                     command.commands.size() - taken)};
  }
}

void AgentHost::append_to_spool(const wire::RecordBatch& batch) {
  spooled_ = wire::encode(wire::Message(batch));
  spooled_number_ = batch.number;
  if (!spool_ || spool_failed_) {
    ++unspooled_batches_;
    return;
  }
  const bool whole = spool_->given_up_to() == 0;
  heed(spool_->append(batch.number, spooled_.bytes));
  unspooled_batches_ += spool_failed_ ? 1 : 0;
  if (whole && spool_->given_up_to() > 0) {
    base::log_warning("session",
                      "the spool needs room: from now on the oldest batches that the coordinator "
                      "has stored are given up here (said once)");
  }
}

void AgentHost::heed(const base::Status& status) {
  if (!status) {
    // The records still go to the coordinator; only the net below them is gone.
    spool_failed_ = true;
    base::log_error("session", status.error().message +
                                   "; records go on to the coordinator without a copy here");
  }
}

void AgentHost::take_engine_events() {
  if (engine_ == nullptr) {
    return;
  }
  engine_events_.clear();
  engine_->poll(engine_events_);
  for (auto& event : engine_events_) {
    take(std::move(event));
  }
}

void AgentHost::take(drive::EngineEvent&& event) {
  if (auto* records = std::get_if<drive::EngineRecords>(&event)) {
    feed(RecordsDone{std::move(records->records)});
  } else if (auto* recalled = std::get_if<drive::EngineRecalled>(&event)) {
    feed(EngineRecalled{recalled->phase, recalled->number, std::move(recalled->unstarted)});
  } else if (auto* warmed = std::get_if<drive::EngineWarmed>(&event)) {
    feed(EngineWarmed{{}, std::move(warmed->frontends), warmed->connections_open});
  } else if (auto* aborted = std::get_if<drive::EngineAborted>(&event)) {
    for (auto& part : aborted->parts) {
      feed(EngineAborted{part.phase, std::move(part.unstarted)});
    }
    if (aborted->parts.empty()) {
      feed(EngineAborted{machine_.phase_number(), {}});
    }
  }
}

void AgentHost::take_signals() {
  const bool none = !fds_.empty() && !fds_.front().readable;
  while (const auto signal = none ? std::nullopt : signals_.take()) {
    const char* const name = sys::StopSignals::name(*signal);
    if (*signal == SIGUSR1 || *signal == SIGUSR2) {
      // A batch system's warning goes to every task; it is the coordinator that ends a run.
      base::log_info("session", fmt::format("{}: left to the coordinator", name));
      continue;
    }
    const bool first = !signalled_;
    signalled_ = true;
    if (first && link_.called() && settings_.term_grace.ns > 0 && getppid() == parent_) {
      base::log_warning("session",
                        fmt::format("{}: leaving with the run, or after --term-grace", name));
      leave_at_ = now_ + settings_.term_grace;
      continue;
    }
    if (now_ < leave_at_ && getppid() == parent_) {
      continue;  // said twice
    }
    base::log_warning("session", fmt::format("{}: leaving", name));
    leave_at_ = {};
    feed(StopAsked{name});
  }
  if (leave_at_.is_set() && now_ >= leave_at_) {
    leave_at_ = {};
    feed(StopAsked{"told to stop, and --term-grace is over"});
  }
}

void AgentHost::finish() {
  const base::Instant until = now_ + kLastWords;
  while (connected_told_ && !lost_told_ && !link_.settled() && now_ < until) {
    now_ = clock_.mono();
    messages_.clear();
    link_.receive(now_, messages_);
    link_.poll(now_);
    std::vector<wire::WaitFd> none;
    link_.wait(now_, std::min(until, link_.next_deadline()), none);
  }
  if (engine_ != nullptr) {
    engine_->stop();
  }
  if (spool_ && exit_->code == base::ExitCode::kOk) {
    spool_->discard();
  } else if (spool_ && spool_->bytes_on_disk() > 0) {
    base::log_warning("session",
                      fmt::format("records are kept in {}; tutti report --from-spools reads them",
                                  settings_.spool_folder));
  }
  base::log_info("session", exit_->reason.empty() ? "done" : exit_->reason);
}

}  // namespace

namespace {

base::Result<wire::SocketOptions> socket_options(const AgentSettings& settings) {
  wire::SocketOptions options;
  options.insecure = settings.insecure;
  if (settings.keys_file.empty()) {
    return options;
  }
  auto keys = wire::read_key_pair(settings.keys_file);
  if (!keys) {
    return tl::unexpected(keys.error());
  }
  auto coordinator = wire::read_public_keys(settings.coordinator_file);
  if (!coordinator) {
    return tl::unexpected(coordinator.error());
  }
  if (coordinator->size() != 1) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: {} public keys; a run has one coordinator",
                                  settings.coordinator_file, coordinator->size()));
  }
  options.keys = std::move(*keys);
  options.listener_key = coordinator->front();
  return options;
}

}  // namespace

base::ExitCode serve(const AgentSettings& settings, const base::Clock& clock,
                     sys::StopSignals& signals) {
  sys::raise_open_files_limit();
  if (const auto sources = target::parse_sources(settings.source_addresses); !sources) {
    base::log_error("session", sources.error().message);
    return sources.error().code;
  }
  if (!settings.keys_file.empty()) {
    sys::keep_memory_private();
  }
  const auto options = socket_options(settings);
  if (!options) {
    base::log_error("session", options.error().message);
    return options.error().code;
  }
  auto link = CoordinatorLink::open(settings.connect, settings.listen, *options);
  if (!link) {
    base::log_error("session", link.error().message);
    return link.error().code;
  }
  base::log_info("session", fmt::format("{} {}", settings.listen ? "listening at" : "dialling",
                                        (*link)->endpoint()));
  while (true) {
    AgentHost host(settings, clock, signals, **link);
    const base::ExitCode code = host.run();
    if (settings.connect || host.signalled()) {
      return code;
    }
  }
}

}  // namespace tutti::session
