#include "tests/support/program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tutti::testing_support {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

int left_ms(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

std::string port_file_name() {
  static int count = 0;
  return fmt::format("{}/mock-ports-{}-{}", testing::TempDir(), getpid(), ++count);
}

std::vector<std::string> mock_words(std::size_t ports, const std::string& port_file,
                                    std::vector<std::string> flags) {
  std::vector<std::string> words{"tutti-mock", "--port-file", port_file};
  for (std::size_t i = 0; i < ports; ++i) {
    words.insert(words.end(), {"--port", "0"});
  }
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

}  // namespace

Program::Program(std::vector<std::string> words,
                 const std::map<std::string, std::string>& environment) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return;
  }
  const std::string path =
      words[0].starts_with('/') ? words[0] : std::string(TUTTI_BIN_DIR) + "/" + words[0];
  std::vector<char*> argv;
  for (auto& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    for (const auto& [name, value] : environment) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    execv(path.c_str(), argv.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (pipe_ >= 0) {
    close(pipe_);
  }
}

bool Program::read_some(int timeout_ms) {
  if (ended_output_) {
    return false;
  }
  pollfd waiting{pipe_, POLLIN, 0};
  if (poll(&waiting, 1, timeout_ms) <= 0) {
    return false;
  }
  char bytes[65536];
  const ssize_t got = read(pipe_, bytes, sizeof bytes);
  if (got <= 0) {
    ended_output_ = true;
    return false;
  }
  output_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

bool Program::says(const std::string& text, int timeout_ms) {
  const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (output_.find(text) == std::string::npos) {
    if (!read_some(left_ms(until)) && (ended_output_ || left_ms(until) == 0)) {
      return output_.find(text) != std::string::npos;
    }
  }
  return true;
}

void Program::signal(int number) const { kill(pid_, number); }

int Program::wait(int timeout_ms) {
  const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
  int status = 0;
  while (true) {
    read_some(20);
    const pid_t got = waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      break;
    }
    if (left_ms(until) == 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
      pid_ = -1;
      return -1;
    }
    if (ended_output_) {
      poll(nullptr, 0, 10);
    }
  }
  pid_ = -1;
  while (read_some(0)) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Ran run_program(std::vector<std::string> words, int timeout_ms,
                const std::map<std::string, std::string>& environment) {
  Program program(std::move(words), environment);
  const int code = program.wait(timeout_ms);
  return Ran{code, program.output()};
}

Mock::Mock(std::size_t ports, std::vector<std::string> flags)
    : port_file_(port_file_name()), program_(mock_words(ports, port_file_, std::move(flags))) {
  const auto until = Clock::now() + std::chrono::seconds(20);
  while (urls_.size() < ports && left_ms(until) > 0) {
    urls_.clear();
    std::ifstream in(port_file_);
    for (std::string line; std::getline(in, line);) {
      urls_.push_back(line);
    }
    poll(nullptr, 0, 10);
  }
  EXPECT_EQ(urls_.size(), ports) << "tutti-mock did not start";
  fs::remove(port_file_);
}

double Mock::metric(const std::string& name) const {
  const std::string port = urls_[0].substr(urls_[0].rfind(':') + 1);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
    const std::string ask = "GET /metrics HTTP/1.1\r\nHost: mock\r\nConnection: close\r\n\r\n";
    if (write(fd, ask.data(), ask.size()) == static_cast<ssize_t>(ask.size())) {
      char bytes[4096];
      for (ssize_t got = 0; (got = read(fd, bytes, sizeof bytes)) > 0;) {
        answer.append(bytes, static_cast<std::size_t>(got));
      }
    }
  }
  close(fd);
  double sum = 0;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + "{", 0) == 0 || line.rfind(name + " ", 0) == 0) {
      sum += std::stod(line.substr(line.rfind(' ') + 1));
    }
  }
  return sum;
}

std::vector<std::string> words_of(const OnlineRun& run) {
  std::vector<std::string> words{"tutti", "benchmark", "online", "--model", "m"};
  const auto add = [&words](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add({"--dataset", run.data, "--report-dir", run.folder});
  for (const auto& url : run.urls) {
    add({"--endpoints", url});
  }
  add({"--load-pattern", "concurrency", "--concurrency", std::to_string(run.concurrency)});
  add({"--num-samples", std::to_string(run.queries)});
  add(run.more);
  return words;
}

std::vector<pid_t> agents_of(pid_t parent) {
  std::vector<pid_t> out;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const std::string text = read_text((entry.path() / "stat").string());
    const std::size_t close = text.rfind(')');
    if (close == std::string::npos || text.find("(tutti-agent)") == std::string::npos) {
      continue;
    }
    // After the name: state, then the parent's pid.
    if (std::stoi(text.substr(close + 4)) == parent) {
      out.push_back(std::stoi(name));
    }
  }
  return out;
}

std::string fresh_folder(const std::string& name) {
  const fs::path path = fs::path(testing::TempDir()) / fmt::format("tutti-{}-{}", name, getpid());
  fs::remove_all(path);
  fs::create_directories(path);
  return path.string();
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(read_text(path), nullptr, false);
}

std::vector<nlohmann::json> read_jsonl(const std::string& path) {
  std::vector<nlohmann::json> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    out.push_back(nlohmann::json::parse(line, nullptr, false));
  }
  return out;
}

std::string write_prompts(const std::string& folder, std::size_t rows, const std::string& column) {
  const std::string path = folder + "/prompts.jsonl";
  std::ofstream out(path);
  for (std::size_t i = 0; i < rows; ++i) {
    out << nlohmann::json{{column, fmt::format("prompt number {} of {}", i, rows)}}.dump() << "\n";
  }
  return path;
}

std::uint16_t free_port(const char* address) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  inet_pton(AF_INET, address, &at.sin_addr);
  socklen_t size = sizeof at;
  bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at);
  getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  close(fd);
  return ntohs(at.sin_port);
}

}  // namespace tutti::testing_support
