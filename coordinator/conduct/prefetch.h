#pragma once

// Prefetch: how many commands an agent should hold beyond its slots, so that a freed slot never
// waits for the coordinator, and no more, so that little has to be recalled at a stop.
//
//   depth = clamp(⌈2 · rate · delay⌉, 2, kPrefetchMax)
//
// rate   the agent's completions per second: the best of the last kWindows windows, so that a
//        short lull or the wait for the first wave of a phase does not drain the queue;
// delay  the time from a completion to the arrival of its replacement: round trip and its spread +
//        the agent's batching delay + our own (the caller's sum).
// The factor 2 covers completions that come in clumps. Where queries are shorter than the delay,
// depth exceeds the slots, as it must: rate · delay queries end before the first replacement comes.
// Until something was measured: as many as the slots, at most kUnmeasuredMax.
//
// A lease wakes several threads of its agent, however little is in it. So it is not sent for every
// batch of replies: once less than depth is left, it fills up to depth + lot, where lot = depth,
// or 0 where depth was set by hand or nothing was measured.
// Pure; owned by one PhaseRun.

#include <array>
#include <cstdint>

#include "common/base/time.h"

namespace tutti::conduct {

class Prefetch {
 public:
  static constexpr std::uint64_t kUnmeasuredMax = 64;
  static constexpr std::uint64_t kDepthMin = 2;
  static constexpr base::Duration kWindow = base::Duration::millis(200);
  static constexpr std::size_t kWindows = 8;

  // `setting` as RunPlan::prefetch.
  Prefetch(std::int64_t setting, std::uint32_t slots) : setting_(setting), slots_(slots) {}

  void completed(std::uint64_t queries, base::Instant now);
  std::uint64_t depth(base::Duration delay, base::Instant now) const;
  std::uint64_t lot(base::Duration delay, base::Instant now) const;
  // Completions per second, as used by depth(); 0 when nothing was measured yet.
  double rate(base::Instant now) const;

 private:
  std::int64_t window_of(base::Instant now) const { return now.ns / kWindow.ns; }

  std::int64_t setting_;
  std::uint32_t slots_;
  bool measured_ = false;
  std::int64_t newest_ = 0;                      // window number of the newest cell
  std::array<std::uint64_t, kWindows> cells_{};  // completions by window number mod kWindows
};

}  // namespace tutti::conduct
