#include "coordinator/conduct/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "common/base/check.h"
#include "common/plan/deal.h"

namespace tutti::conduct {
namespace {

using Agents = std::vector<const roster::Agent*>;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// What the agents of one host have between them.
struct HostPorts {
  std::uint64_t agents = 0;
  std::uint64_t ports = 0;  // of one source address; 0: not known
  std::set<std::string> addresses;

  std::uint64_t connections(std::uint64_t frontends) const {
    const std::uint64_t sources = std::max<std::uint64_t>(1, addresses.size());
    return ports == 0 ? kNoLimit : ports * sources * frontends;
  }
};

std::map<std::string, HostPorts> ports_by_host(const Agents& agents) {
  std::map<std::string, HostPorts> hosts;
  for (const roster::Agent* agent : agents) {
    HostPorts& host = hosts[agent->hello.host];
    ++host.agents;
    const std::uint64_t ports = agent->hello.ephemeral_ports;
    host.ports = host.ports == 0 ? ports : std::min(host.ports, ports);
    host.addresses.insert(agent->hello.source_addresses.begin(),
                          agent->hello.source_addresses.end());
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
  auto hosts = ports_by_host(agents);
  const std::uint64_t frontends = std::max<std::size_t>(1, plan.target.urls.size());
  for (const RunPhase& phase : plan.phases) {
    const bool closed = phase.schedule.pacing == base::Pacing::kClosedLoop;
    const std::uint32_t total = closed ? phase.schedule.concurrency : plan.in_flight_max;
    const auto split = plan::split_slots(total, agents.size());
    for (std::size_t i = 0; i < agents.size(); ++i) {
      std::uint32_t slots = split[i];
      if (total == 0) {
        const HostPorts& host = hosts[agents[i]->hello.host];
        slots = open_slots(phase, std::min(files_left(agents[i]->hello),
                                           host.connections(frontends) / host.agents));
      }
      out.shares[i].slots.push_back(slots);
      out.shares[i].slots_max = std::max(out.shares[i].slots_max, slots);
    }
  }
}

void share_connections(const RunPlan& plan, Capacity& out) {
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
  }
}

std::uint64_t connections_of(const AgentShare& share) {
  return share.connections_max == 0 ? share.slots_max
                                    : std::min(share.slots_max, share.connections_max);
}

void check_files(const Agents& agents, Capacity& out) {
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const wire::Hello& hello = agents[i]->hello;
    const std::uint64_t wanted = connections_of(out.shares[i]);
    if (wanted > files_left(hello)) {
      out.problems.push_back(fmt::format(
          "agent {} would open {} connections, but may have {} files open and keeps {} for itself "
          "({} + {} for each of {} workers), which leaves {}: raise its limit to {} (ulimit -n) or "
          "add agents",
          hello.agent_name, wanted, hello.fd_limit, files_kept(hello), kFilesKept,
          kFilesKeptPerWorker, hello.workers, files_left(hello), wanted + files_kept(hello)));
    }
    if (wanted == 0 && hello.fd_limit != 0 && files_left(hello) == 0) {
      out.problems.push_back(fmt::format(
          "agent {} may have {} files open and keeps {} for itself, so it could open no connection "
          "at all: raise its limit (ulimit -n)",
          hello.agent_name, hello.fd_limit, files_kept(hello)));
    }
  }
}

void check_ports(const RunPlan& plan, const Agents& agents, Capacity& out) {
  const std::uint64_t frontends = std::max<std::size_t>(1, plan.target.urls.size());
  std::map<std::string, std::uint64_t> wanted;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    wanted[agents[i]->hello.host] += connections_of(out.shares[i]);
  }
  for (const auto& [host, ports] : ports_by_host(agents)) {
    const std::uint64_t connections = ports.connections(frontends);
    if (wanted[host] > connections) {
      out.problems.push_back(fmt::format(
          "host {} would open {} connections, but {} ports × {} source addresses × {} frontends "
          "allow {}: widen net.ipv4.ip_local_port_range, give its agents more source addresses, "
          "or add hosts",
          host, wanted[host], ports.ports, std::max<std::size_t>(1, ports.addresses.size()),
          frontends, connections));
    }
  }
}

}  // namespace

Capacity share_capacity(const RunPlan& plan, const Agents& agents) {
  TUTTI_CHECK(!agents.empty());
  Capacity out;
  out.shares.resize(agents.size());
  share_slots(plan, agents, out);
  share_connections(plan, out);
  check_files(agents, out);
  check_ports(plan, agents, out);
  return out;
}

}  // namespace tutti::conduct
