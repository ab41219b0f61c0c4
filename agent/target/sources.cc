#include "agent/target/sources.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::target {
namespace {

// A host that vanished sends neither FIN nor RST: without these a query that waits for its reply
// would wait for ever. (One whose own bytes are not acknowledged is the kernel's to give up, after
// some 15 minutes: it sends no probes then.) A server that is merely slow answers the probes.
// (TCP_USER_TIMEOUT would see more, but also ends connections whose server is too busy to read.)
constexpr int kProbeAfterS = 30;  // of silence
constexpr int kProbeEveryS = 10;
constexpr int kProbesMax = 3;

void watch_peer(int fd) {
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kProbeAfterS, sizeof kProbeAfterS);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeEveryS, sizeof kProbeEveryS);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbesMax, sizeof kProbesMax);
}

int bind_to(int fd, const sys::IpAddress& address) {
  const int one = 1;
  // For sockets of both families; without it each would take a port for itself at once.
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
  if (address.v6) {
    sockaddr_in6 where{};
    where.sin6_family = AF_INET6;
    std::memcpy(&where.sin6_addr, address.bytes.data(), 16);
    return bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where);
  }
  sockaddr_in where{};
  where.sin_family = AF_INET;
  std::memcpy(&where.sin_addr, address.bytes.data(), 4);
  return bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where);
}

}  // namespace

base::Result<std::vector<sys::IpAddress>> parse_sources(const std::vector<std::string>& texts) {
  std::vector<sys::IpAddress> found;
  std::string problems;
  const auto note = [&problems](const std::string& text) {
    problems += (problems.empty() ? "" : "; ") + text;
  };
  for (const std::string& text : texts) {
    const auto address = sys::parse_ip(text);
    if (!address) {
      note(fmt::format("source address \"{}\" is not an IP address", text));
    } else if (*address == sys::IpAddress{address->v6, {}}) {
      note(fmt::format("source address {} stands for any address; name one", text));
    } else if (std::find(found.begin(), found.end(), *address) != found.end()) {
      note(fmt::format("source address {} is given twice", text));
    } else if (const int error = sys::bind_error(*address); error != 0) {
      note(error == EADDRNOTAVAIL
               ? fmt::format("source address {} is not this host's; add it to an interface or "
                             "leave it out",
                             text)
               : fmt::format("source address {} cannot be bound: {}", text, std::strerror(error)));
    } else {
      found.push_back(*address);
    }
  }
  if (texts.size() >= kNoSource) {
    note(fmt::format("{} source addresses; fewer than {} are served", texts.size(), kNoSource));
  }
  if (!problems.empty()) {
    return base::fail(base::ExitCode::kSetup, problems);
  }
  return found;
}

Sources::Sources(std::vector<sys::IpAddress> addresses, std::size_t frontends, std::uint32_t worker)
    : addresses_(std::move(addresses)), counts_(frontends * addresses_.size(), 0) {
  // Frontend f begins f places on, so that few connections to many frontends spread as well.
  for (std::size_t f = 0; f < frontends && !addresses_.empty(); ++f) {
    next_.push_back((worker + f) % addresses_.size());
  }
}

std::uint16_t Sources::pick(bool v6, std::uint16_t frontend) {
  const std::size_t count = addresses_.size();
  const std::uint32_t* counts = counts_.data() + frontend * count;
  std::size_t best = count;
  for (std::size_t step = 0; step < count; ++step) {
    const std::size_t candidate = (next_[frontend] + step) % count;
    if (addresses_[candidate].v6 == v6 && (best == count || counts[candidate] < counts[best])) {
      best = candidate;
    }
  }
  if (best == count) {
    return kNoSource;
  }
  next_[frontend] = (best + 1) % count;
  return static_cast<std::uint16_t>(best);
}

sys::Fd Sources::open(int family, std::uint16_t frontend, std::uint16_t& source, int& os_error) {
  source = kNoSource;
  std::uint16_t chosen = kNoSource;
  if (!empty()) {
    chosen = pick(family == AF_INET6, frontend);
    if (chosen == kNoSource) {
      os_error = EPFNOSUPPORT;
      return {};
    }
  }
  sys::Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) {
    os_error = errno;
    return fd;
  }
  watch_peer(fd.get());
  if (chosen != kNoSource) {
    if (bind_to(fd.get(), addresses_[chosen]) != 0) {
      os_error = errno;
      fd.close();
      return fd;
    }
    ++counts_[frontend * addresses_.size() + chosen];
    source = chosen;
  }
  return fd;
}

void Sources::closed(std::uint16_t frontend, std::uint16_t source) {
  if (source != kNoSource) {
    --counts_[frontend * addresses_.size() + source];
  }
}

}  // namespace tutti::target
