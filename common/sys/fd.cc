#include "common/sys/fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "common/base/check.h"

namespace tutti::sys {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::close() {
  if (fd_ >= 0) {
    // Not retried on EINTR: Linux has released the descriptor by then.
    ::close(std::exchange(fd_, -1));
  }
}

Doorbell::Doorbell() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { TUTTI_CHECK(fd_.is_open()); }

void Doorbell::ring() {
  const std::uint64_t one = 1;
  // Fails only when the counter is at its end, and then the bell is ringing anyway.
  [[maybe_unused]] const auto written = write(fd_.get(), &one, sizeof one);
}

void Doorbell::quiet() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(fd_.get(), &count, sizeof count);
}

}  // namespace tutti::sys
