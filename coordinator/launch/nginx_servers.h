#pragma once

// The servers behind an nginx, read from its configuration, so that a client can load them itself:
// one nginx has only one source address towards each of them, and its limits become the client's.

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace tutti::launch {

// host:port of every `server` of the one `upstream` block, in order; those marked down or backup
// are left out. kInput when there is no such block or several, or a server is a path.
base::Result<std::vector<std::string>> nginx_servers(std::string_view config);

}  // namespace tutti::launch
