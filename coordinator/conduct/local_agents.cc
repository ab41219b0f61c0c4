#include "coordinator/conduct/local_agents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "common/spec/redact.h"

namespace tutti::conduct {
namespace {

// When a batch system ends a job, we get its SIGTERM and our agents do too; the end is ours.
constexpr const char* kTermGrace = "20";

std::string end_of(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return fmt::format("signal {} ({})", signal, strsignal(signal));
  }
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

// Only async-signal-safe calls between fork and exec: the parent has threads.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment,
                         int log_fd, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) {
    _exit(1);  // the parent died before the death signal was armed
  }
  dup2(log_fd, STDOUT_FILENO);
  dup2(log_fd, STDERR_FILENO);
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null_fd, STDIN_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(program, arguments, environment);
  _exit(127);
}

// Ours without what is secret by its name: an agent is told the keys it needs.
std::vector<char*> open_environment() {
  std::vector<char*> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!spec::is_secret_key(text.substr(0, text.find('=')))) {
      out.push_back(*entry);
    }
  }
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string program_folder() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) {
    return ".";
  }
  const std::string whole(path, static_cast<std::size_t>(n));
  return whole.substr(0, whole.find_last_of('/'));
}

LocalAgents::~LocalAgents() {
  if (any()) {
    kill_now();
    stop(0);
  }
}

base::Status LocalAgents::start(std::uint32_t count, const std::string& address,
                                std::uint32_t workers, const std::string& log_folder) {
  const std::string program = program_folder() + "/tutti-agent";
  if (access(program.c_str(), X_OK) != 0) {
    return base::fail(
        base::ExitCode::kSetup,
        fmt::format("{}: not there or not executable; it is built and installed beside "
                    "tutti",
                    program));
  }
  const std::vector<char*> environment = open_environment();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("local-{}", i);
    const std::string log = fmt::format("{}/{}.log", log_folder, name);
    const int log_fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log_fd < 0) {
      return base::fail(base::ExitCode::kSetup, fmt::format("{}: {}", log, std::strerror(errno)));
    }
    std::vector<std::string> words = {program, "--connect",    address,   "--name",
                                      name,    "--term-grace", kTermGrace};
    if (workers > 0) {
      words.insert(words.end(), {"--workers", std::to_string(workers)});
    }
    std::vector<char*> arguments;
    for (auto& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
      become(program.c_str(), arguments.data(), environment.data(), log_fd, parent);
    }
    const int cause = errno;
    close(log_fd);
    if (pid < 0) {
      return base::fail(base::ExitCode::kSetup,
                        fmt::format("cannot start {}: {}", name, std::strerror(cause)));
    }
    children_.push_back(Child{name, pid});
  }
  return {};
}

std::vector<ChildEnd> LocalAgents::reap() {
  std::vector<ChildEnd> ended;
  for (std::size_t i = 0; i < children_.size();) {
    int status = 0;
    if (waitpid(children_[i].pid, &status, WNOHANG) == children_[i].pid) {
      ended.push_back(ChildEnd{children_[i].name, end_of(status)});
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return ended;
}

void LocalAgents::signal_all(int signal) const {
  for (const auto& child : children_) {
    kill(child.pid, signal);
  }
}

void LocalAgents::kill_now() { signal_all(SIGKILL); }

void LocalAgents::stop(int ms) {
  constexpr int kStepMs = 10;
  constexpr int kTermGraceMs = 2000;
  const auto wait = [this](int budget) {
    for (int waited = 0; any(); waited += kStepMs) {
      reap();
      if (!any() || waited >= budget) {
        break;
      }
      poll(nullptr, 0, kStepMs);
    }
  };
  wait(ms);
  if (any()) {
    signal_all(SIGTERM);
    wait(kTermGraceMs);
  }
  if (any()) {
    signal_all(SIGKILL);
    wait(kTermGraceMs);
  }
}

}  // namespace tutti::conduct
