#include "coordinator/null_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "coordinator/conduct/local_agents.h"

namespace tutti {
namespace {

constexpr int kStepMs = 10;
constexpr int kStartMs = 10'000;
constexpr int kStopMs = 2'000;

// Only async-signal-safe calls between fork and exec.
[[noreturn]] void become(char* const* words, int log_fd, pid_t parent) {
  setpgid(0, 0);  // a ^C reaches the coordinator alone
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) {
    _exit(1);
  }
  dup2(log_fd, STDOUT_FILENO);
  dup2(log_fd, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(words[0], words);
  _exit(127);
}

base::Error setup_error(std::string text) {
  return base::Error{base::ExitCode::kSetup, std::move(text)};
}

}  // namespace

base::Status NullServer::start(std::size_t count, const std::vector<std::string>& flags,
                               const std::string& folder) {
  stop();
  for (std::size_t i = 0; i < count; ++i) {
    if (auto status = start_one(i, flags, folder); !status) {
      stop();
      return status;
    }
  }
  return {};
}

base::Status NullServer::start_one(std::size_t number, const std::vector<std::string>& flags,
                                   const std::string& folder) {
  const std::string program = conduct::program_folder() + "/tutti-mock";
  if (access(program.c_str(), X_OK) != 0) {
    return tl::unexpected(setup_error(
        fmt::format("{}: not there or not executable; the null server is tutti-mock, built beside "
                    "tutti (cmake --build … --target tutti-mock)",
                    program)));
  }
  const std::string ports = fmt::format("{}/null-{}.url", folder, number);
  const std::string log = fmt::format("{}/null-{}.log", folder, number);
  std::error_code ignored;
  std::filesystem::remove(ports, ignored);
  std::vector<std::string> words{program,  "--host", fmt::format("127.0.0.{}", number + 1),
                                 "--port", "0",      "--port-file",
                                 ports};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> arguments;
  for (auto& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const int log_fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const pid_t parent = getpid();
  const pid_t pid = log_fd < 0 ? -1 : fork();
  if (pid == 0) {
    become(arguments.data(), log_fd, parent);
  }
  const int cause = errno;
  if (log_fd >= 0) {
    close(log_fd);
  }
  if (pid < 0) {
    return tl::unexpected(
        setup_error(fmt::format("cannot start {}: {}", program, std::strerror(cause))));
  }
  children_.push_back(pid);
  for (int waited = 0; waited < kStartMs; waited += kStepMs) {
    std::ifstream file(ports);
    std::string url;
    if (std::getline(file, url)) {
      urls_.push_back(url);
      return {};
    }
    if (waitpid(pid, nullptr, WNOHANG) == pid) {
      children_.pop_back();
      break;
    }
    poll(nullptr, 0, kStepMs);
  }
  std::ifstream said(log);
  std::string line;
  std::getline(said, line);
  return tl::unexpected(setup_error(fmt::format("the null server did not start: {}", line)));
}

void NullServer::stop() {
  for (const pid_t pid : children_) {
    kill(pid, SIGTERM);
  }
  for (int waited = 0; !children_.empty(); waited += kStepMs) {
    std::erase_if(children_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    if (children_.empty()) {
      break;
    }
    if (waited == kStopMs) {
      for (const pid_t pid : children_) {
        kill(pid, SIGKILL);
      }
    }
    poll(nullptr, 0, kStepMs);
  }
  urls_.clear();
}

}  // namespace tutti
