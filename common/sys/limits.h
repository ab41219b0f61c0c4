#pragma once

// What this host lets a process have: descriptors, local ports, memory. Read once at start, to say
// before a run what cannot hold it. Any thread.

#include <cstdint>

namespace tutti::sys {

struct OpenFilesLimit {
  std::uint64_t soft = 0;  // in force now
  std::uint64_t hard = 0;  // ceiling; without CAP_SYS_RESOURCE even root cannot pass it
};

OpenFilesLimit open_files_limit();
// Lifts the soft limit to the hard one and returns what is in force then. Never fails: a limit that
// could not be lifted is reported as it is.
OpenFilesLimit raise_open_files_limit();

// Size of net.ipv4.ip_local_port_range: the most connections from one source address to one
// destination address and port. 0 when it cannot be read.
std::uint32_t ephemeral_ports();

// Bytes this process could still take: what the kernel calls available, or what the memory limit of
// its control group leaves, if that is less. 0 when neither can be read.
std::uint64_t available_memory();

}  // namespace tutti::sys
