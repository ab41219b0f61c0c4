#include "coordinator/roster/roster.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::roster {

using base::Duration;
using base::ExitCode;
using base::Instant;

base::Result<std::uint32_t> Roster::join(AgentKey key, const wire::Hello& hello, Instant now) {
  if (hello.protocol_version != wire::kProtocolVersion) {
    return base::fail(
        ExitCode::kSetup,
        fmt::format("agent \"{}\" ({}) speaks protocol {}, this coordinator speaks {}: "
                    "install the same tutti version on both hosts",
                    hello.agent_name, hello.software_version, hello.protocol_version,
                    wire::kProtocolVersion));
  }
  if (hello.agent_name.empty()) {
    return base::fail(ExitCode::kSetup, "an agent must have a name (tutti-agent --name NAME)");
  }
  for (const auto& [other, seat] : seats_) {
    if (other == key) {
      return base::fail(ExitCode::kSetup,
                        fmt::format("agent \"{}\" has said hello before", hello.agent_name));
    }
    if (seat.agent.name() == hello.agent_name) {
      return base::fail(
          ExitCode::kSetup,
          fmt::format(
              "an agent named \"{}\" has joined already (host {}, pid {}): give each a name "
              "of its own (tutti-agent --name NAME)",
              hello.agent_name, seat.agent.hello.host, seat.agent.hello.pid));
    }
  }
  Seat& seat = seats_[key];
  seat.agent.key = key;
  seat.agent.number = joined_++;
  seat.agent.hello = hello;
  seat.agent.joined_at = now;
  seat.next_ping_at = now;
  seat.burst_left = kBurst;
  next_ping_at_ = std::min(next_ping_at_, now);
  return seat.agent.number;
}

void Roster::forget(AgentKey key) { seats_.erase(key); }

bool Roster::lose(AgentKey key, std::string why, Instant now) {
  Agent* agent = find(key);
  if (agent == nullptr || agent->lost) {
    return false;
  }
  agent->lost = true;
  agent->lost_at = now;
  agent->lost_why = std::move(why);
  return true;
}

Agent* Roster::find(AgentKey key) {
  const auto it = seats_.find(key);
  return it == seats_.end() ? nullptr : &it->second.agent;
}

const Agent* Roster::find(AgentKey key) const {
  const auto it = seats_.find(key);
  return it == seats_.end() ? nullptr : &it->second.agent;
}

bool Roster::alive(AgentKey key) const {
  const Agent* agent = find(key);
  return agent != nullptr && !agent->lost;
}

std::size_t Roster::alive_count() const {
  return static_cast<std::size_t>(std::count_if(
      seats_.begin(), seats_.end(), [](const auto& entry) { return !entry.second.agent.lost; }));
}

std::vector<const Agent*> Roster::by_name() const {
  std::vector<const Agent*> all;
  all.reserve(seats_.size());
  for (const auto& [key, seat] : seats_) {
    all.push_back(&seat.agent);
  }
  std::sort(all.begin(), all.end(),
            [](const Agent* a, const Agent* b) { return a->name() < b->name(); });
  return all;
}

void Roster::burst(Instant now) {
  for (auto& [key, seat] : seats_) {
    seat.next_ping_at = now;
    seat.burst_left = kBurst;
  }
  next_ping_at_ = now;
}

void Roster::due_pings(Instant now, std::vector<std::pair<AgentKey, wire::ClockPing>>& out) {
  if (now < next_ping_at_) {
    return;
  }
  next_ping_at_ = base::kFarFuture;
  for (auto& [key, seat] : seats_) {
    if (seat.agent.lost || now < seat.next_ping_at) {
      next_ping_at_ = seat.agent.lost ? next_ping_at_ : std::min(next_ping_at_, seat.next_ping_at);
      continue;
    }
    if (seat.pings_out.size() >= kPingsOutMax) {
      seat.pings_out.erase(seat.pings_out.begin());
    }
    const std::uint64_t number = ++seat.last_ping;
    seat.pings_out.emplace(number, now);
    out.emplace_back(key, wire::ClockPing{number, now});
    if (seat.burst_left > 0) {
      --seat.burst_left;
    }
    seat.next_ping_at = now + (seat.burst_left > 0 ? kBurstGap : kPingEvery);
    next_ping_at_ = std::min(next_ping_at_, seat.next_ping_at);
  }
}

bool Roster::pong(AgentKey key, const wire::ClockPong& pong, Instant now) {
  const auto it = seats_.find(key);
  if (it == seats_.end()) {
    return false;
  }
  Seat& seat = it->second;
  const auto ping = seat.pings_out.find(pong.number);
  if (ping == seat.pings_out.end()) {
    return false;
  }
  const Instant sent = ping->second;
  seat.pings_out.erase(ping);
  return seat.agent.clock.add({sent, pong.agent_received, pong.agent_sent, now});
}

bool Roster::clocks_measured(std::size_t exchanges) const {
  return std::all_of(seats_.begin(), seats_.end(), [exchanges](const auto& entry) {
    return entry.second.agent.lost || entry.second.agent.clock.exchanges() >= exchanges;
  });
}

Duration Roster::clock_error_max(Instant at) const {
  Duration worst{};
  for (const auto& [key, seat] : seats_) {
    if (!seat.agent.lost) {
      worst = std::max(worst, seat.agent.clock.offset_at(at).error);
    }
  }
  return worst;
}

std::vector<std::string> Roster::clocks_beyond(Duration limit, Instant at) const {
  std::vector<std::string> out;
  for (const Agent* agent : by_name()) {
    const ClockEstimate& clock = agent->clock;
    if (agent->lost) {
      continue;
    }
    if (clock.exchanges() == 0) {
      out.push_back(fmt::format("{}: no answer to a ping", agent->name()));
    } else if (const Duration error = clock.offset_at(at).error; error > limit) {
      out.push_back(fmt::format("{}: ±{:.3f} ms, smallest round trip {:.3f} ms of {} pings",
                                agent->name(), error.to_seconds() * 1e3,
                                clock.rtt_min().to_seconds() * 1e3, clock.exchanges()));
    }
  }
  return out;
}

Duration Roster::rtt_max() const {
  Duration worst{};
  for (const auto& [key, seat] : seats_) {
    if (!seat.agent.lost) {
      worst = std::max(worst, seat.agent.clock.rtt_min());
    }
  }
  return worst;
}

}  // namespace tutti::roster
