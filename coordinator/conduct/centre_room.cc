#include "coordinator/conduct/centre_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coordinator/conduct/capacity.h"

namespace tutti::conduct {
namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const auto value = static_cast<double>(bytes);
  return value >= kGiB ? fmt::format("{:.1f} GiB", value / kGiB)
                       : fmt::format("{:.1f} MiB", value / (1024.0 * 1024));
}

constexpr std::uint64_t kRecordsMax = std::uint64_t{1} << 32;       // the ledger takes no more
constexpr std::uint64_t kPromptBytesMax = std::uint64_t{16} << 20;  // keeps the sums within 64 bits

// A cap in time bounds them too: by the rate, or by what a coordinator can take in at all.
std::uint64_t records_max_of(const plan::PhaseSpec& spec, base::Duration cap) {
  const std::uint64_t total = std::min<std::uint64_t>(spec.total, kRecordsMax);
  if (cap.ns <= 0) {
    return total;
  }
  const double rate = spec.pacing == base::Pacing::kTimed
                          ? std::min(spec.target_qps * 1.1, kRecordsPerSecondMax)
                          : kRecordsPerSecondMax;
  const double most = std::ceil(rate * cap.to_seconds());
  return most < static_cast<double>(total) ? static_cast<std::uint64_t>(most) : total;
}

// Commands in agents' hands at once. A timed phase has a few seconds' worth of them: next to
// nothing.
std::uint64_t slots_of(const RunPlan& plan, const RunPhase& phase) {
  const std::uint64_t most = std::uint64_t{plan.agents_expected} * kOpenSlotsMax;
  switch (phase.schedule.pacing) {
    case base::Pacing::kClosedLoop:
      return phase.schedule.concurrency;
    case base::Pacing::kBurst:
      return std::min(phase.schedule.total, plan.in_flight_max > 0 ? plan.in_flight_max : most);
    case base::Pacing::kTimed:
      break;
  }
  return 0;
}

void judge(CentreRoom& room, bool capped, std::uint64_t needed, std::uint64_t there,
           const std::string& sum, const char* remedy) {
  if (there == 0) {
    return;
  }
  const std::string free = size_text(there);
  if (needed <= there) {
    room.budget.push_back(fmt::format("{} of {} free", sum, free));
    return;
  }
  auto& list = capped ? room.warnings : room.problems;
  list.push_back(
      fmt::format("{}, and {} are free: {}{}", sum, free, remedy,
                  capped ? " (the phases are capped in time: they may end before that)" : ""));
}

}  // namespace

CentreRoom centre_room(const RunPlan& plan, const CentreHost& host) {
  CentreRoom room;
  std::uint64_t firm = 0;  // of phases without a cap in time: these come for sure
  std::uint64_t slots = 0;
  for (const RunPhase& phase : plan.phases) {
    const std::uint64_t records = records_max_of(phase.schedule, phase.issue_cap);
    room.records_max += records;
    firm += phase.issue_cap.ns > 0 ? 0 : records;
    slots = std::max(slots, slots_of(plan, phase));
  }
  const bool counts =
      plan.counting.terms.wanted() && plan.counting.where != CountingWhere::kCoordinator;
  const std::uint64_t each =
      kRecordHeldBytes + kRecordReportBytes + (counts ? kRecordCountBytes : 0);
  const std::uint64_t other =
      slots * kCommandHeldBytes + plan.agents_expected * kCentreAgentBytes + kCentreFixedBytes;
  room.memory_bytes = room.records_max * each + other;
  judge(room, firm * each + other <= host.memory_bytes, room.memory_bytes, host.memory_bytes,
        fmt::format("the coordinator takes memory for {} records × {} bytes + {} agents × {} KiB + "
                    "{} slots × {} bytes + {} MiB = {}",
                    room.records_max, each, plan.agents_expected, kCentreAgentBytes >> 10, slots,
                    kCommandHeldBytes, kCentreFixedBytes >> 20, size_text(room.memory_bytes)),
        "issue fewer queries (runtime.n_samples_to_issue, runtime.max_issue_duration_ms), free "
        "memory, or raise its limit");
  const std::uint64_t prompt =
      plan.bodies.rows == 0 ? 0 : std::min(kPromptBytesMax, plan.bodies.bytes / plan.bodies.rows);
  room.disk_bytes = room.records_max * (kRecordDiskBytes + prompt);
  judge(room, firm * (kRecordDiskBytes + prompt) <= host.disk_bytes, room.disk_bytes,
        host.disk_bytes,
        fmt::format("the run folder takes disk for {} records × ({} bytes + {} of prompt) = {} and "
                    "twice the replies' texts",
                    room.records_max, kRecordDiskBytes, prompt, size_text(room.disk_bytes)),
        "issue fewer queries, free space there, or choose another report_dir");
  return room;
}

}  // namespace tutti::conduct
