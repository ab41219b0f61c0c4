#include "coordinator/host_text.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

namespace tutti::host {

std::string cpu_lines() {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::pair<std::string, std::string>> cores;
  std::string package;
  double mhz = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    const std::string value = colon == std::string::npos ? "" : line.substr(colon + 2);
    if (line.starts_with("physical id")) {
      package = value;
    } else if (line.starts_with("core id")) {
      cores.emplace(package, value);
    } else if (line.starts_with("cpu MHz") && mhz == 0) {
      mhz = std::strtod(value.c_str(), nullptr);
    }
  }
  const long logical = sysconf(_SC_NPROCESSORS_ONLN);
  return fmt::format("  Physical cores: {}\n  Logical cores: {}\n  Frequency: {}\n",
                     cores.empty() ? "unknown" : std::to_string(cores.size()), logical,
                     mhz > 0 ? fmt::format("{:.0f} MHz", mhz) : "unknown");
}

std::string network_lines() {
  std::string found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* each = all; each != nullptr && found.empty(); each = each->ifa_next) {
      const bool is_loopback = (each->ifa_flags & IFF_LOOPBACK) != 0;
      const bool is_up = (each->ifa_flags & IFF_UP) != 0;
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET || is_loopback ||
          !is_up) {
        continue;
      }
      sockaddr_in address{};
      std::memcpy(&address, each->ifa_addr, sizeof address);
      char text[INET_ADDRSTRLEN] = {};
      inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
      found = text;
    }
    freeifaddrs(all);
  }
  return fmt::format("Network:\n  IP Address: {}\n", found.empty() ? "Unable to determine" : found);
}

}  // namespace tutti::host
