#pragma once

// Sources: the addresses this host's connections come from, and how many connections stand between
// each of them and each frontend. The next one comes from the source with fewest to its frontend,
// so a (source, frontend) pair never has two more than another, ties going round from a place that
// differs by worker. Sockets are bound without taking a port (IP_BIND_ADDRESS_NO_PORT): the kernel
// picks it at connect, per destination. With no addresses given nothing is bound and all calls are
// free. Owned by one worker thread.

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/sys/address.h"
#include "common/sys/fd.h"

namespace tutti::target {

inline constexpr std::uint16_t kNoSource = 0xFFFF;

// kSetup errors name every text that is no address or not this host's.
base::Result<std::vector<sys::IpAddress>> parse_sources(const std::vector<std::string>& texts);

class Sources {
 public:
  Sources(std::vector<sys::IpAddress> addresses, std::size_t frontends, std::uint32_t worker);

  // A socket to connect to `frontend` with, bound if there are sources, and counted until
  // closed(). It asks a peer silent for 30 s whether it is there; a minute of silence breaks it,
  // unless bytes of ours are on their way: those the kernel repeats for some 15 minutes.
  // Not open: errno in `os_error`; EPFNOSUPPORT when no source is of that family.
  sys::Fd open(int family, std::uint16_t frontend, std::uint16_t& source, int& os_error);
  void closed(std::uint16_t frontend, std::uint16_t source);

  std::uint32_t connections(std::uint16_t frontend, std::uint16_t source) const {
    return counts_[frontend * addresses_.size() + source];
  }
  bool empty() const { return addresses_.empty(); }

 private:
  std::uint16_t pick(bool v6, std::uint16_t frontend);

  std::vector<sys::IpAddress> addresses_;
  std::vector<std::uint32_t> counts_;  // by frontend, by source
  std::vector<std::size_t> next_;      // by frontend: where ties begin
};

}  // namespace tutti::target
