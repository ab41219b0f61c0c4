#pragma once

// Budget: what a load takes of each host (ports, files, memory) against what its agents said they
// have, as sentences with the arithmetic: one for what fits, one with a remedy for what does not.
// Also which source addresses each agent uses. Part of capacity.h; pure, no owner.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/conduct/capacity.h"

namespace tutti::conduct {

// Distinct HOST:PORT among the run's frontends, or that of the proxy before all of them, with the
// largest part of a host's connections that one of them gets: ports are counted per such
// destination.
struct Destinations {
  struct One {
    std::string authority;
    double part = 0;
    bool literal_v4 = false;
    bool literal_v6 = false;
  };
  std::vector<One> all;
  bool by_proxy = false;
  double part_max() const;
  const char* kind() const { return by_proxy ? "proxy" : "frontend"; }
};
Destinations destinations_of(const wire::TargetSpec& target);

// Fills source_addresses of every share: the agent's own choice, else those of the run that are its
// host's. Names addresses that are nobody's, agents that have none, frontends out of reach.
void share_sources(const RunPlan& plan, const std::vector<const roster::Agent*>& agents,
                   Capacity& out);

void check_ports(const RunPlan& plan, const std::vector<const roster::Agent*>& agents,
                 Capacity& out);
void check_memory(const RunPlan& plan, const std::vector<const roster::Agent*>& agents,
                  Capacity& out);

// Slots of each of a host's agents that fit ports and memory as the checks above count them, when
// the agents of a host share evenly: by agent, at least 1. Needs source_addresses.
std::vector<std::uint64_t> slots_that_fit(const RunPlan& plan,
                                          const std::vector<const roster::Agent*>& agents,
                                          const Capacity& out);

// Memory of one open stream on each way, and where a frontend is https. An agent's resident memory
// grew by 2.4 KiB (direct) and 21.7 KiB (multi) a stream from 100 to 4,000 streams of 20 events,
// with TLS by about 30 KB and 80 KB; the rest is for the kernel's socket and the reply's text so
// far. An agent with few streams took 37 MiB: rings, queues, code.
inline constexpr std::uint64_t kStreamBytesDirect = std::uint64_t{16} << 10;
inline constexpr std::uint64_t kStreamBytesMulti = std::uint64_t{32} << 10;
inline constexpr std::uint64_t kStreamBytesDirectTls = std::uint64_t{48} << 10;
inline constexpr std::uint64_t kStreamBytesMultiTls = std::uint64_t{96} << 10;
inline constexpr std::uint64_t kAgentBytes = std::uint64_t{64} << 20;
// An agent that counts tokens, for each byte of the tokenizer's files: while it reads them its
// memory grew by 8 (DeepSeek V3) to 15.3 (Gemma 3, gpt-oss), and gave
// up to half of it back.
inline constexpr std::uint64_t kTokenizerFold = 16;

// "a", "a and b", "a, b and 3 more".
std::string names_text(const std::vector<std::string>& names);

}  // namespace tutti::conduct
