// slurm run: coordinator and agents as two steps of an allocation, watched by this process.
// slurm task: one task of a step that holds both.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/time.h"
#include "common/spec/read.h"
#include "common/sys/signals.h"
#include "common/wire/curve.h"
#include "coordinator/commands.h"
#include "coordinator/conduct/local_agents.h"
#include "coordinator/launch/slurm_plan.h"

namespace tutti {
namespace {

using base::Duration;
using base::ExitCode;
using base::Instant;

constexpr int kTurnMs = 50;
constexpr Duration kAgentsEnd = Duration::seconds(15);  // after the coordinator, by themselves
constexpr Duration kKillAfter = Duration::seconds(10);  // from SIGTERM to SIGKILL for an srun
constexpr int kNotFound = 127;
constexpr std::uint32_t kWaitMaxS = 24 * 3600;

using launch::LaunchOptions;

void describe_common(CLI::App& app, LaunchOptions& to) {
  app.add_option("--port", to.port, "where the coordinator listens")->capture_default_str();
  app.add_option("--agent-workers", to.workers, "I/O threads of each agent");
  app.add_option("--wait", to.wait_s, "seconds that agents and coordinator look for each other")
      ->check(CLI::Range(1U, kWaitMaxS))
      ->capture_default_str();
  app.add_option("--keys", to.keys,
                 "a folder that every host sees with coordinator.key and agent.key (tutti keys "
                 "new); with --shared a run's keys are made without it");
  app.add_flag("--insecure", to.insecure,
               "agents without keys: prompts and API keys then travel in clear text and whoever "
               "reaches the port can join");
}

void describe_run(CLI::App& app, LaunchOptions& to) {
  describe_common(app, to);
  app.add_option("--jobid", to.job, "the job to start in, when not inside its allocation");
  app.add_option("--hosts", to.hosts, "host list of the run (default: all of the allocation)");
  app.add_option("--agents-on", to.agents_on, "hosts that get an agent (default: all)");
  app.add_option("--coordinator", to.coordinator, "the coordinator's host (default: the first)");
  app.add_option("--shared", to.shared,
                 "a folder that every host sees: agents then find the coordinator through a file "
                 "in it, and any free port will do");
  app.add_option("--grace", to.grace_s,
                 "seconds from the first signal until the steps are killed; keep it below Slurm's "
                 "KillWait (30)")
      ->check(CLI::Range(1U, kWaitMaxS))
      ->capture_default_str();
  app.add_option("--srun", to.srun, "the srun to call")->capture_default_str();
  app.add_option("--srun-option", to.srun_words,
                 "one more word for every srun line, written --srun-option=--mem=0; repeatable")
      ->allow_extra_args(false);
}

// Options up to --, then the benchmark's words.
base::Result<LaunchOptions> parse(const Words& words, void (*describe)(CLI::App&, LaunchOptions&)) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  LaunchOptions options;
  options.benchmark.assign(dashes == words.end() ? dashes : dashes + 1, words.end());
  Words own(words.begin(), dashes);
  std::reverse(own.begin(), own.end());  // as CLI11 takes a vector
  CLI::App app;
  describe(app, options);
  try {
    app.parse(own);
  } catch (const CLI::ParseError& e) {
    return base::fail(ExitCode::kUsage, e.what());
  }
  return options;
}

launch::Programs programs() {
  const std::string folder = conduct::program_folder();
  return {folder + "/tutti", folder + "/tutti-agent"};
}

// A folder of this run alone on the shared one. The agents' file of addresses is in it, and the
// run's keys: made here, before any step starts, read by both steps, gone after.
base::Result<std::string> make_private_folder(const std::string& shared) {
  const std::string folder = fmt::format("{}/tutti-{}", std::filesystem::absolute(shared).string(),
                                         base::fresh_id().hex());
  if (mkdir(folder.c_str(), 0700) != 0) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("--shared: {}: {}; name a folder that exists and can be written",
                                  folder, std::strerror(errno)));
  }
  return folder;
}

base::Status make_keys(const std::string& folder) {
  for (const char* name : {"/coordinator.key", "/agent.key"}) {
    if (auto status = wire::write_key_pair(folder + name, wire::fresh_key_pair()); !status) {
      return status;
    }
  }
  return {};
}

// One srun.
class Step {
 public:
  Step(std::string name, launch::Words line) : name_(std::move(name)), line_(std::move(line)) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() {
    if (running()) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  base::Status start();
  bool running() const { return pid_ > 0; }
  void signal(int number) const {
    if (running()) {
      kill(pid_, number);
    }
  }
  // True when it has ended in this call.
  bool reap();
  // As a shell would say it.
  int exit_code() const { return code_; }

 private:
  std::string name_;
  launch::Words line_;
  pid_t pid_ = -1;
  int code_ = 0;
};

base::Status Step::start() {
  // The line itself may hold an API key: it is nowhere printed.
  std::vector<char*> arguments;
  for (auto& word : line_) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    // A group of its own: a terminal's Ctrl-C comes here, and to srun only as we pass it on.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
      _exit(1);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvp(arguments[0], arguments.data());
    _exit(kNotFound);
  }
  if (pid < 0) {
    return base::fail(ExitCode::kSetup, fmt::format("{}: cannot start {}: {}", name_, line_[0],
                                                    std::strerror(errno)));
  }
  pid_ = pid;
  return {};
}

bool Step::reap() {
  int status = 0;
  if (!running() || waitpid(pid_, &status, WNOHANG) != pid_) {
    return false;
  }
  pid_ = -1;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (code_ == kNotFound) {
    base::log_error("slurm", fmt::format("{}: {} cannot be run: is it installed and on PATH?",
                                         name_, line_[0]));
  } else {
    base::log_info("slurm", fmt::format("{}: ended with {}", name_, code_));
  }
  return true;
}

// Both steps from start to end. The coordinator's end is the run's; the agents follow it.
class Launcher {
 public:
  Launcher(const launch::Launch& launch, Duration grace)
      : grace_(grace),
        coordinator_("coordinator", launch.coordinator_line),
        agents_("agents", launch.agents_line),
        has_agents_(!launch.agents_line.empty()) {}

  base::Result<int> run();

 private:
  void take_signals(Instant now);
  void stop(int step, Instant now);
  void watch_time(Instant now);

  const Duration grace_;
  sys::StopSignals signals_;
  base::SystemClock clock_;
  Step coordinator_;
  Step agents_;
  const bool has_agents_;
  int asked_ = 0;  // 1: to stop, 2: to cancel what is in flight, 3: killed
  Instant asked_at_{};
  Instant agents_by_{};  // when their patience ends, once the coordinator has
  Instant kill_at_ = base::kFarFuture;
};

base::Result<int> Launcher::run() {
  if (auto status = coordinator_.start(); !status) {
    return tl::unexpected(status.error());
  }
  if (has_agents_) {
    if (auto status = agents_.start(); !status) {
      return tl::unexpected(status.error());
    }
  }
  while (coordinator_.running() || agents_.running()) {
    pollfd ready{signals_.fd(), POLLIN, 0};
    poll(&ready, 1, kTurnMs);
    const Instant now = clock_.mono();
    if (coordinator_.reap()) {
      agents_by_ = now + kAgentsEnd;
    }
    if (agents_.reap() && coordinator_.running() && agents_.exit_code() != 0) {
      base::log_error("slurm",
                      fmt::format("the agents' step ended early with {}; the coordinator decides",
                                  agents_.exit_code()));
    }
    take_signals(now);
    watch_time(now);
  }
  return coordinator_.exit_code();
}

// srun passes SIGUSR1 and SIGUSR2 on to its tasks; SIGTERM it turns into SIGKILL for them, at once.
void Launcher::stop(int step, Instant now) {
  if (step <= asked_) {
    return;
  }
  asked_ = step;
  asked_at_ = asked_at_.is_set() ? asked_at_ : now;
  if (step == 1) {
    base::log_warning("slurm", "stopping: issuing ends, what is in flight may end");
    coordinator_.signal(SIGUSR1);
  } else if (step == 2) {
    base::log_warning("slurm", "stopping: what is in flight is cancelled");
    coordinator_.signal(SIGUSR2);
  } else {
    base::log_error("slurm", "stopping: both steps are killed");
    coordinator_.signal(SIGTERM);
    agents_.signal(SIGTERM);
    kill_at_ = now + kKillAfter;
  }
}

void Launcher::take_signals(Instant now) {
  while (const auto signal = signals_.take()) {
    base::log_warning("slurm", sys::StopSignals::name(*signal));
    // Slurm sends SIGTERM twice in one breath; SIGUSR1 is its warning before a time limit.
    const bool echo = asked_at_.is_set() && now - asked_at_ < Duration::seconds(1);
    if (asked_ == 0 || (!echo && *signal != SIGUSR1)) {
      stop(asked_ + 1, now);
    }
  }
}

void Launcher::watch_time(Instant now) {
  if (asked_ > 0) {
    if (now - asked_at_ >= grace_) {
      stop(3, now);
    } else if (now - asked_at_ >= Duration{grace_.ns / 2} && coordinator_.running()) {
      stop(2, now);
    }
  }
  if (agents_by_.is_set() && now >= agents_by_ && agents_.running() &&
      kill_at_ == base::kFarFuture) {
    base::log_error("slurm", "the agents' step outlives the run: killing it");
    agents_.signal(SIGTERM);
    kill_at_ = now + kKillAfter;
  }
  if (now >= kill_at_) {
    coordinator_.signal(SIGKILL);
    agents_.signal(SIGKILL);
  }
}

ExitCode run(LaunchOptions options) {
  std::string folder;
  if (options.shared) {
    auto made = make_private_folder(*options.shared);
    if (!made) {
      base::log_error("slurm", made.error().message);
      return made.error().code;
    }
    folder = std::move(*made);
  }
  base::Status keyed;
  if (!folder.empty() && options.keys.empty() && !options.insecure) {
    keyed = make_keys(folder);
    options.keys = folder;
  }
  const auto remove_folder = [&folder] {
    std::error_code ignored;
    if (!folder.empty()) {
      std::filesystem::remove_all(folder, ignored);
    }
  };
  if (!keyed) {
    remove_folder();
    base::log_error("slurm", keyed.error().message);
    return keyed.error().code;
  }
  const auto launch = launch::plan_launch(options, spec::process_environment, programs(), folder);
  if (!launch) {
    remove_folder();
    return usage_error(launch.error().message, "slurm");
  }
  base::log_info("slurm",
                 fmt::format("coordinator on {}, {} agents on {}", launch->coordinator_host,
                             launch->agent_hosts.size(), fmt::join(launch->agent_hosts, ",")));
  Launcher launcher(*launch, Duration::seconds(options.grace_s));
  const auto code = launcher.run();
  remove_folder();
  if (!code) {
    base::log_error("slurm", code.error().message);
    return code.error().code;
  }
  return static_cast<ExitCode>(*code);
}

// Becomes the coordinator or the agent.
ExitCode task(const LaunchOptions& options) {
  auto words = launch::plan_task(options, spec::process_environment, programs());
  if (!words) {
    return usage_error(words.error().message, "slurm");
  }
  std::vector<char*> arguments;
  for (auto& word : *words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  base::log_error("slurm", fmt::format("{}: {}", (*words)[0], std::strerror(errno)));
  return ExitCode::kSetup;
}

std::string options_help(void (*describe)(CLI::App&, LaunchOptions&)) {
  LaunchOptions options;
  CLI::App app;
  app.set_help_flag();
  describe(app, options);
  const std::string text = app.help();
  return text.substr(text.find("Options:"));
}

}  // namespace

std::string slurm_help() {
  return "Usage: tutti slurm run [OPTIONS] -- benchmark …\n"
         "       srun [-N …] --ntasks-per-node=1 tutti slurm task [OPTIONS] -- benchmark …\n"
         "\n"
         "run: starts, inside an allocation (sbatch, salloc) or for --jobid, the coordinator on "
         "the\n"
         "first host and an agent on every host, as steps beside what runs there (--overlap), and\n"
         "ends with the coordinator's exit code. SIGTERM, SIGINT and SIGUSR1 stop the run in "
         "order:\n"
         "the run folder of what was done is written. A second signal, or half of --grace, "
         "cancels\n"
         "what is in flight; a third, or --grace, kills the steps.\n"
         "task: the same as one step: rank 0 is the coordinator with an agent beside it, the "
         "other\n"
         "ranks are agents that dial the step's first host.\n"
         "\n"
         "run: " +
         options_help(&describe_run) + "\ntask: " + options_help(&describe_common);
}

ExitCode slurm_command(const Words& words) {
  const std::string kind = words.empty() ? "" : words[0];
  if (kind != "run" && kind != "task") {
    return usage_error(fmt::format("slurm needs run or task, got \"{}\"", kind), "slurm");
  }
  const auto options = parse(Words(words.begin() + 1, words.end()),
                             kind == "run" ? &describe_run : &describe_common);
  if (!options) {
    return usage_error(options.error().message, "slurm");
  }
  return kind == "run" ? run(*options) : task(*options);
}

}  // namespace tutti
