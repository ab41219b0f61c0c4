#pragma once

// ConnectPacer: a token bucket for new connections. Up to a hundredth of a second's worth may come
// at once; then one every 1 / rate. A connection that was opened without asking (libcurl decides
// for itself) is charged all the same, and the next ones wait for it. Pure; one owner.

#include <algorithm>
#include <cstdint>

#include "common/base/time.h"

namespace tutti::target {

class ConnectPacer {
 public:
  // `rate_max` connections per second; 0: no bound.
  explicit ConnectPacer(std::uint32_t rate_max)
      : gap_{rate_max == 0 ? 0 : 1'000'000'000 / std::int64_t{rate_max}},
        burst_{rate_max == 0 ? 0 : std::max<std::int64_t>(10'000'000 - gap_.ns, 0)} {}

  bool bounded() const { return gap_.ns > 0; }
  bool open(base::Instant now) const { return !bounded() || next_at_ <= now; }
  // When open() holds next; kFarFuture never.
  base::Instant next_at() const { return next_at_; }
  void charge(base::Instant now) {
    if (bounded()) {
      next_at_ = std::max(next_at_, now - burst_) + gap_;
    }
  }

 private:
  base::Duration gap_;
  base::Duration burst_;
  base::Instant next_at_{};
};

}  // namespace tutti::target
