#pragma once

// Fd: sole owner of a file descriptor, closed on destruction. Doorbell: an eventfd that any thread
// may ring and one thread waits on. Neither blocks.

#include <utility>

namespace tutti::sys {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Gives the descriptor away; the caller closes it.
  int release() { return std::exchange(fd_, -1); }
  void close();

 private:
  int fd_ = -1;
};

class Doorbell {
 public:
  // Aborts when the process has no descriptor left: checked budgets come before engines.
  Doorbell();

  int fd() const { return fd_.get(); }
  // Any thread. The waiting side's fd stays readable until quiet().
  void ring();
  // Waiting thread: forget all rings so far.
  void quiet();

 private:
  Fd fd_;
};

}  // namespace tutti::sys
