// The parts of result_summary.json about places and clients: failures, "distributed".

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/report/client_report.h"
#include "coordinator/report/json_parts.h"

namespace tutti::report {
namespace {

Json tail(const std::optional<Tail>& value) {
  return value ? Json{{"p50", value->p50_ns}, {"p99", value->p99_ns}, {"max", value->max_ns}}
               : Json(nullptr);
}

void put_part(Json& out, const Part& part) {
  out["completed"] = part.completed;
  out["failed"] = part.failed;
  out["output_tokens"] = part.output_tokens;
  out["connections_opened"] = part.connections_opened;
  out["ttft_ns"] = tail(part.ttft);
  out["latency_ns"] = tail(part.latency);
  out["issued_minus_due_ns"] = tail(part.issue_lag);
  out["sent_minus_issued_ns"] = tail(part.send_lag);
}

// Seconds of the run; null when it did not happen.
Json since_start(const RunFacts& facts, base::Instant at) {
  return at.is_set() ? Json((at - facts.started_at).to_seconds()) : Json(nullptr);
}

std::string phase_name(const RunFacts& facts, std::size_t phase) {
  return phase < facts.phases.size() ? facts.phases[phase].name : fmt::format("phase {}", phase);
}

Json endpoint_name(const RunFacts& facts, std::size_t endpoint) {
  return endpoint < facts.config.endpoints.size() ? Json(facts.config.endpoints[endpoint])
                                                  : Json(nullptr);
}

// What was known of the offset at one instant; null: nothing was measured (a rebuilt run).
Json knot_json(const RunFacts& facts, const ledger::ClockMap& clock, double part) {
  if (clock.knots.empty()) {
    return nullptr;
  }
  const auto last = static_cast<double>(clock.knots.size() - 1);
  const ledger::ClockKnot& knot = clock.knots[static_cast<std::size_t>(last * part)];
  return Json{{"at_s", (knot.at + knot.offset - facts.started_at).to_seconds()},
              {"offset_ns", knot.offset.ns},
              {"error_ns", knot.error.ns}};
}

Json clock_json(const RunFacts& facts, const ledger::ClockMap& clock, base::Duration rtt) {
  return Json{{"offset_ns", clock.offset.ns},
              {"error_ns", clock.error.ns},
              {"rtt_ns", rtt.ns},
              {"exchanges", clock.exchanges},
              {"drift_ppm", clock.drift * 1e6},
              {"drift_error_ppm", clock.drift_error * 1e6},
              {"before", knot_json(facts, clock, 0)},
              {"during", knot_json(facts, clock, 0.5)},
              {"after", knot_json(facts, clock, 1)}};
}

Json agent_json(const Report& report, std::size_t i) {
  const AgentFacts& agent = report.facts.agents[i];
  const ledger::ClockMap clock = i < report.clocks.size() ? report.clocks[i] : ledger::ClockMap{};
  Json out{{"number", i},
           {"name", agent.name},
           {"host", agent.host},
           {"version", agent.version},
           {"workers", agent.workers},
           {"slots", agent.slots},
           {"lost_at_s", nullptr},
           {"clock", clock_json(report.facts, clock, agent.clock_rtt)}};
  if (agent.lost_at.is_set()) {
    out["lost_at_s"] = (agent.lost_at - report.facts.started_at).to_seconds();
  }
  put_part(out, i < report.breakdown.agents.size() ? report.breakdown.agents[i] : Part{});
  const AgentHealth& health = agent.health;
  out["worst"] = {{"issue_lag_p99_ns", health.issue_lag_p99.ns},
                  {"turn_max_ns", health.turn_max.ns},
                  {"cpu_busiest_worker", finite(health.cpu_busiest_worker)},
                  {"open_fds", health.open_fds},
                  {"rss_bytes", health.rss_bytes},
                  {"records_lost", health.records_lost},
                  {"ring_fill_percent", health.ring_fill_percent},
                  {"unsent_batches", health.unsent_batches},
                  {"read_lag_p99_ns", health.read_lag_p99.ns},
                  {"reads_unstamped", health.reads_unstamped},
                  {"issue_lag_max_ns", health.issue_lag_max.ns},
                  {"read_lag_max_ns", health.read_lag_max.ns},
                  {"turn_p99_ns", health.turn_p99.ns},
                  {"stalls", health.stalls},
                  {"session_turn_max_ns", health.session_turn_max.ns},
                  {"cpu_session", finite(health.cpu_session)},
                  {"connections", health.connections},
                  {"connect_failures", health.connect_failures},
                  {"spool_bytes", health.spool_bytes},
                  {"unspooled_batches", health.unspooled_batches},
                  {"host_tcp_retransmits", health.retransmits},
                  {"host_tcp_sockets", health.sockets_in_use},
                  {"host_tcp_time_wait", health.sockets_time_wait},
                  {"cpu_counting", finite(health.cpu_counting)},
                  {"counting_queued", health.counting_queued},
                  {"counting_queued_bytes", health.counting_queued_bytes}};
  out["replies_counted"] = health.replies_counted;
  out["replies_left_uncounted"] = health.replies_uncounted;
  out["counting_drain_s"] = health.counting_drain.to_seconds();
  Json at = Json::object();
  for (const WorstAt& worst : worst_instants(agent, clock)) {
    at[worst.key] = (worst.at - report.facts.started_at).to_seconds();
  }
  out["worst_at_s"] = std::move(at);
  out["fd_limit"] = agent.fd_limit;
  out["ephemeral_ports"] = agent.ephemeral_ports;
  out["health_intervals_per_row"] = agent.health_series.intervals_per_row();
  return out;
}

Json limits_json(const Report& report) {
  const verdict::ClientLimits& limits = report.client_limits;
  return Json{{"issue_lag_p99_ms", report.client.issue_lag_limit.to_seconds() * 1e3},
              {"issue_lag_count_min", limits.issue_lag_count_min},
              {"cpu_thread_percent", limits.cpu_thread_max * 100},
              {"turn_max_ms", limits.turn_max.to_seconds() * 1e3},
              {"connect_failures", limits.connect_failures_max},
              {"records_lost", limits.records_lost_max},
              {"in_flight_percent_min", limits.in_flight_share_min * 100},
              {"frontend_imbalance_percent", limits.frontend_imbalance_max * 100},
              {"clock_error_ms", limits.clock_error_max.to_seconds() * 1e3},
              {"time_beyond_percent", limits.time_beyond_max * 100}};
}

Json client_health_json(const Report& report) {
  const verdict::ClientVerdict& client = report.client;
  Json findings = Json::array();
  for (const verdict::Finding& finding : client.findings) {
    const auto at_s =
        finding.at ? Json((*finding.at - report.facts.started_at).to_seconds()) : Json(nullptr);
    findings.push_back({{"agent", finding.agent.empty() ? Json(nullptr) : Json(finding.agent)},
                        {"metric", finding.metric},
                        {"value", finite(finding.value)},
                        {"limit", finite(finding.limit)},
                        {"unit", finding.unit},
                        {"at_s", at_s},
                        {"beyond_s", finding.beyond.to_seconds()},
                        {"text", finding.text}});
  }
  const bool known = client.bound() || client.judged.ns > 0;
  return Json{{"client_bound", known ? Json(client.bound()) : Json(nullptr)},
              {"findings", std::move(findings)},
              {"judged_s", client.judged.to_seconds()},
              {"agents_not_known", client.unseen},
              {"limits", limits_json(report)},
              {"file", "performance/client_health.csv"}};
}

Json conversations_json(const ConversationCount& count) {
  return Json{{"planned", count.planned},
              {"begun", count.begun},
              {"whole", count.whole},
              {"failed", count.failed},
              {"turns_skipped", count.turns_skipped},
              {"turns_withheld", count.turns_withheld}};
}

}  // namespace

Json failures_json(const Report& report) {
  Json out = Json::array();
  for (const FailureCount& failure : report.breakdown.failures) {
    const FailureKind& kind = failure.kind;
    out.push_back({{"phase", phase_name(report.facts, kind.phase)},
                   {"cause", failure_text(kind.failure, kind.http_status)},
                   {"endpoint", endpoint_name(report.facts, kind.frontend)},
                   {"count", failure.count},
                   {"example", failure.example}});
  }
  return out;
}

Json distributed_json(const Report& report) {
  Json agents = Json::array();
  for (std::size_t i = 0; i < report.facts.agents.size(); ++i) {
    agents.push_back(agent_json(report, i));
  }
  Json endpoints = Json::array();
  for (std::size_t i = 0; i < report.breakdown.frontends.size(); ++i) {
    Json endpoint = Json::object();
    endpoint["url"] = endpoint_name(report.facts, i);
    const Part& part = report.breakdown.frontends[i];
    put_part(endpoint, part);
    endpoint["first_failure_s"] = since_start(report.facts, part.first_failure_at);
    endpoint["last_failure_s"] = since_start(report.facts, part.last_failure_at);
    endpoint["last_success_s"] = since_start(report.facts, part.last_success_at);
    endpoints.push_back(std::move(endpoint));
  }
  Json phases = Json::array();
  const bool rebuilt = !report.facts.rebuilt.empty();
  for (const verdict::PhaseCount& phase : report.count.phases) {
    phases.push_back({{"name", phase.name},
                      {"issued", phase.issued},
                      {"records", phase.completed},
                      {"failed", phase.failed},
                      {"missing", rebuilt ? Json(nullptr) : Json(phase.missing)},
                      {"doubled", phase.doubled},
                      {"never_issued", rebuilt ? Json(nullptr) : Json(phase.never_issued)}});
    const std::size_t place = phases.size() - 1;
    if (place < report.facts.phases.size() && report.facts.phases[place].conversations) {
      phases.back()["conversations"] =
          conversations_json(*report.facts.phases[place].conversations);
    }
  }
  const auto& mean = report.breakdown.mean_in_flight;
  return Json{{"agents", std::move(agents)},
              {"endpoints", std::move(endpoints)},
              {"phases", std::move(phases)},
              {"budget", report.facts.budget},
              {"repeated_batches", report.repeated_batches},
              {"stamps", report.facts.config.kernel_stamps ? "kernel receive" : "read"},
              {"reached", report.facts.config.reach},
              {"mean_in_flight", mean ? Json(*mean) : Json(nullptr)},
              {"resent", report.breakdown.resent},
              {"malformed_events", report.breakdown.malformed_events},
              {"issued_minus_due_ns", tail(report.breakdown.all.issue_lag)},
              {"slot_fills_left_out_of_it", report.breakdown.fills},
              {"slot_fill_ns", tail(report.breakdown.fill)},
              {"client_health", client_health_json(report)},
              {"sent_minus_issued_ns", tail(report.breakdown.all.send_lag)}};
}

}  // namespace tutti::report
