#pragma once

// ConnectPaces: who may open a connection now, who has to stand in line for one, and what each one
// opened is charged to: connect_rate_max when there is one, else the bound of the frontends in
// trouble. Both transports ask here, so that the rule is written once. Pure; owned by one worker
// thread.

#include <cstddef>
#include <cstdint>

#include "agent/target/connect_pacer.h"
#include "agent/target/troubled_frontends.h"

namespace tutti::target {

class ConnectPaces {
 public:
  // Connections per second: `rate_max` to all frontends, 0: no bound; `trouble_rate_max` to those
  // in trouble, counted without a `rate_max` only.
  ConnectPaces(std::size_t frontends, std::uint32_t rate_max, std::uint32_t trouble_rate_max)
      : pacer_(rate_max), troubled_(frontends, trouble_rate_max) {}

  void note_end(std::uint16_t frontend, const wire::Record& record) {
    troubled_.note_end(frontend, record);
  }
  // Its new connections are bounded, so its queries may have to stand in line.
  bool bounds(std::uint16_t frontend) const {
    return pacer_.bounded() || troubled_.in_trouble(frontend);
  }
  // Of the line.
  bool open(base::Instant now) const { return line_pacer().open(now); }
  base::Instant next_at() const { return line_pacer().next_at(); }
  // Of two in line. One whose frontend came back does not stand behind those of a dead one, which
  // would only be refused, and slowly.
  bool goes_first(std::uint16_t frontend, base::Instant started_at, std::uint16_t other,
                  base::Instant other_started_at) const {
    if (bounds(frontend) != bounds(other)) {
      return !bounds(frontend);
    }
    return started_at < other_started_at;
  }
  // A connection is opened. One from the line is charged also when its frontend came back
  // meanwhile: it does not get its whole line at once.
  void charge(std::uint16_t frontend, bool from_line, base::Instant now) {
    if (bounds(frontend) || from_line) {
      (pacer_.bounded() ? pacer_ : troubled_.pacer()).charge(now);
    }
  }

 private:
  const ConnectPacer& line_pacer() const { return pacer_.bounded() ? pacer_ : troubled_.pacer(); }

  ConnectPacer pacer_;
  TroubledFrontends troubled_;
};

}  // namespace tutti::target
