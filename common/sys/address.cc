#include "common/sys/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "common/sys/fd.h"

namespace tutti::sys {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

std::optional<IpAddress> address_in(const sockaddr* from) {
  IpAddress found;
  if (from == nullptr) {
    return std::nullopt;
  }
  if (from->sa_family == AF_INET) {
    std::memcpy(found.bytes.data(), &reinterpret_cast<const sockaddr_in*>(from)->sin_addr, 4);
    return found;
  }
  if (from->sa_family == AF_INET6) {
    found.v6 = true;
    std::memcpy(found.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr, 16);
    return found;
  }
  return std::nullopt;
}

int ones_in(const IpAddress& mask) {
  int ones = 0;
  for (const std::uint8_t byte : mask.bytes) {
    ones += __builtin_popcount(byte);
  }
  return ones;
}

bool is_link_local(const IpAddress& address) {
  return address.v6 && address.bytes[0] == 0xFE && (address.bytes[1] & 0xC0) == 0x80;
}

}  // namespace

std::optional<IpAddress> parse_ip(std::string_view text) {
  const std::string copy(text);
  IpAddress found;
  if (inet_pton(AF_INET, copy.c_str(), found.bytes.data()) == 1) {
    return found;
  }
  found.v6 = true;
  if (inet_pton(AF_INET6, copy.c_str(), found.bytes.data()) == 1) {
    return found;
  }
  return std::nullopt;
}

std::string text_of(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.v6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return text;
}

bool covers(std::string_view block, const IpAddress& address) {
  const std::size_t slash = block.find('/');
  const auto base = parse_ip(block.substr(0, slash));
  if (!base || base->v6 != address.v6) {
    return false;
  }
  std::size_t bits = address.v6 ? 128 : 32;
  if (slash != std::string_view::npos) {
    const std::string_view digits = block.substr(slash + 1);
    std::size_t given = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), given);
    if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size() || given > bits) {
      return false;
    }
    bits = given;
  }
  for (std::size_t bit = 0; bit < bits; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80U >> bit % 8);
    if (((base->bytes[bit / 8] ^ address.bytes[bit / 8]) & mask) != 0) {
      return false;
    }
  }
  return true;
}

std::vector<std::string> own_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, FreeInterfaces> owner(list);
  std::vector<std::string> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    const auto address = address_in(each->ifa_addr);
    if (!address || is_link_local(*address)) {
      continue;
    }
    std::string text = text_of(*address);
    const auto mask = address_in(each->ifa_netmask);
    if ((each->ifa_flags & IFF_LOOPBACK) != 0 && mask) {
      text += fmt::format("/{}", ones_in(*mask));
    }
    if (std::find(found.begin(), found.end(), text) == found.end()) {
      found.push_back(std::move(text));
    }
  }
  return found;
}

int bind_error(const IpAddress& address) {
  const Fd fd(socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) {
    return errno;
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  std::memcpy(&v4.sin_addr, address.bytes.data(), 4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  std::memcpy(&v6.sin6_addr, address.bytes.data(), 16);
  const auto* where =
      address.v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  return bind(fd.get(), where, address.v6 ? sizeof v6 : sizeof v4) == 0 ? 0 : errno;
}

}  // namespace tutti::sys
