#include "coordinator/conduct/counting_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>

#include "coordinator/conduct/budget.h"

namespace tutti::conduct {
namespace {

constexpr std::uint64_t kThreadsBesideWorkers = 2;  // session and counting

// The first host with fewer cores than threads, as a sentence; empty: there is none.
std::string crowded_host(const std::vector<const roster::Agent*>& agents) {
  struct Host {
    std::uint64_t cores = 0;
    std::uint64_t threads = 0;
  };
  std::map<std::string, Host> hosts;
  for (const roster::Agent* agent : agents) {
    Host& host = hosts[agent->hello.host];
    host.cores = agent->hello.cores;
    host.threads += agent->hello.workers + kThreadsBesideWorkers;
  }
  for (const auto& [name, host] : hosts) {
    if (host.cores < host.threads) {
      return fmt::format(
          "host {} has {} cores, and workers, sessions and counting of its agents take {}", name,
          host.cores, host.threads);
    }
  }
  return {};
}

// The first host of whose free memory the tokenizers of its agents would take more than half.
std::string short_host(const CountingPlan& plan, const std::vector<const roster::Agent*>& agents) {
  struct Host {
    std::uint64_t agents = 0;
    std::uint64_t memory = 0;  // 0: not known
  };
  std::map<std::string, Host> hosts;
  for (const roster::Agent* agent : agents) {
    Host& host = hosts[agent->hello.host];
    ++host.agents;
    host.memory = agent->hello.memory_bytes;
  }
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  for (const auto& [name, host] : hosts) {
    const std::uint64_t needed = host.agents * kTokenizerFold * plan.terms.model_bytes;
    if (host.memory > 0 && needed > host.memory / 2) {
      return fmt::format(
          "host {} has {} MiB of memory free, and the tokenizers of its agents would take {} MiB",
          name, host.memory / kMiB, needed / kMiB);
    }
  }
  return {};
}

}  // namespace

CountingPlace choose_counting(const CountingPlan& plan,
                              const std::vector<const roster::Agent*>& agents) {
  CountingPlace out;
  if (!plan.terms.wanted() || plan.where == CountingWhere::kCoordinator) {
    return out;
  }
  std::vector<std::string> unable;
  for (const roster::Agent* agent : agents) {
    if (!agent->hello.counts_tokens) {
      unable.push_back(agent->name());
    }
  }
  const bool asked = plan.where == CountingWhere::kAgents;
  std::string why_not;
  if (!unable.empty()) {
    why_not =
        fmt::format("built without cargo and unable to count tokens: {}", fmt::join(unable, ", "));
    out.problem = asked ? why_not +
                              "; build tutti-agent there with cargo, or set "
                              "distributed.token_counting to coordinator"
                        : "";
  } else if (!asked) {
    why_not = crowded_host(agents);
    why_not = why_not.empty() ? short_host(plan, agents) : why_not;
  }
  out.agents = why_not.empty();
  out.notice = out.agents
                   ? fmt::format("tokens of replies are counted by the agents, with model {}",
                                 plan.terms.model_hash)
                   : fmt::format("tokens of replies are counted after the run ({})", why_not);
  return out;
}

}  // namespace tutti::conduct
