#pragma once

// What `info` says of this host beyond its limits: processors and addresses, as lines of text. Read
// from /proc and the interfaces when asked; what cannot be read is said to be unknown. One thread.

#include <string>

namespace tutti::host {

// "  Physical cores: 4\n  Logical cores: 8\n  Frequency: 2400 MHz\n"
std::string cpu_lines();

// "Network:\n  IP Address: 10.0.0.1\n": the first IPv4 address of an interface that is up and no
// loopback.
std::string network_lines();

}  // namespace tutti::host
