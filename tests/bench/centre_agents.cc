// tutti-bench-agents: many simulated agents in one process, for tests/bench/centre: they speak the
// real protocol over real sockets to a real coordinator, and answer every issue command with a
// record after a while. Prints one JSON line about what it did and what the coordinator used.

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/sys/limits.h"
#include "common/wire/curve.h"
#include "tests/bench/centre_agent.h"
#include "tests/bench/centre_watch.h"

namespace tutti::centre {
namespace {

// A ZeroMQ context holds 1,023 sockets and each agent has three: its own and two that watch it.
constexpr std::size_t kAgentsPerContext = 300;
constexpr Duration kTurn = Duration::millis(1);
constexpr Duration kLastWords = Duration::seconds(2);

struct Options {
  std::string connect;
  std::uint32_t agents = 100;
  double service_ms = 100;
  Service service;
  std::uint64_t hold = 0;  // commands
  double give_up_s = 300;
  pid_t watch = 0;
  std::string keys_file;
  std::string coordinator_file;
};

void describe(CLI::App& app, Options& options) {
  app.add_option("--connect", options.connect, "the coordinator's endpoint")->required();
  app.add_option("--agents", options.agents, "how many to be")
      ->check(CLI::Range(1U, 4096U))
      ->capture_default_str();
  app.add_option("--service-ms", options.service_ms,
                 "how long a query takes: uniform from half of it to one and a half")
      ->check(CLI::Range(0.0, 600'000.0))
      ->capture_default_str();
  app.add_option("--tokens", options.service.tokens, "of each reply")->capture_default_str();
  app.add_option("--text", options.service.text_bytes, "bytes of each reply's text")
      ->capture_default_str();
  app.add_option("--hold", options.hold,
                 "end no query before this many commands have come and begun, then all of them");
  app.add_option("--give-up", options.give_up_s, "seconds, whatever happens")
      ->capture_default_str();
  app.add_option("--watch", options.watch, "process id of the coordinator: its CPU is told apart");
  auto* keys = app.add_option("--keys", options.keys_file, "key pair of all agents");
  auto* coordinator =
      app.add_option("--coordinator-key", options.coordinator_file, "the coordinator's .pub");
  keys->needs(coordinator);
  coordinator->needs(keys);
}

// Instants at which the coordinator's CPU is read.
struct Marks {
  std::optional<ProcessUse> ready;   // every agent has said Prepared
  std::optional<ProcessUse> leased;  // every held command has come
  std::optional<ProcessUse> stored;  // every record was acknowledged
  Instant ready_at{};
  Instant leased_at{};
  Instant stored_at{};
};

class Fleet {
 public:
  explicit Fleet(const Options& options)
      : options_(options),
        wheel_(clock_.mono(), Duration::from_seconds(options.service_ms * 1.6e-3)) {}

  // "" or why not.
  std::string open(const wire::SocketOptions& sockets);
  base::ExitCode run();
  std::string told() const;

 private:
  void turn(Instant now);
  void mark(Instant now, bool ready, bool stored);

  const Options& options_;
  base::SystemClock clock_;
  TimerWheel wheel_;
  std::vector<std::unique_ptr<wire::SocketContext>> contexts_;
  std::vector<std::unique_ptr<CentreAgent>> agents_;
  std::vector<Flight> ended_;
  AgentTally sum_;
  std::uint64_t in_flight_max_ = 0;
  std::uint64_t slots_ = 0;
  std::uint64_t stored_records_ = 0;
  bool released_ = false;
  Marks marks_;
};

std::string Fleet::open(const wire::SocketOptions& sockets) {
  for (std::uint32_t i = 0; i < options_.agents; ++i) {
    if (i % kAgentsPerContext == 0) {
      contexts_.push_back(std::make_unique<wire::SocketContext>());
    }
    auto socket = wire::DialSocket::open(*contexts_.back(), options_.connect, sockets);
    if (!socket) {
      return socket.error().message;
    }
    agents_.push_back(std::make_unique<CentreAgent>(i, std::move(*socket), options_.service, wheel_,
                                                    clock_.mono()));
  }
  return "";
}

void Fleet::turn(Instant now) {
  ended_.clear();
  wheel_.take(now, ended_);
  for (const Flight& flight : ended_) {
    agents_[flight.agent]->ended(flight);
  }
  sum_ = {};
  bool ready = true;
  bool stored = true;
  std::uint64_t slots = 0;
  for (auto& agent : agents_) {
    agent->turn(clock_.mono());  // pings are answered with the time it is
    const AgentTally& tally = agent->tally();
    sum_.commands += tally.commands;
    sum_.returned += tally.returned;
    sum_.records += tally.records;
    sum_.in_flight += tally.in_flight;
    slots += tally.slots;
    ready = ready && agent->ready();
    stored = stored && agent->all_stored();
  }
  slots_ = std::max(slots_, slots);
  in_flight_max_ = std::max(in_flight_max_, sum_.in_flight);
  mark(now, ready, stored);
}

void Fleet::mark(Instant now, bool ready, bool stored) {
  if (ready && !marks_.ready) {
    marks_.ready = use_of(options_.watch);
    marks_.ready_at = now;
  }
  if (options_.hold > 0 && !marks_.leased && sum_.commands >= options_.hold) {
    marks_.leased = use_of(options_.watch);
    marks_.leased_at = now;
  }
  // Commands may come before their phase starts: released is what has begun.
  if (marks_.leased && !released_ && sum_.in_flight >= std::min(options_.hold, slots_)) {
    released_ = true;
    for (auto& agent : agents_) {
      agent->release();
    }
  }
  const bool all = stored && sum_.records + sum_.returned == sum_.commands;
  if (all && sum_.records > stored_records_) {
    stored_records_ = sum_.records;
    marks_.stored = use_of(options_.watch);
    marks_.stored_at = now;
  }
}

base::ExitCode Fleet::run() {
  const Instant give_up_at = clock_.mono() + Duration::from_seconds(options_.give_up_s);
  for (auto& agent : agents_) {
    agent->begin(clock_.mono());
  }
  Instant gone_at{};
  while (true) {
    const Instant now = clock_.mono();
    turn(now);
    const auto is_gone = [](const auto& agent) { return agent->gone(); };
    if (!gone_at.is_set() && std::all_of(agents_.begin(), agents_.end(), is_gone)) {
      gone_at = now;
    }
    const auto has_said_all = [](const auto& agent) { return agent->settled(); };
    if (gone_at.is_set() && (now >= gone_at + kLastWords ||
                             std::all_of(agents_.begin(), agents_.end(), has_said_all))) {
      break;
    }
    if (now >= give_up_at) {
      std::fprintf(stderr, "tutti-bench-agents: gave up after %.0f s\n", options_.give_up_s);
      return base::ExitCode::kExecution;
    }
    const timespec pause{0, kTurn.ns};
    nanosleep(&pause, nullptr);
  }
  for (const auto& agent : agents_) {
    if (agent->exit_code() != base::ExitCode::kOk) {
      std::fprintf(stderr, "tutti-bench-agents: %s\n", agent->exit_reason().c_str());
      return agent->exit_code();
    }
  }
  return base::ExitCode::kOk;
}

std::string Fleet::told() const {
  std::uint64_t illegal = 0;
  for (const auto& agent : agents_) {
    illegal += agent->machine().illegal();
  }
  const ProcessUse ready = marks_.ready.value_or(ProcessUse{});
  const ProcessUse leased = marks_.leased.value_or(ready);
  const ProcessUse stored = marks_.stored.value_or(leased);
  const auto seconds = [](Instant from, Instant to) {
    return from.is_set() && to.is_set() ? (to - from).to_seconds() : 0.0;
  };
  return fmt::format(
      "{{\"agents\":{},\"slots\":{},\"in_flight_max\":{},\"commands\":{},\"returned\":{},"
      "\"records\":{},\"illegal\":{},\"lease_cpu_s\":{:.4f},\"lease_main_cpu_s\":{:.4f},"
      "\"lease_s\":{:.3f},\"record_cpu_s\":{:.4f},\"record_main_cpu_s\":{:.4f},\"record_s\":{:.3f},"
      "\"peak_rss_kb\":{}}}\n",
      agents_.size(), slots_, in_flight_max_, sum_.commands, sum_.returned, sum_.records, illegal,
      leased.cpu_s - ready.cpu_s, leased.main_cpu_s - ready.main_cpu_s,
      seconds(marks_.ready_at, marks_.leased_at), stored.cpu_s - leased.cpu_s,
      stored.main_cpu_s - leased.main_cpu_s,
      seconds(marks_.leased_at.is_set() ? marks_.leased_at : marks_.ready_at, marks_.stored_at),
      stored.peak_rss_kb);
}

// "" or why not.
std::string read_keys(const Options& options, wire::SocketOptions& out) {
  if (options.keys_file.empty()) {
    return "";
  }
  auto keys = wire::read_key_pair(options.keys_file);
  if (!keys) {
    return keys.error().message;
  }
  auto coordinator = wire::read_public_keys(options.coordinator_file);
  if (!coordinator) {
    return coordinator.error().message;
  }
  out.keys = std::move(*keys);
  out.listener_key = coordinator->front();
  return "";
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("simulated agents for tests/bench/centre", "tutti-bench-agents");
  describe(app, options);
  CLI11_PARSE(app, argc, argv);
  options.service.mean = Duration::from_seconds(options.service_ms * 1e-3);
  options.service.hold = options.hold > 0;
  std::signal(SIGPIPE, SIG_IGN);
  sys::raise_open_files_limit();
  wire::SocketOptions sockets;
  Fleet fleet(options);
  std::string trouble = read_keys(options, sockets);
  if (trouble.empty()) {
    trouble = fleet.open(sockets);
  }
  if (!trouble.empty()) {
    std::fprintf(stderr, "tutti-bench-agents: %s\n", trouble.c_str());
    return static_cast<int>(base::ExitCode::kSetup);
  }
  const base::ExitCode code = fleet.run();
  std::fputs(fleet.told().c_str(), stdout);
  return static_cast<int>(code);
}

}  // namespace
}  // namespace tutti::centre

int main(int argc, char** argv) {
  try {
    return tutti::centre::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tutti-bench-agents: unexpected: %s\n", e.what());
    return static_cast<int>(tutti::base::ExitCode::kExecution);
  }
}
