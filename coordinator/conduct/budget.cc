#include "coordinator/conduct/budget.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "common/sys/address.h"
#include "coordinator/conduct/counting_place.h"

namespace tutti::conduct {
namespace {

using Agents = std::vector<const roster::Agent*>;

constexpr std::size_t kNamesMax = 3;
constexpr double kFullPercent = 95;

std::string authority_of(const std::string& url) {
  const bool tls = url.starts_with("https:");
  const std::size_t begin = url.find("://");
  const std::size_t from = begin == std::string::npos ? 0 : begin + 3;
  std::string text = url.substr(from, url.find_first_of("/?#", from) - from);
  if (const std::size_t at = text.rfind('@'); at != std::string::npos) {
    text.erase(0, at + 1);
  }
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || text.ends_with(']')) {
    text += tls ? ":443" : ":80";
  }
  return text;
}

std::vector<sys::IpAddress> parsed(const std::vector<std::string>& texts) {
  std::vector<sys::IpAddress> out;
  for (const std::string& text : texts) {
    if (const auto address = sys::parse_ip(text)) {
      out.push_back(*address);
    }
  }
  return out;
}

// Sources of `texts` that can reach a destination; a name may turn out to be of either family, so
// the family with fewer is counted on.
std::size_t usable(const std::vector<std::string>& texts, const Destinations::One& to) {
  const auto sources = parsed(texts);
  const auto v6 = static_cast<std::size_t>(
      std::count_if(sources.begin(), sources.end(), [](const auto& a) { return a.v6; }));
  const std::size_t v4 = sources.size() - v6;
  if (to.literal_v4 || to.literal_v6) {
    return to.literal_v4 ? v4 : v6;
  }
  return v4 == 0 || v6 == 0 ? v4 + v6 : std::min(v4, v6);
}

std::string bytes_text(double bytes) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return bytes >= kGiB ? fmt::format("{:.1f} GiB", bytes / kGiB)
                       : fmt::format("{:.1f} MiB", bytes / (1024.0 * 1024));
}

struct StreamSize {
  std::uint64_t bytes = 0;
  const char* name = "";
};

StreamSize stream_size(const wire::TargetSpec& target) {
  const bool tls = std::any_of(target.urls.begin(), target.urls.end(),
                               [](const std::string& url) { return url.starts_with("https:"); });
  if (target.way == base::Way::kMulti) {
    return tls ? StreamSize{kStreamBytesMultiTls, "multi, TLS"}
               : StreamSize{kStreamBytesMulti, "multi"};
  }
  return tls ? StreamSize{kStreamBytesDirectTls, "direct, TLS"}
             : StreamSize{kStreamBytesDirect, "direct"};
}

// What the tokenizer takes of each agent that counts with it; 0: none does.
std::uint64_t tokenizer_bytes(const RunPlan& plan, const Agents& agents) {
  return choose_counting(plan.counting, agents).agents
             ? kTokenizerFold * plan.counting.terms.model_bytes
             : 0;
}

// Sources that the connections to `to` are spread over; the kernel's pick counts as one.
std::size_t spread_over(const std::vector<std::string>& sources, const Destinations::One& to) {
  return sources.empty() ? 1 : std::max<std::size_t>(1, usable(sources, to));
}

std::vector<std::string> sources_or_any(const AgentShare& share) {
  return share.source_addresses.empty() ? std::vector<std::string>{""} : share.source_addresses;
}

// The least that any of a host's agents said; 0: none did.
void take_least(std::uint64_t& least, std::uint64_t said) {
  least = least == 0 ? said : std::min(least, said);
}

// `asked` and `total` of what took `percent`.
void note_use(Capacity& out, double percent, std::uint64_t asked, std::uint64_t total) {
  out.used_percent = std::max(out.used_percent, percent);
  if (total > 0) {
    out.asked_percent = std::max(out.asked_percent,
                                 percent * static_cast<double>(asked) / static_cast<double>(total));
  }
}

}  // namespace

std::string names_text(const std::vector<std::string>& names) {
  if (names.size() == 1) {
    return names.front();
  }
  const std::size_t shown = std::min(names.size() - 1, kNamesMax);
  const std::string first = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  const std::size_t left = names.size() - shown;
  return first + (left == 1 ? " and " + names.back() : fmt::format(" and {} more", left));
}

double Destinations::part_max() const {
  double most = 0;
  for (const One& one : all) {
    most = std::max(most, one.part);
  }
  return most;
}

Destinations destinations_of(const wire::TargetSpec& target) {
  Destinations out;
  out.by_proxy = !target.proxy.empty();
  const double total = std::accumulate(target.weights.begin(), target.weights.end(), 0.0);
  const bool weighted = target.balance == base::Balance::kWeighted && total > 0;
  for (std::size_t i = 0; i < target.urls.size(); ++i) {
    // Whatever the frontend, a proxy is what is connected to.
    const std::string authority =
        authority_of(target.proxy.empty() ? target.urls[i] : target.proxy);
    auto found = std::find_if(out.all.begin(), out.all.end(), [&](const Destinations::One& one) {
      return one.authority == authority;
    });
    if (found == out.all.end()) {
      Destinations::One one{authority};
      const std::string host = authority.substr(0, authority.rfind(':'));
      one.literal_v6 = host.starts_with('[');
      one.literal_v4 = !one.literal_v6 && sys::parse_ip(host).has_value();
      out.all.push_back(one);
      found = out.all.end() - 1;
    }
    found->part +=
        weighted ? target.weights.at(i) / total : 1.0 / static_cast<double>(target.urls.size());
  }
  return out;
}

void share_sources(const RunPlan& plan, const Agents& agents, Capacity& out) {
  const auto& wanted = plan.target.source_addresses;
  const Destinations destinations = destinations_of(plan.target);
  std::set<std::string> owned;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const wire::Hello& hello = agents[i]->hello;
    auto& mine = out.shares[i].source_addresses;
    mine = hello.source_addresses;
    for (const std::string& text : wanted) {
      const auto address = sys::parse_ip(text);
      const bool own =
          address && std::any_of(hello.own_addresses.begin(), hello.own_addresses.end(),
                                 [&](const auto& block) { return sys::covers(block, *address); });
      if (own) {
        owned.insert(text);
      }
      if (own && hello.source_addresses.empty()) {
        mine.push_back(text);
      }
    }
    if (!wanted.empty() && mine.empty()) {
      out.problems.push_back(fmt::format(
          "agent {} on host {} has none of source_addresses ({}) on an interface; it has {}: list "
          "one of these, or start it with --source-address",
          hello.agent_name, hello.host, fmt::join(wanted, ", "),
          fmt::join(hello.own_addresses, ", ")));
    }
    for (const auto& to : destinations.all) {
      if (!mine.empty() && usable(mine, to) == 0) {
        out.problems.push_back(fmt::format(
            "agent {} cannot reach {} from its source addresses ({}): none is {}", hello.agent_name,
            to.authority, fmt::join(mine, ", "), to.literal_v6 ? "IPv6" : "IPv4"));
      }
    }
  }
  for (const std::string& text : wanted) {
    if (owned.count(text) == 0) {
      out.problems.push_back(fmt::format(
          "source address {} is on no agent's host: add it to an interface there, or take it out "
          "of source_addresses",
          text));
    }
  }
}

namespace {

// What check_ports and slots_that_fit know of one host. A pair is one source address and one
// destination; its connections need a port each.
struct HostPorts {
  std::uint64_t ports = 0;  // of each pair; 0: not known
  std::uint64_t connections = 0;
  std::uint64_t asked = 0;                 // of these
  std::map<std::string, double> pair_max;  // by source address; "": the kernel's pick
};

void check_host_ports(const std::string& name, const HostPorts& host, const Destinations& to,
                      Capacity& out) {
  double pair = 0;
  for (const auto& [source, connections] : host.pair_max) {
    pair = std::max(pair, connections);
  }
  pair = std::ceil(pair);
  if (host.ports == 0 || host.connections == 0) {
    return;
  }
  const auto ports = static_cast<double>(host.ports);
  const std::string wanted = fmt::format(
      "host {} would open at most {} connections from {} source address{} to {} {}{} "
      "(distinct host:port), {:.0f} of them between one address and one {}, where {} ports "
      "allow as many",
      name, host.connections, host.pair_max.size(), host.pair_max.size() == 1 ? "" : "es",
      to.all.size(), to.kind(), to.all.size() == 1 ? "" : "s", pair, to.kind(), host.ports);
  if (pair > ports) {
    out.problems.push_back(fmt::format(
        "{}, which is {:.0f} in all: give its agents more source addresses "
        "(distributed.source_addresses), widen net.ipv4.ip_local_port_range, or add {}hosts",
        wanted, std::floor(static_cast<double>(host.connections) * ports / pair),
        to.by_proxy ? "" : "frontends or "));
    return;
  }
  const double percent = 100 * pair / ports;
  note_use(out, percent, host.asked, host.connections);
  out.budget.push_back(fmt::format(
      "{} ({:.0f} %){}", wanted, percent,
      percent > kFullPercent ? "; little is left for ports in TIME_WAIT: connects may fail" : ""));
}

}  // namespace

void check_ports(const RunPlan& plan, const Agents& agents, Capacity& out) {
  const Destinations destinations = destinations_of(plan.target);
  std::map<std::string, HostPorts> hosts;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const AgentShare& share = out.shares[i];
    HostPorts& host = hosts[agents[i]->hello.host];
    take_least(host.ports, agents[i]->hello.ephemeral_ports);
    const std::uint64_t connections = share.connections_used;
    host.connections += connections;
    host.asked += std::min<std::uint64_t>(connections, share.slots_asked);
    double busiest = 0;
    for (const auto& to : destinations.all) {
      busiest = std::max(busiest, std::ceil(static_cast<double>(connections) * to.part) /
                                      static_cast<double>(spread_over(share.source_addresses, to)));
    }
    for (const std::string& source : sources_or_any(share)) {
      host.pair_max[source] += busiest;
    }
  }
  for (const auto& [name, host] : hosts) {
    check_host_ports(name, host, destinations, out);
  }
}

// With n agents on a source address, of which agent i puts the part p_i of its slots on its fullest
// pair, v slots each put at most Σ (v · p_i + 1) on a pair, whichever way the parts are rounded up.
std::vector<std::uint64_t> slots_that_fit(const RunPlan& plan, const Agents& agents,
                                          const Capacity& out) {
  struct Host {
    std::uint64_t agents = 0;
    std::uint64_t ports = 0;
    std::uint64_t memory = 0;
    std::map<std::string, std::pair<double, double>> parts;  // by source address: n, Σ p_i
  };
  const Destinations destinations = destinations_of(plan.target);
  std::map<std::string, Host> hosts;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    Host& host = hosts[agents[i]->hello.host];
    ++host.agents;
    take_least(host.ports, agents[i]->hello.ephemeral_ports);
    take_least(host.memory, agents[i]->hello.memory_bytes);
    double part = 0;
    for (const auto& to : destinations.all) {
      part = std::max(
          part, to.part / static_cast<double>(spread_over(out.shares[i].source_addresses, to)));
    }
    for (const std::string& source : sources_or_any(out.shares[i])) {
      host.parts[source].first += 1;
      host.parts[source].second += part;
    }
  }
  const std::uint64_t tokenizer = tokenizer_bytes(plan, agents);
  std::vector<std::uint64_t> fit;
  for (const roster::Agent* agent : agents) {
    const Host& host = hosts.at(agent->hello.host);
    double slots = kOpenSlotsMax;
    for (const auto& [source, parts] : host.parts) {
      if (host.ports > 0 && parts.second > 0) {
        slots = std::min(
            slots, (kChosenPart * static_cast<double>(host.ports) - parts.first) / parts.second);
      }
    }
    if (host.memory > 0) {
      const double taken =
          static_cast<double>(host.agents * (kAgentBytes + tokenizer) + plan.bodies.bytes);
      const double each = static_cast<double>(host.agents * stream_size(plan.target).bytes);
      slots = std::min(slots, (kChosenPart * static_cast<double>(host.memory) - taken) / each);
    }
    fit.push_back(static_cast<std::uint64_t>(std::max(1.0, slots)));
  }
  return fit;
}

namespace {

std::string tokenizer_text(std::uint64_t agents, std::uint64_t bytes) {
  return bytes == 0
             ? ""
             : fmt::format("tokenizers {} × {} + ", agents, bytes_text(static_cast<double>(bytes)));
}

}  // namespace

void check_memory(const RunPlan& plan, const Agents& agents, Capacity& out) {
  struct Host {
    std::uint64_t agents = 0;
    std::uint64_t streams = 0;
    std::uint64_t asked = 0;      // of these
    std::uint64_t available = 0;  // 0: not known
  };
  const StreamSize each = stream_size(plan.target);
  const std::uint64_t tokenizer = tokenizer_bytes(plan, agents);
  std::map<std::string, Host> hosts;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    Host& host = hosts[agents[i]->hello.host];
    ++host.agents;
    host.streams += out.shares[i].slots_max;
    host.asked += out.shares[i].slots_asked;
    take_least(host.available, agents[i]->hello.memory_bytes);
  }
  for (const auto& [name, host] : hosts) {
    if (host.available == 0) {
      continue;
    }
    const std::uint64_t fixed = host.agents * (kAgentBytes + tokenizer) + plan.bodies.bytes;
    const std::uint64_t needed = host.streams * each.bytes + fixed;
    const std::string sum = fmt::format(
        "host {} takes memory for {} streams × {} KiB ({}) + {} agent{} × {} MiB + {}bodies {} = "
        "{}",
        name, host.streams, each.bytes >> 10, each.name, host.agents, host.agents == 1 ? "" : "s",
        kAgentBytes >> 20, tokenizer_text(host.agents, tokenizer),
        bytes_text(static_cast<double>(plan.bodies.bytes)),
        bytes_text(static_cast<double>(needed)));
    const std::string free = bytes_text(static_cast<double>(host.available));
    if (needed > host.available) {
      out.problems.push_back(fmt::format(
          "{}, and {} are free: add hosts, free memory or raise its limit, {}or {}", sum, free,
          tokenizer > 0 ? "set distributed.token_counting to coordinator, " : "",
          fixed + host.agents * each.bytes > host.available ? "run fewer agents there"
                                                            : "ask for fewer streams"));
      continue;
    }
    // The agents themselves and the bodies are what was asked for, however few the streams.
    const double percent_of_byte = 100 / static_cast<double>(host.available);
    note_use(out, percent_of_byte * static_cast<double>(needed), host.asked * each.bytes + fixed,
             needed);
    out.budget.push_back(fmt::format("{} of {} free", sum, free));
  }
}

}  // namespace tutti::conduct
