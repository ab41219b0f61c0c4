#include "tests/integration/mock_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/base/time.h"

namespace tutti::mock_llm {
namespace {

void become_mock(std::vector<std::string> arguments, int output, std::uint64_t fd_limit) {
  ::dup2(output, 1);
  ::dup2(output, 2);
  if (fd_limit != 0) {
    const rlimit limit{fd_limit, fd_limit};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  const std::string path = std::string(TUTTI_BIN_DIR) + "/tutti-mock";
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  ::_exit(127);
}

// Appends what comes within the time; false at the end of the pipe.
bool drain(int fd, std::string& out, int timeout_ms) {
  pollfd waiting{fd, POLLIN, 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) {
    return true;
  }
  char bytes[4096];
  const ssize_t got = ::read(fd, bytes, sizeof bytes);
  if (got > 0) {
    out.append(bytes, static_cast<std::size_t>(got));
  }
  return got > 0;
}

}  // namespace

std::int64_t mono_ns() { return base::SystemClock().mono().ns; }

MockProcess::MockProcess(std::vector<std::string> arguments, std::uint64_t fd_limit) {
  arguments.insert(arguments.begin(), {"--port", "0"});
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return;
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    become_mock(std::move(arguments), ends[1], fd_limit);
  }
  ::close(ends[1]);
  pipe_ = ends[0];
  const std::int64_t deadline = mono_ns() + 20'000'000'000;
  while (drain(pipe_, output_, 200) && mono_ns() < deadline) {
    if (output_.find("listening ") != std::string::npos && output_.back() == '\n') {
      break;
    }
  }
  for (std::size_t at = 0; (at = output_.find("listening ", at)) != std::string::npos; ++at) {
    const std::size_t colon = output_.rfind(':', output_.find('\n', at));
    ports_.push_back(static_cast<std::uint16_t>(std::atoi(output_.c_str() + colon + 1)));
  }
}

MockProcess::~MockProcess() {
  if (pid_ > 0) {
    stop(SIGKILL);
  }
  if (pipe_ >= 0) {
    ::close(pipe_);
  }
}

int MockProcess::stop(int signal) {
  ::kill(pid_, signal);
  return wait_for_exit();
}

int MockProcess::wait_for_exit() {
  int status = 0;
  if (pid_ <= 0 || ::waitpid(pid_, &status, 0) != pid_) {
    return -1;
  }
  pid_ = -1;
  while (drain(pipe_, output_, 1000)) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string MockProcess::output() {
  drain(pipe_, output_, 0);
  return output_;
}

double MockProcess::metric(const std::string& name_with_labels) const {
  Wire wire(port());
  wire.send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string text = wire.read_answer();
  const std::size_t at = text.find("\n" + name_with_labels + " ");
  return at == std::string::npos
             ? -1
             : std::strtod(text.c_str() + at + name_with_labels.size() + 2, nullptr);
}

bool MockProcess::metric_becomes(const std::string& name_with_labels, double value) const {
  return metric_within(name_with_labels, value, value);
}

bool MockProcess::metric_reaches(const std::string& name_with_labels, double least) const {
  return metric_within(name_with_labels, least, 1e300);
}

bool MockProcess::metric_within(const std::string& name_with_labels, double least,
                                double most) const {
  const std::int64_t deadline = mono_ns() + 5'000'000'000;
  while (mono_ns() < deadline) {
    const double value = metric(name_with_labels);
    if (value >= least && value <= most) {
      return true;
    }
    ::usleep(5'000);
  }
  return false;
}

Wire::Wire(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    reset_ = true;
  }
}

Wire::Wire(Wire&& other) noexcept
    : fd_(other.fd_),
      fin_(other.fin_),
      reset_(other.reset_),
      received_(std::move(other.received_)) {
  other.fd_ = -1;
}

Wire& Wire::operator=(Wire&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(fin_, other.fin_);
  std::swap(reset_, other.reset_);
  received_.swap(other.received_);
  return *this;
}

Wire::~Wire() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

bool Wire::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

bool Wire::read_some(int timeout_ms) {
  pollfd waiting{fd_, POLLIN, 0};
  if (fin_ || reset_ || timeout_ms <= 0 || ::poll(&waiting, 1, timeout_ms) <= 0) {
    return false;
  }
  char bytes[65536];
  const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
  if (got <= 0) {
    (got == 0 ? fin_ : reset_) = true;
    return false;
  }
  received_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

const std::string& Wire::read_until(std::string_view text, int timeout_ms) {
  const std::int64_t deadline = mono_ns() + timeout_ms * 1'000'000LL;
  while (received_.find(text) == std::string::npos &&
         read_some(static_cast<int>((deadline - mono_ns()) / 1'000'000))) {
  }
  return received_;
}

const std::string& Wire::read_to_end(int timeout_ms) {
  const std::int64_t deadline = mono_ns() + timeout_ms * 1'000'000LL;
  while (read_some(static_cast<int>((deadline - mono_ns()) / 1'000'000))) {
  }
  return received_;
}

std::string Wire::read_answer(int timeout_ms) {
  read_until("\r\n\r\n", timeout_ms);
  const std::size_t head_end = received_.find("\r\n\r\n");
  if (head_end == std::string::npos) {
    return {};
  }
  const std::size_t length_at = received_.find("Content-Length: ");
  std::size_t end = std::string::npos;
  if (length_at < head_end) {
    end = head_end + 4 + std::strtoul(received_.c_str() + length_at + 16, nullptr, 10);
    const std::int64_t deadline = mono_ns() + timeout_ms * 1'000'000LL;
    while (received_.size() < end &&
           read_some(static_cast<int>((deadline - mono_ns()) / 1'000'000))) {
    }
  } else {
    read_until("\r\n0\r\n\r\n", timeout_ms);
    const std::size_t last = received_.find("\r\n0\r\n\r\n");
    end = last == std::string::npos ? received_.size() : last + 7;
  }
  std::string answer = received_.substr(0, end);
  received_.erase(0, end);
  return answer;
}

bool Wire::is_silent(int for_ms) {
  const std::size_t before = received_.size();
  read_some(for_ms);
  return received_.size() == before && !fin_ && !reset_;
}

std::string post(std::string_view path, std::string_view body, std::string_view headers) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\n{}Content-Length: {}\r\n\r\n{}", path, headers,
                     body.size(), body);
}

std::string chat(std::string_view fields, std::string_view headers) {
  return post("/v1/chat/completions",
              fmt::format(R"({{"messages":[{{"role":"user","content":"one two"}}],{}}})", fields),
              headers);
}

std::string body_of(const std::string& answer) {
  const std::size_t head_end = answer.find("\r\n\r\n");
  if (head_end == std::string::npos) {
    return {};
  }
  std::string rest = answer.substr(head_end + 4);
  if (answer.substr(0, head_end).find("chunked") == std::string::npos) {
    return rest;
  }
  std::string body;
  std::size_t at = 0;
  while (at < rest.size()) {
    const std::size_t size = std::strtoul(rest.c_str() + at, nullptr, 16);
    const std::size_t data = rest.find("\r\n", at);
    if (size == 0 || data == std::string::npos) {
      break;
    }
    body += rest.substr(data + 2, size);
    at = data + 2 + size + 2;
  }
  return body;
}

std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> events;
  std::size_t at = 0;
  while ((at = body.find("data: ", at)) != std::string::npos) {
    const std::size_t end = body.find_first_of("\r\n", at);
    events.push_back(body.substr(at + 6, end - at - 6));
    at = end;
  }
  return events;
}

}  // namespace tutti::mock_llm
