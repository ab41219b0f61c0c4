#include "coordinator/conduct/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "common/base/check.h"
#include "common/plan/deal.h"
#include "coordinator/conduct/budget.h"

namespace tutti::conduct {
namespace {

// Slots of one worker that share HTTP/2 connections (agent/target: kSlotsPerShard).
constexpr std::uint64_t kSlotsPerGroup = 256;

using Agents = std::vector<const roster::Agent*>;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::uint64_t files_kept(const wire::Hello& hello) {
  return kFilesKept + kFilesKeptPerWorker * hello.workers;
}

// Connections the agent's open-file limit leaves room for.
std::uint64_t files_left(const wire::Hello& hello) {
  if (hello.fd_limit == 0) {
    return kNoLimit;
  }
  return hello.fd_limit - std::min(hello.fd_limit, files_kept(hello));
}

std::uint32_t open_slots(const RunPhase& phase, std::uint64_t held) {
  return static_cast<std::uint32_t>(
      std::min({held, std::uint64_t{kOpenSlotsMax}, std::max<base::Seq>(1, phase.schedule.total)}));
}

void share_slots(const RunPlan& plan, const Agents& agents, Capacity& out) {
  const auto fit = slots_that_fit(plan, agents, out);
  for (const RunPhase& phase : plan.phases) {
    const bool closed = phase.schedule.pacing == base::Pacing::kClosedLoop;
    const std::uint32_t total = closed ? phase.schedule.concurrency : plan.in_flight_max;
    const auto split = plan::split_slots(total, agents.size());
    for (std::size_t i = 0; i < agents.size(); ++i) {
      AgentShare& share = out.shares[i];
      const std::uint32_t slots =
          total > 0 ? split[i] : open_slots(phase, std::min(files_left(agents[i]->hello), fit[i]));
      share.slots.push_back(slots);
      share.slots_max = std::max(share.slots_max, slots);
      share.slots_asked = std::max(share.slots_asked, split[i]);
    }
  }
}

std::uint32_t clamped(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

// The most that these slots have in use at once. Over HTTP/2 that is for full connections and, of
// each group of slots that share some, one to each frontend that is not full.
std::uint64_t connections_for(const RunPlan& plan, const wire::Hello& hello, std::uint64_t slots) {
  const std::uint64_t streams = plan.target.streams_max;
  if (streams == 0) {
    return slots;
  }
  const std::uint64_t groups = hello.workers + slots / kSlotsPerGroup;
  return std::min(slots, slots / streams + groups * plan.target.urls.size());
}

// Connections that each agent may hold, idle ones included, as far as its files go. Slots for which
// files are too few are left to check_files.
void share_connections_max(const RunPlan& plan, const Agents& agents, Capacity& out) {
  const bool several = plan.target.urls.size() > 1;
  const bool pinned = plan.target.balance == base::Balance::kPinned;
  const auto most = plan::split_slots(plan.connections_max, agents.size());
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    AgentShare& share = out.shares[i];
    const std::uint64_t room =
        std::max<std::uint64_t>(files_left(agents[i]->hello), share.slots_max);
    const std::uint64_t needed = connections_for(plan, agents[i]->hello, share.slots_max);
    if (plan.connections_max > 0) {
      share.connections_max = clamped(std::min<std::uint64_t>(std::max(1U, most[i]), room));
    } else if (several) {
      // One for each slot, and as many again kept idle to other frontends.
      const std::uint64_t wanted = needed * (pinned ? 1 : 2);
      share.connections_max = clamped(std::min(wanted, room));
    }
    share.connections_used = clamped(share.connections_max == 0
                                         ? needed
                                         : std::min<std::uint64_t>(needed, share.connections_max));
    held += share.connections_max;
  }
  if (held < plan.connections_max) {
    out.warnings.push_back(fmt::format(
        "max_connections is {}, but the agents' open files leave room for {}: that many it is; "
        "raise their limit (ulimit -n), add agents, or lower max_connections",
        plan.connections_max, held));
  }
}

void share_connections(const RunPlan& plan, const Agents& agents, Capacity& out) {
  share_connections_max(plan, agents, out);
  const auto warm = plan::split_slots(
      static_cast<std::uint32_t>(std::max<std::int64_t>(0, plan.connections_warm)),
      out.shares.size());
  for (std::size_t i = 0; i < out.shares.size(); ++i) {
    AgentShare& share = out.shares[i];
    const std::uint64_t first = connections_for(plan, agents[i]->hello, share.slots.front());
    share.connections_warm = plan.connections_warm < 0 ? clamped(first) : warm[i];
    share.connections_warm = std::min(share.connections_warm, share.connections_used);
  }
}

// Connections beyond one for each slot that may be kept idle: to a frontend no more than were once
// in use to it.
std::uint64_t kept_idle(const RunPlan& plan, const AgentShare& share) {
  if (plan.target.urls.size() < 2 || plan.target.balance == base::Balance::kPinned) {
    return 0;
  }
  const std::uint64_t used = share.connections_used;
  return std::min<std::uint64_t>(share.connections_max - used,
                                 used * (plan.target.urls.size() - 1));
}

// Empty if they do.
std::string why_files_do_not_do(const wire::Hello& hello, std::uint64_t wanted) {
  if (wanted > files_left(hello)) {
    return fmt::format(
        "agent {} would open {} connections, but may have {} files open and keeps {} for itself "
        "({} and {} for each of {} workers), which leaves {}: raise its limit to {} (ulimit -n) or "
        "add agents",
        hello.agent_name, wanted, hello.fd_limit, files_kept(hello), kFilesKept,
        kFilesKeptPerWorker, hello.workers, files_left(hello), wanted + files_kept(hello));
  }
  if (wanted == 0 && hello.fd_limit != 0 && files_left(hello) == 0) {
    return fmt::format(
        "agent {} may have {} files open and keeps {} for itself, so it could open no connection "
        "at all: raise its limit (ulimit -n)",
        hello.agent_name, hello.fd_limit, files_kept(hello));
  }
  return "";
}

void check_files(const RunPlan& plan, const Agents& agents, Capacity& out) {
  std::map<std::string, std::vector<std::string>> fitting;  // sum → names
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const wire::Hello& hello = agents[i]->hello;
    const AgentShare& share = out.shares[i];
    const std::uint64_t wanted = share.connections_used;
    if (std::string why = why_files_do_not_do(hello, wanted); !why.empty()) {
      out.problems.push_back(std::move(why));
      continue;
    }
    if (hello.fd_limit == 0) {
      continue;
    }
    // Idle connections are closed when files are wanted: the least that will do is what counts.
    const double percent = 100.0 / static_cast<double>(hello.fd_limit);
    const std::uint64_t asked = std::min<std::uint64_t>(wanted, share.slots_asked);
    out.used_percent =
        std::max(out.used_percent, percent * static_cast<double>(wanted + files_kept(hello)));
    out.asked_percent =
        std::max(out.asked_percent, percent * static_cast<double>(asked + files_kept(hello)));
    const std::uint64_t kept = kept_idle(plan, share);
    fitting[fmt::format("{} connections + {} kept idle + {} for itself ({} and {} for each of {} "
                        "worker{}) = {} of {} open files",
                        wanted, kept, files_kept(hello), kFilesKept, kFilesKeptPerWorker,
                        hello.workers, hello.workers == 1 ? "" : "s",
                        wanted + kept + files_kept(hello), hello.fd_limit)]
        .push_back(hello.agent_name);
  }
  for (const auto& [sum, names] : fitting) {
    out.budget.push_back(fmt::format("agent{} {}: {}{}", names.size() == 1 ? "" : "s",
                                     names_text(names), names.size() == 1 ? "" : "each ", sum));
  }
}

}  // namespace

Capacity share_capacity(const RunPlan& plan, const Agents& agents) {
  TUTTI_CHECK(!agents.empty());
  Capacity out;
  out.shares.resize(agents.size());
  share_sources(plan, agents, out);
  share_slots(plan, agents, out);
  share_connections(plan, agents, out);
  check_files(plan, agents, out);
  check_ports(plan, agents, out);
  check_memory(plan, agents, out);
  return out;
}

std::vector<std::string> spoken_budget(const Capacity& capacity) {
  if (capacity.budget.empty() || capacity.asked_percent > kSpokenPercent) {
    return capacity.budget;
  }
  return {fmt::format(
      "Budget: fits; at most {:.0f} % of files, ports and memory{} (report.txt has "
      "the sums)",
      std::ceil(capacity.used_percent),
      capacity.used_percent > kSpokenPercent ? ", as queries in flight are held to what fits"
                                             : "")};
}

}  // namespace tutti::conduct
