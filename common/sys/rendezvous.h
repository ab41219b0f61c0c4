#pragma once

// Meeting through a file on a shared folder: who listens publishes its addresses there, whole or
// not at all; who dials reads them and takes the first that answers. Addresses are
// tcp://HOST:PORT, one a line. Cold path; any thread.

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace tutti::sys {

// What others may dial to reach a socket bound to `endpoint`: the endpoint itself, or, when it is
// bound to all addresses of this host, each of them: those its own name stands for first, then the
// rest, IPv4 before IPv6. Loopback addresses only when the host has no other.
std::vector<std::string> reachable_endpoints(std::string_view endpoint);

// Writes beside `path` and renames. kSetup with the remedy.
base::Status publish_endpoints(const std::string& path, const std::vector<std::string>& endpoints);

// Empty while the file is not there, or holds anything but addresses.
std::vector<std::string> published_endpoints(const std::string& path);

// Whether something accepts a TCP connection there. Waits `patience` at most for each address the
// host name stands for.
bool answers(std::string_view endpoint, base::Duration patience);

}  // namespace tutti::sys
