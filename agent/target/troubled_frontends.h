#pragma once

// TroubledFrontends: which frontends end connections without a whole reply, and how fast new ones
// may be opened to them. A frontend that refuses or resets at once would otherwise be asked as fast
// as this host can, by every agent: a storm that keeps it from coming back. It is in trouble from
// such a failure to its next whole reply. One bound for all of them together, so that a line of
// those who wait for it never stands behind another frontend. Pure; owned by one worker thread.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/target/connect_pacer.h"
#include "common/wire/record.h"

namespace tutti::target {

class TroubledFrontends {
 public:
  // `rate_max` connections per second to all in trouble; 0: no bound.
  TroubledFrontends(std::size_t frontends, std::uint32_t rate_max)
      : troubled_(frontends, 0), pacer_(rate_max) {}

  void note_end(std::uint16_t frontend, const wire::Record& record) {
    switch (record.failure) {
      case wire::Failure::kConnect:
      case wire::Failure::kConnectTimeout:
      case wire::Failure::kTls:
      case wire::Failure::kReset:
      case wire::Failure::kTruncated:
        troubled_[frontend] = 1;
        break;
      case wire::Failure::kRequestTimeout:
      case wire::Failure::kTurnTimeout:
      case wire::Failure::kCancelled:
      case wire::Failure::kInternal:
        break;  // tells nothing of how it ends connections
      default:
        troubled_[frontend] = 0;
        break;
    }
  }
  bool in_trouble(std::uint16_t frontend) const { return troubled_[frontend] != 0; }
  // Of the connections to those in trouble.
  ConnectPacer& pacer() { return pacer_; }
  const ConnectPacer& pacer() const { return pacer_; }

 private:
  std::vector<std::uint8_t> troubled_;
  ConnectPacer pacer_;
};

}  // namespace tutti::target
