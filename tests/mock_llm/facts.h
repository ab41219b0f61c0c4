#pragma once

// What the server counted, and its two faces: Prometheus text for /metrics and the line of totals
// printed at exit. Plain values; one thread.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/mock_llm/fault.h"

namespace tutti::mock_llm {

struct PortFacts {
  std::uint16_t port = 0;
  std::uint64_t accepted = 0;
  std::uint64_t open = 0;
  std::uint64_t requests = 0;  // every request read whole, on any route
};

// How late events went out against their schedule: the mock's own overload.
struct Lateness {
  static constexpr std::array<std::int64_t, 6> kEdgesNs = {100'000,    1'000'000,   5'000'000,
                                                           20'000'000, 100'000'000, 1'000'000'000};
  std::array<std::uint64_t, kEdgesNs.size() + 1> counts{};
  std::int64_t sum_ns = 0;
  std::int64_t max_ns = 0;

  void add(std::int64_t late_ns);
};

// Of the first kPeersMax addresses seen; the rest count together as "others".
inline constexpr std::size_t kPeersMax = 256;

struct Facts {
  std::vector<PortFacts> ports;
  std::map<std::pair<std::uint16_t, std::string>, std::uint64_t>
      peers;                      // (port, address) → accepted
  std::uint64_t completions = 0;  // requests on the two POST routes
  std::uint64_t finished = 0;     // of them, answered to the end as planned
  std::uint64_t refused = 0;      // malformed or unacceptable requests
  std::uint64_t cancelled = 0;    // the client went away before the answer's end
  std::uint64_t active = 0;       // being served
  std::uint64_t active_max = 0;
  std::uint64_t queued = 0;  // waiting for --max-concurrency
  std::uint64_t queued_max = 0;
  std::uint64_t tokens = 0;
  std::uint64_t events = 0;  // content events
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t blocked_sends = 0;  // the client read too slowly: the rest waits for its socket
  std::uint64_t accept_pauses = 0;  // no file descriptor left
  std::array<std::uint64_t, kFaultKinds> faults{};
  Lateness late;
};

void count_peer(Facts& facts, std::uint16_t port, std::string address);
std::string prometheus_text(const Facts& facts);
std::string totals_line(const Facts& facts);

}  // namespace tutti::mock_llm
