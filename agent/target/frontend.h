#pragma once

// Frontend: one base URL of the run, checked once at the door; and which of them the next query
// goes to. Picking is pure bookkeeping, owned by one worker thread.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/vocabulary.h"
#include "common/wire/messages.h"

namespace tutti::target {

struct Frontend {
  std::string url;    // as sent: http or https, no user info, no fragment
  std::string label;  // host:port, for messages
  bool tls = false;
  std::uint32_t head_bytes = 0;  // request line and header, without Content-Length's digits
};

// kSetup errors name every bad URL and header of `target`. A user name or password in a URL is left
// out, as the reference client leaves it out.
base::Result<std::vector<Frontend>> parse_frontends(const wire::TargetSpec& target);

class FrontendPicker {
 public:
  // `worker` is the run-wide worker number: the pinned frontend, and where ties begin to rotate.
  FrontendPicker(base::Balance balance, std::size_t frontends, std::uint32_t worker);

  // Least in flight: ties go round; round robin: seq mod F; pinned: worker mod F.
  std::uint16_t pick(base::Seq seq);
  void started(std::uint16_t frontend) { ++in_flight_[frontend]; }
  void ended(std::uint16_t frontend) { --in_flight_[frontend]; }
  std::uint32_t in_flight(std::uint16_t frontend) const { return in_flight_[frontend]; }

 private:
  base::Balance balance_;
  std::vector<std::uint32_t> in_flight_;
  std::size_t next_ = 0;
  std::uint16_t pinned_ = 0;
};

}  // namespace tutti::target
