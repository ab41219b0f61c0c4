// tutti-mock: the system under test for demonstrations, tests and calibration.

#include <fmt/format.h>
#include <pthread.h>
#include <sys/signalfd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "tests/mock_llm/options.h"
#include "tests/mock_llm/server.h"

namespace {

using tutti::base::ExitCode;
using tutti::mock_llm::Fd;

// SIGINT and SIGTERM arrive as readable bytes, so that the loop ends between two events.
Fd signals_as_fd() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return Fd(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
}

// Through a temporary name: whoever waits for the file never sees half of it.
bool write_port_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  if (file == nullptr) {
    return false;
  }
  const bool written = std::fputs(text.c_str(), file) >= 0;
  return std::fclose(file) == 0 && written && std::rename(temporary.c_str(), path.c_str()) == 0;
}

int say_error(ExitCode code, const std::string& line) {
  fmt::print(stderr, "{}\n", line);
  return static_cast<int>(code);
}

int serve(const tutti::mock_llm::MockOptions& options) {
  const Fd stop = signals_as_fd();
  tutti::mock_llm::raise_fd_limit();
  const tutti::base::SystemClock clock;
  auto server = tutti::mock_llm::Server::open(options, clock);
  if (!server) {
    return say_error(server.error().code, "tutti-mock: " + server.error().message);
  }
  std::string urls;
  for (const std::string& url : (*server)->urls()) {
    fmt::print("listening {}\n", url);
    urls += url + "\n";
  }
  std::fflush(stdout);
  if (!options.port_file.empty() && !write_port_file(options.port_file, urls)) {
    return say_error(ExitCode::kSetup,
                     fmt::format("tutti-mock: --port-file: \"{}\" cannot be written; name a file "
                                 "in a folder that exists",
                                 options.port_file));
  }
  (*server)->run(stop.get());
  fmt::print("{}\n", tutti::mock_llm::totals_line((*server)->facts()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const auto read = tutti::mock_llm::read_options(std::vector<std::string>(argv + 1, argv + argc));
  if (read.wants_help) {
    fmt::print("{}", tutti::mock_llm::options_help());
    return 0;
  }
  if (read.wants_version) {
    fmt::print("tutti-mock {}\n", TUTTI_VERSION);
    return 0;
  }
  if (!read.problems.empty()) {
    for (const auto& problem : read.problems) {
      fmt::print(stderr, "{}\n", tutti::mock_llm::problem_line(problem));
    }
    return static_cast<int>(ExitCode::kUsage);
  }
  return serve(read.options);
}
