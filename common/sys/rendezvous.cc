#include "common/sys/rendezvous.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "common/base/id.h"
#include "common/sys/fd.h"

namespace tutti::sys {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::size_t kEndpointsMax = 256;

struct HostPort {
  std::string host;  // without brackets
  std::string port;
};

HostPort parts_of(std::string_view endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kTcp) || colon <= kTcp.size() || colon + 1 == endpoint.size()) {
    return {};
  }
  std::string_view host = endpoint.substr(kTcp.size(), colon - kTcp.size());
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  return {std::string(host), std::string(endpoint.substr(colon + 1))};
}

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) {
      return {};  // means nothing without the name of a network card
    }
    inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
  }
  return text;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, const char* port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port, &hints, &found) != 0) {
    found = nullptr;
  }
  return {found, &freeaddrinfo};
}

// Addresses of this host's cards that are up, loopback left out.
std::vector<std::string> own_addresses() {
  std::vector<std::string> four;
  std::vector<std::string> six;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return {};
  }
  for (const ifaddrs* card = list; card != nullptr; card = card->ifa_next) {
    if (card->ifa_addr == nullptr || (card->ifa_flags & IFF_LOOPBACK) != 0 ||
        (card->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    std::string text = text_of(card->ifa_addr);
    if (!text.empty()) {
      (card->ifa_addr->sa_family == AF_INET ? four : six).push_back(std::move(text));
    }
  }
  freeifaddrs(list);
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

bool connects(const addrinfo& to, base::Duration patience) {
  const Fd fd(socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) {
    return false;
  }
  if (connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) {
    return true;
  }
  pollfd ready{fd.get(), POLLOUT, 0};
  if (errno != EINPROGRESS || poll(&ready, 1, static_cast<int>(patience.ns / 1'000'000)) != 1) {
    return false;
  }
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

std::vector<std::string> reachable_endpoints(std::string_view endpoint) {
  const HostPort parts = parts_of(endpoint);
  const bool any = parts.host == "0.0.0.0" || parts.host == "::" || parts.host == "*";
  if (!any) {
    return {std::string(endpoint)};
  }
  std::vector<std::string> addresses = own_addresses();
  if (parts.host == "0.0.0.0") {
    std::erase_if(addresses, [](const std::string& a) { return a.find(':') != std::string::npos; });
  }
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  std::vector<std::string> named;
  const Addresses found = resolve(name, nullptr);
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    named.push_back(text_of(each->ai_addr));
  }
  std::stable_partition(addresses.begin(), addresses.end(), [&](const std::string& address) {
    return std::find(named.begin(), named.end(), address) != named.end();
  });
  if (addresses.empty()) {
    addresses.emplace_back("127.0.0.1");
  }
  std::vector<std::string> out;
  for (const std::string& address : addresses) {
    const bool six = address.find(':') != std::string::npos;
    out.push_back(six ? fmt::format("tcp://[{}]:{}", address, parts.port)
                      : fmt::format("tcp://{}:{}", address, parts.port));
  }
  return out;
}

base::Status publish_endpoints(const std::string& path, const std::vector<std::string>& endpoints) {
  const std::string temporary = base::draft_path(path);
  std::string text;
  for (const std::string& endpoint : endpoints) {
    text += endpoint + "\n";
  }
  const Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool written = fd.is_open() &&
                       write(fd.get(), text.data(), text.size()) == std::ssize(text) &&
                       fsync(fd.get()) == 0 && rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) {
    const int cause = errno;
    unlink(temporary.c_str());
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("rendezvous file {}: {}; name a file in a folder that every host "
                                  "of the run sees and this one may write",
                                  path, std::strerror(cause)));
  }
  return {};
}

std::vector<std::string> published_endpoints(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> out;
  for (std::string line; out.size() <= kEndpointsMax && std::getline(in, line);) {
    if (parts_of(line).port.empty()) {
      return {};
    }
    out.push_back(line);
  }
  return out;
}

bool answers(std::string_view endpoint, base::Duration patience) {
  const HostPort parts = parts_of(endpoint);
  const Addresses found = resolve(parts.host, parts.port.c_str());
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    if (connects(*each, patience)) {
      return true;
    }
  }
  return false;
}

}  // namespace tutti::sys
