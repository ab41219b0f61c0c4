#pragma once

// Frontend: one base URL of the run, checked once at the door. Plain values; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/wire/messages.h"

namespace tutti::target {

struct Frontend {
  std::string url;    // as sent: http or https, no user info, no fragment
  std::string label;  // host:port, for messages
  bool tls = false;
  // Request line and header, without the digits of Content-Length and of the affinity header.
  std::uint32_t head_bytes = 0;
};

// What each query's affinity header says, before the sample's number.
inline constexpr const char* kAffinityValue = "sample-";

// kSetup errors name every bad URL and header of `target`. A user name or password in a URL is left
// out, as the reference client leaves it out.
base::Result<std::vector<Frontend>> parse_frontends(const wire::TargetSpec& target);

}  // namespace tutti::target
