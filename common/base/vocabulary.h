#pragma once

// The words every floor shares: what a phase is, what an issue command is, which patterns exist.
// docs/terminology.md owns the definitions; this file owns the spelling.

#include <cstdint>

#include "common/base/time.h"

namespace tutti::base {

using Seq = std::uint64_t;          // position in a phase's schedule, from 0
using SampleIndex = std::uint32_t;  // row of the data set, from 0

enum class PhaseKind : std::uint8_t { kWarmup = 0, kPerformance = 1, kAccuracy = 2 };

// How issue commands become due.
//   burst        all due at phase start (max_throughput)
//   timed        each has its own due offset (poisson)
//   closed_loop  due when one of C slots is free (concurrency)
enum class Pacing : std::uint8_t { kBurst = 0, kTimed = 1, kClosedLoop = 2 };

// Which frontend the next query goes to (agent/target/frontend.h has the rules).
enum class Balance : std::uint8_t {
  kLeastInFlight = 0,
  kRoundRobin = 1,
  kPinned = 2,
  kWeighted = 3,
  kAffinity = 4
};

// The way onto the wire. Direct frames HTTP/1.1 on plain sockets and has the kernel's receive
// stamps; multi is libcurl. Auto: direct, unless a frontend is https.
enum class Way : std::uint8_t { kAuto = 0, kDirect = 1, kMulti = 2 };

enum class ApiType : std::uint8_t {
  kOpenAiChat = 0,
  kOpenAiCompletions = 1,
  kSglang = 2,   // SGLang's own /generate: token ids in, cumulative text out
  kVideogen = 3  // one video per request, never a stream
};

// An order to send one query. `due_offset` counts from phase start and is 0 unless the pacing is
// timed. `salt` is 0 when the phase is unsalted; else the 8 salt bytes, first byte in the top bits,
// so that printing it as 16 hex digits gives the salt's text.
struct IssueCommand {
  Seq seq = 0;
  SampleIndex sample = 0;
  Duration due_offset{};
  bool salted = false;
  std::uint64_t salt = 0;

  friend bool operator==(const IssueCommand&, const IssueCommand&) = default;
};

}  // namespace tutti::base
