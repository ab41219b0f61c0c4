#include "tests/mock_llm/server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace tutti::mock_llm {
namespace {

std::string address_text(const sockaddr_storage& from, socklen_t length) {
  char text[NI_MAXHOST] = "unknown";
  getnameinfo(reinterpret_cast<const sockaddr*>(&from), length, text, sizeof text, nullptr, 0,
              NI_NUMERICHOST);
  return text;
}

constexpr int kEventsPerTurn = 512;
constexpr int kAcceptsPerTurn = 128;
constexpr std::size_t kReadBufferBytes = 256 << 10;
constexpr std::int64_t kAcceptRetryNs = 100'000'000;

// epoll tags: generation << 32 | fd for connections; these generations are never a slot's.
constexpr std::uint64_t kListenerTag = 0xFFFFFFFFULL << 32;
constexpr std::uint64_t kStopTag = 0xFFFFFFFEULL << 32;

std::uint64_t tag_of(int fd, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(fd);
}

}  // namespace

Server::Server(const MockOptions& options, const base::Clock& clock)
    : options_(options),
      clock_(clock),
      planner_(options),
      writer_(options, planner_.models()),
      wheel_(clock.mono().ns),
      shared_reader_(RequestLimits{64 << 10, options.body_bytes_max}),
      read_buffer_(kReadBufferBytes) {}

Server::~Server() {
  for (std::size_t fd = 0; fd < slots_.size(); ++fd) {
    if (slots_[fd].stage != Stage::kFree) {
      ::close(static_cast<int>(fd));
    }
  }
}

base::Result<std::unique_ptr<Server>> Server::open(const MockOptions& options,
                                                   const base::Clock& clock) {
  std::unique_ptr<Server> server(new Server(options, clock));
  if (base::Status started = server->start(); !started) {
    return tl::unexpected(started.error());
  }
  return server;
}

base::Status Server::start() {
  if (!options_.tls_cert.empty()) {
    auto tls = TlsServer::open(options_.tls_cert, options_.tls_key);
    if (!tls) {
      return tl::unexpected(tls.error());
    }
    tls_ = std::move(*tls);
  }
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (epoll_.get() < 0) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("no epoll set: {}", std::strerror(errno)));
  }
  for (const std::uint16_t port : options_.ports) {
    auto listener = listen_on(options_.host, port);
    if (!listener) {
      return tl::unexpected(listener.error());
    }
    watch(listener->fd.get(), EPOLLIN, kListenerTag | listeners_.size(), true);
    facts_.ports.push_back({listener->port, 0, 0, 0});
    listeners_.push_back(std::move(*listener));
  }
  if (options_.null_server) {
    Exchange exchange;
    exchange.tokens = 1;
    writer_.document(null_reply_, exchange);
  }
  return {};
}

std::vector<std::string> Server::urls() const {
  const bool bracket = options_.host.find(':') != std::string::npos;
  std::vector<std::string> urls;
  for (const Listener& listener : listeners_) {
    urls.push_back(fmt::format("{}://{}{}{}:{}", tls_ ? "https" : "http", bracket ? "[" : "",
                               options_.host, bracket ? "]" : "", listener.port));
  }
  return urls;
}

void Server::watch(int fd, std::uint32_t events, std::uint64_t tag, bool add) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  ::epoll_ctl(epoll_.get(), add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

void Server::rewatch(int fd) {
  const Slot& s = slot(fd);
  const std::uint32_t events =
      (s.reads_paused ? 0U : EPOLLIN) | (s.wants_write ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
  watch(fd, events, tag_of(fd, s.generation), false);
}

void Server::pause_accepting(bool pause) {
  accept_paused_ = pause;
  facts_.accept_pauses += pause ? 1 : 0;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    watch(listeners_[i].fd.get(), pause ? 0U : EPOLLIN, kListenerTag | i, false);
  }
}

void Server::adopt(int fd, std::uint16_t port) {
  const auto index = static_cast<std::size_t>(fd);
  if (index >= slots_.size()) {
    slots_.resize(std::max(index + 1, slots_.size() * 2));
  }
  Slot& s = slots_[index];
  s.stage = Stage::kIdle;
  s.port = port;
  if (tls_ != nullptr) {
    side(fd).tls = tls_->start(fd);
  }
  ++facts_.ports[port].accepted;
  ++facts_.ports[port].open;
  watch(fd, EPOLLIN, tag_of(fd, s.generation), true);
  if (options_.idle_timeout_ns != 0) {
    wheel_.arm(static_cast<std::uint32_t>(fd), now_ns() + options_.idle_timeout_ns);
  }
}

void Server::accept_some(std::uint16_t port) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const int fd = ::accept4(listeners_[port].fd.get(), reinterpret_cast<sockaddr*>(&from), &length,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      count_peer(facts_, facts_.ports[port].port, address_text(from, length));
      adopt(fd, port);
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      pause_accepting(true);
      return;
    }
    if (errno == EAGAIN) {
      return;
    }
    // ECONNABORTED and the like concern that one connection; the next may be well.
  }
}

// Frees the slot. `cancelled`: the client went away before its answer was complete.
void Server::drop(int fd, bool cancelled) {
  Slot& s = slot(fd);
  wheel_.disarm(static_cast<std::uint32_t>(fd));
  facts_.cancelled += cancelled ? 1 : 0;
  drop_reader(fd);
  release_place(fd);
  if (s.stage == Stage::kQueued) {
    --facts_.queued;  // its entry in queue_ is stale and skipped
  }
  --facts_.ports[s.port].open;
  s.side.reset();  // before the close: TLS holds the descriptor
  const std::uint32_t generation = s.generation;
  s = Slot{};
  s.generation = (generation + 1) & 0x7FFFFFFFU;
  ::close(fd);
  if (accept_paused_) {
    pause_accepting(false);
  }
}

void Server::handle_event(std::uint64_t tag, std::uint32_t events) {
  if ((tag & kListenerTag) == kListenerTag) {
    accept_some(static_cast<std::uint16_t>(tag & 0xFFFFU));
    return;
  }
  if ((tag & kListenerTag) == kStopTag) {
    stopping_ = true;
    return;
  }
  const int fd = static_cast<int>(tag & 0xFFFFFFFFU);
  const auto generation = static_cast<std::uint32_t>(tag >> 32);
  const auto is_same = [&] {
    const Slot& s = slot(fd);
    return s.stage != Stage::kFree && s.generation == generation;
  };
  if (!is_same()) {
    return;  // closed earlier in this turn
  }
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    const Stage stage = slot(fd).stage;
    drop(fd, stage != Stage::kIdle && stage != Stage::kLingering);
    return;
  }
  if ((events & EPOLLOUT) != 0) {
    on_writable(fd);
  }
  if ((events & EPOLLIN) != 0 && is_same()) {
    on_readable(fd);
  }
}

// Requests that came in behind an answer which has ended meanwhile.
void Server::run_resumed() {
  while (!resumed_.empty()) {
    const auto [fd, generation] = resumed_.back();
    resumed_.pop_back();
    Slot& s = slot(fd);
    if (s.generation != generation || s.stage != Stage::kIdle || !s.side) {
      continue;
    }
    const std::string bytes = std::move(s.side->backlog);
    s.side->backlog.clear();
    take_input(fd, bytes);
  }
}

int Server::wait_for_events() {
  static constexpr std::int64_t kLongestNs = 3'600'000'000'000;
  std::int64_t sleep_ns = kLongestNs;
  if (const std::int64_t wake = wheel_.next_wake_ns(); wake != INT64_MAX) {
    sleep_ns = std::clamp<std::int64_t>(wake - now_ns(), 0, kLongestNs);
  }
  if (accept_paused_) {
    sleep_ns = std::min(sleep_ns, kAcceptRetryNs);
  }
  if (options_.spin) {
    sleep_ns = 0;
  }
  std::array<epoll_event, kEventsPerTurn> events;
  const timespec sleep{sleep_ns / 1'000'000'000, sleep_ns % 1'000'000'000};
  int count = ::epoll_pwait2(epoll_.get(), events.data(), kEventsPerTurn, &sleep, nullptr);
  if (count < 0 && errno == ENOSYS) {  // kernels before 5.11: whole milliseconds
    count = ::epoll_wait(epoll_.get(), events.data(), kEventsPerTurn,
                         static_cast<int>((sleep_ns + 999'999) / 1'000'000));
  }
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    handle_event(event.data.u64, event.events);
  }
  return count;
}

void Server::run(int stop_fd) {
  stop_fd_ = stop_fd;
  watch(stop_fd_, EPOLLIN, kStopTag, true);
  std::int64_t paused_at = 0;
  while (!stopping_) {
    wait_for_events();
    const std::int64_t now = now_ns();
    if (!accept_paused_) {
      paused_at = now;
    } else if (now - paused_at >= kAcceptRetryNs) {
      paused_at = now;
      pause_accepting(false);  // still full: the next accept pauses again, and is counted again
    }
    due_.clear();
    wheel_.collect(now, due_);
    for (const std::uint32_t id : due_) {
      on_due(static_cast<int>(id));
    }
    run_resumed();  // last: whatever ended in this turn may have requests behind it
  }
}

}  // namespace tutti::mock_llm
