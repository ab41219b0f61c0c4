#include "common/sys/poller.h"

#include <sys/epoll.h>

#include <cerrno>

#include "common/base/check.h"
#include "common/sys/socket_io.h"

namespace tutti::sys {
namespace {

static_assert(kReadable == EPOLLIN && kWritable == EPOLLOUT && kBroken == (EPOLLERR | EPOLLHUP) &&
              kOnEdge == EPOLLET);

bool control(int epoll_fd, int operation, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return epoll_ctl(epoll_fd, operation, fd, &event) == 0;
}

}  // namespace

Poller::Poller(std::size_t events_per_wait)
    : fd_(epoll_create1(EPOLL_CLOEXEC)),
      raw_((events_per_wait * sizeof(epoll_event) + sizeof(std::uint64_t) - 1) /
           sizeof(std::uint64_t)),
      events_per_wait_(events_per_wait) {
  TUTTI_CHECK(fd_.is_open());
  TUTTI_CHECK(events_per_wait > 0);
  ready_.reserve(events_per_wait);
}

bool Poller::add(int fd, std::uint32_t events) {
  return control(fd_.get(), EPOLL_CTL_ADD, fd, events);
}

bool Poller::change(int fd, std::uint32_t events) {
  return control(fd_.get(), EPOLL_CTL_MOD, fd, events);
}

void Poller::remove(int fd) { control(fd_.get(), EPOLL_CTL_DEL, fd, 0); }

std::span<const Ready> Poller::wait(int timeout_ms) {
  auto* events = reinterpret_cast<epoll_event*>(raw_.data());
  const int n = wait_for_events(fd_.get(), events, static_cast<int>(events_per_wait_), timeout_ms);
  TUTTI_CHECK(n >= 0 || errno == EINTR);
  ready_.clear();
  for (int i = 0; i < n; ++i) {
    ready_.push_back(Ready{events[i].data.fd, events[i].events});
  }
  return ready_;
}

}  // namespace tutti::sys
