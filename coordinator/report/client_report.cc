#include "coordinator/report/client_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace tutti::report {
namespace {

struct Metric {
  const char* key;
  double (*value)(const wire::Health&);
};

template <class T>
double as_double(T value) {
  return static_cast<double>(value);
}

constexpr std::array<Metric, 23> kMetrics{{
    {"issue_lag_p99_ns", [](const wire::Health& h) { return as_double(h.issue_lag_p99.ns); }},
    {"issue_lag_max_ns", [](const wire::Health& h) { return as_double(h.issue_lag_max.ns); }},
    {"turn_max_ns", [](const wire::Health& h) { return as_double(h.turn_max.ns); }},
    {"turn_p99_ns", [](const wire::Health& h) { return as_double(h.turn_p99.ns); }},
    {"stalls", [](const wire::Health& h) { return as_double(h.stalls); }},
    {"session_turn_max_ns", [](const wire::Health& h) { return as_double(h.session_turn_max.ns); }},
    {"cpu_busiest_worker", [](const wire::Health& h) { return h.cpu_busiest_worker; }},
    {"cpu_session", [](const wire::Health& h) { return h.cpu_session; }},
    {"open_fds", [](const wire::Health& h) { return as_double(h.open_fds); }},
    {"rss_bytes", [](const wire::Health& h) { return as_double(h.rss_bytes); }},
    {"records_lost", [](const wire::Health& h) { return as_double(h.records_lost); }},
    {"ring_fill_percent", [](const wire::Health& h) { return as_double(h.ring_fill_percent); }},
    {"unsent_batches", [](const wire::Health& h) { return as_double(h.unsent_batches); }},
    {"spool_bytes", [](const wire::Health& h) { return as_double(h.spool_bytes); }},
    {"read_lag_p99_ns", [](const wire::Health& h) { return as_double(h.read_lag_p99.ns); }},
    {"read_lag_max_ns", [](const wire::Health& h) { return as_double(h.read_lag_max.ns); }},
    {"connections", [](const wire::Health& h) { return as_double(h.connections); }},
    {"connect_failures", [](const wire::Health& h) { return as_double(h.connect_failures); }},
    {"host_tcp_retransmits", [](const wire::Health& h) { return as_double(h.retransmits); }},
    {"host_tcp_sockets", [](const wire::Health& h) { return as_double(h.sockets_in_use); }},
    {"host_tcp_time_wait", [](const wire::Health& h) { return as_double(h.sockets_time_wait); }},
    {"cpu_counting", [](const wire::Health& h) { return h.cpu_counting; }},
    {"counting_queued", [](const wire::Health& h) { return as_double(h.counting_queued); }},
}};

std::optional<std::uint32_t> performance_phase(const RunFacts& facts) {
  for (std::uint32_t i = 0; i < facts.phases.size(); ++i) {
    if (facts.phases[i].kind == base::PhaseKind::kPerformance) {
      return i;
    }
  }
  return std::nullopt;
}

// `row` is on the coordinator's clock.
bool is_judged(const verdict::HealthRow& row, const RunFacts& facts, const Breakdown& breakdown) {
  const auto phase = performance_phase(facts);
  return phase && row.phase == *phase && breakdown.load_ended_at.is_set() &&
         row.health.to > facts.phases[*phase].start_at &&
         row.health.from <= breakdown.load_ended_at;
}

verdict::HealthRow on_our_clock(verdict::HealthRow row, const ledger::ClockMap& clock) {
  const base::Duration shift = clock.shift_at(row.health.from);
  row.health.from = row.health.from + shift;
  row.health.to = row.health.to + shift;
  return row;
}

const ledger::ClockMap& clock_of(const std::vector<ledger::ClockMap>& clocks, std::size_t agent) {
  static const ledger::ClockMap kNone;
  return agent < clocks.size() ? clocks[agent] : kNone;
}

// Text of a CSV cell, quoted where it must be.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + "\"";
}

double us(base::Duration d) { return d.to_seconds() * 1e6; }

std::string csv_line(const verdict::HealthRow& row, const std::string& head) {
  const wire::Health& h = row.health;
  return head +
         fmt::format(
             ",{},{},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{},{:.1f}",
             row.in_flight, h.issue_lag_count, us(h.issue_lag_p50), us(h.issue_lag_p99),
             us(h.issue_lag_max), us(h.read_lag_p50), us(h.read_lag_p99), us(h.read_lag_max),
             us(h.turn_p50), us(h.turn_p99), us(h.turn_max), h.stalls, us(h.session_turn_max)) +
         fmt::format(",{:.1f},{:.1f},{},{},{},{},{},{},{},{},{},{}", h.cpu_busiest_worker * 100,
                     h.cpu_session * 100, h.connections, h.connect_failures, h.open_fds, h.fd_limit,
                     h.rss_bytes, h.ring_fill_percent, h.unsent_batches, h.spool_bytes,
                     h.records_lost, h.reads_unstamped) +
         fmt::format(",{},{},{},{}", h.retransmits, h.segments_sent, h.sockets_in_use,
                     h.sockets_time_wait) +
         fmt::format(",{:.1f},{},{},{},{}\n", h.cpu_counting * 100, h.counting_queued,
                     h.counting_queued_bytes, h.replies_counted, h.replies_uncounted);
}

constexpr std::string_view kCsvHead =
    "agent,phase,judged,from_s,length_s,in_flight,issue_lag_count,issue_lag_p50_us,"
    "issue_lag_p99_us,issue_lag_max_us,read_lag_p50_us,read_lag_p99_us,read_lag_max_us,turn_p50_us,"
    "turn_p99_us,turn_max_us,stalls,session_turn_max_us,cpu_busiest_worker_percent,"
    "cpu_session_percent,connections,connect_failures,open_fds,fd_limit,rss_bytes,"
    "ring_fill_percent,unsent_batches,spool_bytes,records_lost,reads_unstamped,"
    "host_tcp_retransmits,host_tcp_segments_sent,host_tcp_sockets,host_tcp_time_wait,"
    "cpu_counting_percent,counting_queued,counting_queued_bytes,replies_counted,replies_"
    "uncounted\n";

// "3.21 @12": the value and the second of the run.
std::string worst(double value, const char* key, const std::vector<WorstAt>& instants,
                  base::Instant start) {
  const auto found = std::find_if(instants.begin(), instants.end(),
                                  [&](const WorstAt& w) { return std::string_view(w.key) == key; });
  const std::string at =
      found == instants.end() ? "" : fmt::format(" @{:.0f}", (found->at - start).to_seconds());
  return fmt::format("{:.2f}{}", value, at);
}

double ms(base::Duration d) { return d.to_seconds() * 1e3; }

// What the balance keeps equal, by frontend. Nothing where shares are not equal by design, and
// nothing once a frontend failed: it then draws more or fewer on purpose.
void put_frontends(verdict::ClientFacts& out, const RunFacts& facts, const Breakdown& breakdown) {
  const bool equal = facts.config.balance == base::Balance::kLeastInFlight ||
                     facts.config.balance == base::Balance::kRoundRobin;
  const bool failed = std::any_of(breakdown.frontends.begin(), breakdown.frontends.end(),
                                  [](const Part& part) { return part.failed > part.cancelled; });
  if (!equal || failed) {
    return;
  }
  out.workers = 0;
  for (const AgentFacts& agent : facts.agents) {
    out.workers += agent.workers;
  }
  const bool by_flight = facts.config.balance == base::Balance::kLeastInFlight;
  out.load_unit = by_flight ? "queries in flight on the mean" : "queries";
  for (std::size_t i = 0; i < facts.config.endpoints.size(); ++i) {
    const auto& flying = breakdown.frontends_in_flight;
    const double queries = i < breakdown.frontends.size()
                               ? static_cast<double>(breakdown.frontends[i].completed)
                               : 0.0;
    out.frontends.push_back(
        {facts.config.endpoints[i], by_flight ? (i < flying.size() ? flying[i] : 0.0) : queries});
  }
}

}  // namespace

verdict::ClientFacts client_facts(const RunFacts& facts, const Breakdown& breakdown,
                                  const std::vector<ledger::ClockMap>& clocks) {
  verdict::ClientFacts out;
  const auto phase = performance_phase(facts);
  if (!phase) {
    return out;
  }
  std::uint64_t slots = 0;
  for (const AgentFacts& agent : facts.agents) {
    slots += agent.slots;
  }
  // A loop with fewer queries than slots is never full, and nobody's fault; nor is one whose slots
  // are taken by conversations, which wait for their tools and are not equally long.
  const bool full = facts.phases[*phase].pacing == base::Pacing::kClosedLoop &&
                    !facts.phases[*phase].plays && facts.phases[*phase].issued > slots &&
                    breakdown.mean_in_flight;
  for (std::size_t i = 0; i < facts.agents.size(); ++i) {
    const AgentFacts& agent = facts.agents[i];
    verdict::ClientAgent it;
    it.name = agent.name;
    it.records_lost = agent.health.records_lost;
    it.clock_error = clock_of(clocks, i).error;
    for (const verdict::HealthRow& row : agent.health_series.rows()) {
      const verdict::HealthRow ours = on_our_clock(row, clock_of(clocks, i));
      if (is_judged(ours, facts, breakdown)) {
        it.rows.push_back(ours);
      }
    }
    if (i < breakdown.agents.size() && breakdown.agents[i].issue_lag) {
      it.issue_lag_p99 = base::Duration{breakdown.agents[i].issue_lag->p99_ns};
      it.issue_lag_count = breakdown.agents[i].issue_lag->count;
    }
    if (full) {
      it.slots = agent.slots;
      it.mean_in_flight =
          i < breakdown.agents_in_flight.size() ? breakdown.agents_in_flight[i] : 0.0;
    }
    out.agents.push_back(std::move(it));
  }
  if (breakdown.all.ttft) {
    out.ttft_p50 = base::Duration{breakdown.all.ttft->p50_ns};
  }
  if (breakdown.all.latency) {
    out.latency_p50 = base::Duration{breakdown.all.latency->p50_ns};
  }
  put_frontends(out, facts, breakdown);
  return out;
}

std::string client_health_csv(const Report& report) {
  std::string out(kCsvHead);
  const RunFacts& facts = report.facts;
  for (std::size_t i = 0; i < facts.agents.size(); ++i) {
    const AgentFacts& agent = facts.agents[i];
    for (const verdict::HealthRow& told : agent.health_series.rows()) {
      const verdict::HealthRow row = on_our_clock(told, clock_of(report.clocks, i));
      const std::string phase =
          row.phase < facts.phases.size() ? facts.phases[row.phase].name : "unknown";
      out += csv_line(row, fmt::format("{},{},{},{:.3f},{:.3f}", cell(agent.name), cell(phase),
                                       is_judged(row, facts, report.breakdown) ? 1 : 0,
                                       (row.health.from - facts.started_at).to_seconds(),
                                       (row.health.to - row.health.from).to_seconds()));
    }
  }
  return out;
}

std::vector<WorstAt> worst_instants(const AgentFacts& agent, const ledger::ClockMap& clock) {
  std::vector<WorstAt> out;
  for (const Metric& metric : kMetrics) {
    double most = 0;
    base::Instant at{};
    for (const verdict::HealthRow& row : agent.health_series.rows()) {
      if (metric.value(row.health) > most) {
        most = metric.value(row.health);
        at = row.health.from;
      }
    }
    if (at.is_set()) {
      out.push_back({metric.key, clock.to_coordinator(at)});
    }
  }
  return out;
}

void put_client_verdict(std::string& out, const Report& report) {
  const verdict::ClientVerdict& client = report.client;
  const double judged_s = client.judged.to_seconds();
  if (client.bound()) {
    out +=
        "Client-bound: YES: this client may have shaped these numbers. The verdict and the exit "
        "code stay as they are.\n";
  } else if (judged_s > 0) {
    out +=
        fmt::format("Client-bound: no; every limit was kept over {:.0f} agent-seconds\n", judged_s);
  } else if (!report.has_performance_phase()) {
    out += "Client-bound: not judged; there was no performance phase\n";
  } else {
    out += "Client-bound: not known; no agent told of its health\n";
  }
  for (const verdict::Finding& finding : client.findings) {
    const std::string at = finding.at
                               ? fmt::format(" [worst from {:.1f} s of the run]",
                                             (*finding.at - report.facts.started_at).to_seconds())
                               : "";
    out += fmt::format("  - {}{}\n", finding.text, at);
  }
  if (judged_s > 0) {
    for (const std::string& name : client.unseen) {
      out += fmt::format("  not known of agent {}: it told of no interval\n", name);
    }
  }
}

void put_client_health(std::string& out, const Report& report) {
  const RunFacts& facts = report.facts;
  const bool any = std::any_of(facts.agents.begin(), facts.agents.end(), [](const auto& agent) {
    return !agent.health_series.rows().empty();
  });
  if (!any) {
    return;
  }
  out += "------------------- Client health (all phases, warm-up included) -------------------\n";
  out +=
      "  Worst interval of each agent, @ the second of the run it began in; all intervals are in\n"
      "  performance/client_health.csv. Retransmits are of the agent's whole network namespace.\n";
  out += fmt::format(
      "{:>15} {:>15} {:>15} {:>7} {:>12} {:>13} {:>11} {:>8} {:>7} {:>13} {:>8} {:>6}  "
      "{}\n",
      "lag p99 ms", "read lag p99 ms", "turn max ms", "stalls", "worker cpu %", "session cpu %",
      "count cpu %", "retrans.", "conns", "fds/limit", "RSS MB", "ring %", "agent");
  for (std::size_t i = 0; i < facts.agents.size(); ++i) {
    const AgentFacts& agent = facts.agents[i];
    const AgentHealth& h = agent.health;
    const auto at = worst_instants(agent, clock_of(report.clocks, i));
    const base::Instant start = facts.started_at;
    out += fmt::format(
        "{:>15} {:>15} {:>15} {:>7} {:>12.1f} {:>13.1f} {:>11.1f} {:>8} {:>7} {:>13} {:>8.1f} "
        "{:>6}  {}\n",
        worst(ms(h.issue_lag_p99), "issue_lag_p99_ns", at, start),
        worst(ms(h.read_lag_p99), "read_lag_p99_ns", at, start),
        worst(ms(h.turn_max), "turn_max_ns", at, start), h.stalls, h.cpu_busiest_worker * 100,
        h.cpu_session * 100, h.cpu_counting * 100, h.retransmits, h.connections,
        fmt::format("{}/{}", h.open_fds, agent.fd_limit), as_double(h.rss_bytes) * 1e-6,
        h.ring_fill_percent, agent.name);
    if (agent.health_series.intervals_per_row() > 1) {
      out += fmt::format("    {}: its intervals were merged by {} to bound memory\n", agent.name,
                         agent.health_series.intervals_per_row());
    }
  }
  out += "\n";
}

}  // namespace tutti::report
