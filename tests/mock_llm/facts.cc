#include "tests/mock_llm/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tutti::mock_llm {
namespace {

void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += fmt::format("# HELP tutti_mock_{} {}\n# TYPE tutti_mock_{} {}\n", name, help, name, type);
}

void single(std::string& out, std::string_view name, std::string_view type, std::string_view help,
            std::uint64_t value) {
  head(out, name, type, help);
  out += fmt::format("tutti_mock_{} {}\n", name, value);
}

void per_port(std::string& out, const Facts& facts, std::string_view name, std::string_view type,
              std::string_view help, std::uint64_t PortFacts::*value) {
  head(out, name, type, help);
  for (const PortFacts& port : facts.ports) {
    out += fmt::format("tutti_mock_{}{{port=\"{}\"}} {}\n", name, port.port, port.*value);
  }
}

void lateness(std::string& out, const Lateness& late) {
  head(out, "send_late_seconds", "histogram", "Event send time minus its scheduled time.");
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < late.kEdgesNs.size(); ++i) {
    so_far += late.counts[i];
    out += fmt::format("tutti_mock_send_late_seconds_bucket{{le=\"{}\"}} {}\n",
                       static_cast<double>(late.kEdgesNs[i]) / 1e9, so_far);
  }
  so_far += late.counts.back();
  out += fmt::format(
      "tutti_mock_send_late_seconds_bucket{{le=\"+Inf\"}} {}\n"
      "tutti_mock_send_late_seconds_sum {:.9f}\ntutti_mock_send_late_seconds_count {}\n",
      so_far, static_cast<double>(late.sum_ns) / 1e9, so_far);
  head(out, "send_late_max_seconds", "gauge", "Largest lateness since the start.");
  out += fmt::format("tutti_mock_send_late_max_seconds {:.9f}\n",
                     static_cast<double>(late.max_ns) / 1e9);
}

}  // namespace

void Lateness::add(std::int64_t late_ns) {
  late_ns = std::max<std::int64_t>(late_ns, 0);
  std::size_t bucket = 0;
  while (bucket < kEdgesNs.size() && late_ns > kEdgesNs[bucket]) {
    ++bucket;
  }
  ++counts[bucket];
  sum_ns += late_ns;
  max_ns = std::max(max_ns, late_ns);
}

void count_peer(Facts& facts, std::uint16_t port, std::string address) {
  if (facts.peers.size() >= kPeersMax && facts.peers.count({port, address}) == 0) {
    address = "others";
  }
  ++facts.peers[{port, std::move(address)}];
}

std::string prometheus_text(const Facts& f) {
  std::string out;
  per_port(out, f, "connections_accepted_total", "counter", "Connections taken.",
           &PortFacts::accepted);
  head(out, "peer_connections_total", "counter", "Connections taken, by client address.");
  for (const auto& [key, count] : f.peers) {
    out += fmt::format("tutti_mock_peer_connections_total{{port=\"{}\",peer=\"{}\"}} {}\n",
                       key.first, key.second, count);
  }
  per_port(out, f, "connections_open", "gauge", "Connections open now.", &PortFacts::open);
  per_port(out, f, "requests_total", "counter", "Requests read, on any route.",
           &PortFacts::requests);
  single(out, "completions_total", "counter", "Requests on the completion routes.", f.completions);
  single(out, "finished_total", "counter", "Completions answered as planned.", f.finished);
  single(out, "refused_total", "counter", "Malformed or unacceptable requests.", f.refused);
  single(out, "cancelled_total", "counter", "Completions whose client went away.", f.cancelled);
  single(out, "active_requests", "gauge", "Completions being served.", f.active);
  single(out, "active_requests_peak", "gauge", "Most ever served at once.", f.active_max);
  single(out, "queued_requests", "gauge", "Completions waiting for a place.", f.queued);
  single(out, "queued_requests_peak", "gauge", "Most that ever waited at once.", f.queued_max);
  single(out, "tokens_total", "counter", "Output tokens sent.", f.tokens);
  single(out, "chunks_total", "counter", "Content events sent.", f.events);
  single(out, "sent_bytes_total", "counter", "Bytes sent, heads included.", f.sent_bytes);
  single(out, "received_bytes_total", "counter", "Bytes received.", f.received_bytes);
  single(out, "blocked_sends_total", "counter", "Sends that a full socket cut short.",
         f.blocked_sends);
  single(out, "accept_pauses_total", "counter", "Times no file descriptor was left.",
         f.accept_pauses);
  head(out, "faults_total", "counter", "Faults played, by kind.");
  for (std::size_t i = 1; i < kFaultKinds; ++i) {
    out += fmt::format("tutti_mock_faults_total{{kind=\"{}\"}} {}\n",
                       fault_name(static_cast<FaultKind>(i)), f.faults[i]);
  }
  lateness(out, f.late);
  return out;
}

std::string totals_line(const Facts& f) {
  std::uint64_t faults = 0;
  for (std::size_t i = 1; i < kFaultKinds; ++i) {
    faults += f.faults[i];
  }
  std::uint64_t accepted = 0;
  for (const PortFacts& port : f.ports) {
    accepted += port.accepted;
  }
  return fmt::format(
      "tutti-mock: {} completions ({} finished, {} cancelled, {} with faults), {} refused, "
      "{} tokens in {} events, {} connections, at most {} at once, at most {:.3f} ms late",
      f.completions, f.finished, f.cancelled, faults, f.refused, f.tokens, f.events, accepted,
      f.active_max, static_cast<double>(f.late.max_ns) / 1e6);
}

}  // namespace tutti::mock_llm
