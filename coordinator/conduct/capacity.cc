#include "coordinator/conduct/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "common/base/check.h"
#include "common/plan/deal.h"
#include "coordinator/conduct/budget.h"

namespace tutti::conduct {
namespace {

using Agents = std::vector<const roster::Agent*>;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Connections that the ports of each host allow its agents between them, if they share evenly.
struct HostPorts {
  std::uint64_t agents = 0;
  std::uint64_t ports = 0;  // of one source address and one destination; 0: not known
  std::set<std::string> sources;

  std::uint64_t connections(double part_max) const {
    const auto sources_used = static_cast<double>(std::max<std::size_t>(1, sources.size()));
    return ports == 0 ? kNoLimit
                      : static_cast<std::uint64_t>(static_cast<double>(ports) * sources_used /
                                                   std::max(part_max, 1e-9));
  }
};

std::map<std::string, HostPorts> ports_by_host(const Agents& agents, const Capacity& out) {
  std::map<std::string, HostPorts> hosts;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const wire::Hello& hello = agents[i]->hello;
    HostPorts& host = hosts[hello.host];
    ++host.agents;
    host.ports = host.ports == 0 ? hello.ephemeral_ports
                                 : std::min<std::uint64_t>(host.ports, hello.ephemeral_ports);
    host.sources.insert(out.shares[i].source_addresses.begin(),
                        out.shares[i].source_addresses.end());
  }
  return hosts;
}

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
  auto hosts = ports_by_host(agents, out);
  const double part_max = destinations_of(plan.target).part_max();
  for (const RunPhase& phase : plan.phases) {
    const bool closed = phase.schedule.pacing == base::Pacing::kClosedLoop;
    const std::uint32_t total = closed ? phase.schedule.concurrency : plan.in_flight_max;
    const auto split = plan::split_slots(total, agents.size());
    for (std::size_t i = 0; i < agents.size(); ++i) {
      std::uint32_t slots = split[i];
      if (total == 0) {
        const HostPorts& host = hosts[agents[i]->hello.host];
        slots = open_slots(phase, std::min(files_left(agents[i]->hello),
                                           host.connections(part_max) / host.agents));
      }
      out.shares[i].slots.push_back(slots);
      out.shares[i].slots_max = std::max(out.shares[i].slots_max, slots);
    }
  }
}

// Idle connections to other frontends that an agent may keep beside one for each slot.
std::uint64_t kept_idle(const RunPlan& plan, const wire::Hello& hello, const AgentShare& share) {
  if (plan.target.urls.size() < 2 || plan.target.balance == base::Balance::kPinned) {
    return 0;
  }
  const std::uint64_t left = files_left(hello);
  return std::min<std::uint64_t>(share.slots_max,
                                 left - std::min<std::uint64_t>(left, share.slots_max));
}

void share_connections(const RunPlan& plan, const Agents& agents, Capacity& out) {
  const std::size_t n = out.shares.size();
  const auto most = plan::split_slots(plan.connections_max, n);
  const auto warm = plan::split_slots(
      static_cast<std::uint32_t>(std::max<std::int64_t>(0, plan.connections_warm)), n);
  for (std::size_t i = 0; i < n; ++i) {
    AgentShare& share = out.shares[i];
    share.connections_max = plan.connections_max == 0 ? 0 : std::max(1U, most[i]);
    share.connections_warm = plan.connections_warm < 0 ? share.slots.front() : warm[i];
    const std::uint32_t open = share.connections_max == 0
                                   ? share.slots_max
                                   : std::min(share.slots_max, share.connections_max);
    share.connections_warm = std::min(share.connections_warm, open);
    const std::uint64_t kept = kept_idle(plan, agents[i]->hello, share);
    if (share.connections_max == 0 && kept > 0 && kept < share.slots_max) {
      share.connections_max = static_cast<std::uint32_t>(share.slots_max + kept);
    }
  }
}

std::uint64_t connections_of(const AgentShare& share) {
  return share.connections_max == 0 ? share.slots_max
                                    : std::min(share.slots_max, share.connections_max);
}

void check_files(const RunPlan& plan, const Agents& agents, Capacity& out) {
  std::map<std::string, std::vector<std::string>> fitting;  // sum → names
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const wire::Hello& hello = agents[i]->hello;
    const AgentShare& share = out.shares[i];
    const std::uint64_t wanted = connections_of(share);
    if (wanted > files_left(hello)) {
      out.problems.push_back(fmt::format(
          "agent {} would open {} connections, but may have {} files open and keeps {} for itself "
          "({} + {} for each of {} workers), which leaves {}: raise its limit to {} (ulimit -n) or "
          "add agents",
          hello.agent_name, wanted, hello.fd_limit, files_kept(hello), kFilesKept,
          kFilesKeptPerWorker, hello.workers, files_left(hello), wanted + files_kept(hello)));
    } else if (wanted == 0 && hello.fd_limit != 0 && files_left(hello) == 0) {
      out.problems.push_back(fmt::format(
          "agent {} may have {} files open and keeps {} for itself, so it could open no connection "
          "at all: raise its limit (ulimit -n)",
          hello.agent_name, hello.fd_limit, files_kept(hello)));
    } else if (hello.fd_limit != 0) {
      const std::uint64_t kept = share.connections_max > 0 ? share.connections_max - wanted
                                                           : kept_idle(plan, hello, share);
      fitting[fmt::format("{} connections + {} kept idle + {} + {} × {} worker{} = {} of {} open "
                          "files",
                          wanted, kept, kFilesKept, kFilesKeptPerWorker, hello.workers,
                          hello.workers == 1 ? "" : "s", wanted + kept + files_kept(hello),
                          hello.fd_limit)]
          .push_back(hello.agent_name);
    }
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

}  // namespace tutti::conduct
