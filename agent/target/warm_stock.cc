#include "agent/target/warm_stock.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::target {
namespace {

constexpr base::Duration kPace = base::Duration::millis(2);  // between two handfuls

bool alive(int fd) {
  char byte = 0;
  const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

int connect_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace

bool SocketAddress::equals(const sockaddr* other, socklen_t other_length) const {
  return is_set() && other_length == length && std::memcmp(&storage, other, length) == 0;
}

WarmStock::WarmStock(std::size_t frontends, sys::Poller& poller, Sources& sources)
    : poller_(poller), sources_(sources), kept_(frontends), wanted_(frontends, 0) {}

void WarmStock::begin(const WarmPlan& plan, const std::vector<SocketAddress>& addresses,
                      base::Duration connect_timeout, base::Instant now) {
  addresses_ = addresses;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const std::uint32_t asked = i < plan.connections.size() ? plan.connections[i] : 0;
    const auto held = static_cast<std::uint32_t>(kept_[i].size());
    wanted_[i] = addresses_[i].is_set() && asked > held ? asked - held : 0;
  }
  rate_max_ = std::max<std::uint32_t>(plan.rate_max, 1);
  connecting_max_ = std::max<std::uint32_t>(plan.connecting_max, 1);
  connect_timeout_ = connect_timeout;
  began_at_ = now;
  begun_ = 0;
  opening_ = true;
  next_wake_ = now;
}

// The frontend that still wants most; -1: none.
int WarmStock::next_frontend() const {
  const auto most = std::max_element(wanted_.begin(), wanted_.end());
  return *most > 0 ? static_cast<int>(most - wanted_.begin()) : -1;
}

void WarmStock::open_one(std::uint16_t frontend, base::Instant now) {
  --wanted_[frontend];
  ++begun_;
  const SocketAddress& address = addresses_[frontend];
  StockedSocket fresh;
  int os_error = 0;
  fresh.fd = sources_.open(address.storage.ss_family, frontend, fresh.source, os_error);
  if (!fresh.fd.is_open()) {
    wanted_[frontend] = 0;  // out of descriptors: what is open will have to do
    return;
  }
  const sys::Fd& fd = fresh.fd;
  const int one = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const int rc =
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  if (rc == 0) {
    kept_[frontend].push_back(std::move(fresh));
    ++kept_count_;
  } else if (errno == EINPROGRESS && poller_.add(fd.get(), sys::kWritable)) {
    pending_.push_back(Pending{std::move(fresh), frontend, now + connect_timeout_});
  } else {
    sources_.closed(frontend, fresh.source);
  }
}

void WarmStock::on_wake(base::Instant now) {
  if (!opening_) {
    return;
  }
  std::erase_if(pending_, [this, now](const Pending& p) {
    const bool late = p.give_up_at <= now;
    if (late) {
      sources_.closed(p.frontend, p.socket.source);
    }
    return late;
  });
  const double elapsed = (now - began_at_).to_seconds();
  const auto allowed = static_cast<std::uint64_t>(elapsed * rate_max_) + 1;
  int frontend = next_frontend();
  while (frontend >= 0 && begun_ < allowed && pending_.size() < connecting_max_) {
    open_one(static_cast<std::uint16_t>(frontend), now);
    frontend = next_frontend();
  }
  if (frontend < 0 && pending_.empty()) {
    opening_ = false;
    return;
  }
  next_wake_ = now + kPace;
}

bool WarmStock::on_socket(const sys::Ready& ready) {
  const auto it = std::find_if(pending_.begin(), pending_.end(),
                               [&](const Pending& p) { return p.socket.fd.get() == ready.fd; });
  if (it == pending_.end()) {
    return false;
  }
  poller_.remove(ready.fd);
  if (connect_error(ready.fd) == 0) {
    kept_[it->frontend].push_back(std::move(it->socket));
    ++kept_count_;
  } else {
    sources_.closed(it->frontend, it->socket.source);
  }
  std::swap(*it, pending_.back());
  pending_.pop_back();
  return true;
}

StockedSocket WarmStock::take(std::uint16_t frontend, const sockaddr* address, socklen_t length) {
  auto& kept = kept_[frontend];
  if (kept.empty() || !addresses_[frontend].equals(address, length)) {
    return {};
  }
  while (!kept.empty()) {
    StockedSocket found = std::move(kept.back());
    kept.pop_back();
    --kept_count_;
    if (alive(found.fd.get())) {
      return found;
    }
    sources_.closed(frontend, found.source);
  }
  return {};
}

bool WarmStock::drop_one() {
  const auto fullest = std::max_element(
      kept_.begin(), kept_.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (fullest->empty()) {
    return false;
  }
  sources_.closed(static_cast<std::uint16_t>(fullest - kept_.begin()), fullest->back().source);
  fullest->pop_back();
  --kept_count_;
  return true;
}

}  // namespace tutti::target
