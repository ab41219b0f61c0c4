#pragma once

// CentreRoom: can the coordinator hold the records of this run? What it takes in memory until the
// report is written, and on the run folder's disk, against what is there, as sentences with the
// arithmetic. docs/operating.md has the formula. Pure; no owner.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/conduct/run_plan.h"

namespace tutti::conduct {

// Of the coordinator's host when the run begins; 0: not known.
struct CentreHost {
  std::uint64_t memory_bytes = 0;  // free for this process
  std::uint64_t disk_bytes = 0;    // free in the run folder
};

struct CentreRoom {
  std::uint64_t records_max = 0;      // what the plan can issue at most
  std::uint64_t memory_bytes = 0;     // at the peak, while the report is made
  std::uint64_t disk_bytes = 0;       // texts of replies not counted: nobody knows them yet
  std::vector<std::string> problems;  // not empty: the run must not begin
  std::vector<std::string> warnings;  // it may not hold, if all is issued that could be
  std::vector<std::string> budget;    // what fits, for people
};

// Of a record in memory: 128 bytes and 4 of index as long as the run lasts, and on top of them,
// while the report is made, its values in the series and the order of the events.
inline constexpr std::uint64_t kRecordHeldBytes = 132;
inline constexpr std::uint64_t kRecordReportBytes = 100;
inline constexpr std::uint64_t kRecordCountBytes = 12;         // where agents may count its tokens
inline constexpr std::uint64_t kCommandHeldBytes = 48;         // per slot, while it is taken
inline constexpr std::uint64_t kCentreAgentBytes = 256 << 10;  // link, clock, health by the second
inline constexpr std::uint64_t kCentreFixedBytes = std::uint64_t{64} << 20;
// Lines of events.jsonl of one query without prompt and texts: issued, first chunk, complete; and
// its line of sample_idx_map.json.
inline constexpr std::uint64_t kRecordDiskBytes = 640;

// What one coordinator takes in at most, whatever its agents could send (docs/benchmarks.md).
inline constexpr double kRecordsPerSecondMax = 1e6;

// A phase that is capped in time may end long before its last query, so that what does not fit is a
// warning then.
CentreRoom centre_room(const RunPlan& plan, const CentreHost& host);

}  // namespace tutti::conduct
