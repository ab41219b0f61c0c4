#pragma once

// MortalMock: a tutti-mock on one port of its own choice that a test can kill and bring back on the
// same address. Header only. One thread.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {

class MortalMock {
 public:
  explicit MortalMock(std::vector<std::string> flags = {}, std::string host = "127.0.0.1")
      : host_(std::move(host)), port_(free_port(host_.c_str())), flags_(std::move(flags)) {
    start();
  }

  // Until it answers.
  void start() {
    std::vector<std::string> words{"tutti-mock", "--host", host_, "--port", std::to_string(port_)};
    words.insert(words.end(), flags_.begin(), flags_.end());
    program_ = std::make_unique<Program>(words);
    for (int i = 0; i < 500; ++i) {
      if (!ask("/metrics").empty()) {
        return;
      }
      poll(nullptr, 0, 20);
    }
    ADD_FAILURE() << "tutti-mock did not start: " << program_->output();
  }
  // As a crash does: at once, and the kernel closes what was open.
  void kill() { program_.reset(); }

  std::string url() const { return fmt::format("http://{}:{}", host_, port_); }
  std::uint16_t port() const { return port_; }
  // Sum of a metric over its labels; of this life of the process.
  double metric(const std::string& name) const {
    double sum = 0;
    std::istringstream lines(ask("/metrics"));
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(name + "{", 0) == 0 || line.rfind(name + " ", 0) == 0) {
        sum += std::stod(line.substr(line.rfind(' ') + 1));
      }
    }
    return sum;
  }
  testing::AssertionResult reaches(const std::string& name, double least,
                                   int timeout_ms = 15'000) const {
    double now = metric(name);
    for (int waited = 0; waited < timeout_ms && now < least; waited += 20) {
      poll(nullptr, 0, 20);
      now = metric(name);
    }
    return now >= least ? testing::AssertionSuccess()
                        : testing::AssertionFailure() << name << " is " << now << " of " << least;
  }

 private:
  std::string ask(const std::string& path) const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    inet_pton(AF_INET, host_.c_str(), &to.sin_addr);
    std::string answer;
    if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
      const std::string words =
          fmt::format("GET {} HTTP/1.1\r\nHost: mock\r\nConnection: close\r\n\r\n", path);
      if (::send(fd, words.data(), words.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(words.size())) {
        char bytes[4096];
        for (ssize_t got = 0; (got = read(fd, bytes, sizeof bytes)) > 0;) {
          answer.append(bytes, static_cast<std::size_t>(got));
        }
      }
    }
    close(fd);
    return answer;
  }

  std::string host_;
  std::uint16_t port_;
  std::vector<std::string> flags_;
  std::unique_ptr<Program> program_;
};

}  // namespace tutti::testing_support
