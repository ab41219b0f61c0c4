#include <variant>

#include "common/base/check.h"
#include "common/wire/codec.h"
#include "common/wire/control_codec.h"
#include "tutti/v1/control.pb.h"

namespace tutti::wire {
namespace {

void write(const base::Id& in, v1::Id* out) {
  out->set_high(in.high);
  out->set_low(in.low);
}

void write(const Dial& in, v1::Control& out) {
  auto* to = out.mutable_dial();
  to->set_protocol_version(in.protocol_version);
  write(in.run, to->mutable_run());
}

void write(const Hello& in, v1::Control& out) {
  auto* to = out.mutable_hello();
  to->set_protocol_version(in.protocol_version);
  to->set_software_version(in.software_version);
  to->set_agent_name(in.agent_name);
  to->set_host(in.host);
  to->set_pid(in.pid);
  to->set_cores(in.cores);
  to->set_workers(in.workers);
  to->set_fd_limit(in.fd_limit);
  to->set_ephemeral_ports(in.ephemeral_ports);
  for (const std::string& address : in.source_addresses) {
    to->add_source_addresses(address);
  }
  for (const std::string& address : in.own_addresses) {
    to->add_own_addresses(address);
  }
  to->set_memory_bytes(in.memory_bytes);
  to->set_counts_tokens(in.counts_tokens);
}

void write(const Welcome& in, v1::Control& out) {
  auto* to = out.mutable_welcome();
  write(in.run, to->mutable_run());
  to->set_agent(in.agent);
  to->set_heartbeat_ns(in.heartbeat.ns);
  to->set_lost_after_ns(in.lost_after.ns);
}

void write(const Refused& in, v1::Control& out) { out.mutable_refused()->set_reason(in.reason); }

void write(const ClockPing& in, v1::Control& out) {
  auto* to = out.mutable_clock_ping();
  to->set_number(in.number);
  to->set_coordinator_sent_ns(in.coordinator_sent.ns);
}

void write(const ClockPong& in, v1::Control& out) {
  auto* to = out.mutable_clock_pong();
  to->set_number(in.number);
  to->set_coordinator_sent_ns(in.coordinator_sent.ns);
  to->set_agent_received_ns(in.agent_received.ns);
  to->set_agent_sent_ns(in.agent_sent.ns);
}

void write(const TargetSpec& in, v1::TargetSpec* to) {
  for (const std::string& url : in.urls) {
    to->add_urls(url);
  }
  to->set_api(static_cast<std::uint32_t>(in.api));
  to->set_streaming(in.streaming);
  to->set_stamp_every_chunk(in.stamp_every_chunk);
  for (const Header& header : in.headers) {
    auto* added = to->add_headers();
    added->set_name(header.name);
    added->set_value(header.value);
  }
  to->set_verify_tls(in.verify_tls);
  to->set_balance(static_cast<std::uint32_t>(in.balance));
  to->set_connect_timeout_ns(in.connect_timeout.ns);
  to->set_request_timeout_ns(in.request_timeout.ns);
  to->set_idle_connection_max_ns(in.idle_connection_max.ns);
  to->set_connections_max(in.connections_max);
  to->set_connections_warm(in.connections_warm);
  to->set_connect_rate_max(in.connect_rate_max);
  to->set_way(static_cast<std::uint32_t>(in.way));
  for (const std::uint32_t weight : in.weights) {
    to->add_weights(weight);
  }
  to->set_affinity_header(in.affinity_header);
  for (const auto& name : in.routing_headers) {
    to->add_routing_headers(name);
  }
  to->set_turn_timeout_ns(in.turn_timeout.ns);
  to->set_proxy(in.proxy);
  to->set_ca_pem(in.ca_pem);
  to->set_client_cert_pem(in.client_cert_pem);
  to->set_client_key_pem(in.client_key_pem);
  to->set_streams_max(in.streams_max);
  for (const std::string& address : in.source_addresses) {
    to->add_source_addresses(address);
  }
}

void write(const Prepare& in, v1::Control& out) {
  auto* to = out.mutable_prepare();
  write(in.target, to->mutable_target());
  to->set_bodies_hash(in.bodies_hash);
  to->set_bodies_bytes(in.bodies_bytes);
  to->set_bodies_rows(in.bodies_rows);
  to->set_slots(in.slots);
  to->set_run_note(in.run_note);
  to->mutable_counting()->set_model_hash(in.counting.model_hash);
  to->mutable_counting()->set_model_bytes(in.counting.model_bytes);
  to->mutable_counting()->set_drain_max_ns(in.counting.drain_max.ns);
}

void write(const BodiesWanted& in, v1::Control& out) {
  out.mutable_bodies_wanted()->set_wanted(in.wanted);
  out.mutable_bodies_wanted()->set_model_wanted(in.model_wanted);
}

void write(const BodyChunk& in, v1::Control& out) {
  TUTTI_CHECK(in.compressed.size() <= kBodyChunkBytesMax);
  auto* to = out.mutable_body_chunk();
  to->set_offset(in.offset);
  to->set_compressed(in.compressed);
  to->set_last(in.last);
  to->set_model(in.model);
}

void write(const Prepared& in, v1::Control& out) {
  auto* to = out.mutable_prepared();
  to->set_error(in.error);
  for (const Reach& reach : in.frontends) {
    auto* added = to->add_frontends();
    added->set_reachable(reach.reachable);
    added->set_connect_us(reach.connect_us);
    added->set_error(reach.error);
  }
  to->set_connections_open(in.connections_open);
}

void write(const ArmPhase& in, v1::Control& out) {
  auto* to = out.mutable_arm_phase();
  to->set_phase(in.phase);
  to->set_kind(static_cast<std::uint32_t>(in.kind));
  to->set_pacing(static_cast<std::uint32_t>(in.pacing));
  to->set_slots(in.slots);
  to->set_start_at_ns(in.start_at.ns);
  to->set_coordinator_start_at_ns(in.coordinator_start_at.ns);
  to->set_clock_error_ns(in.clock_error.ns);
}

void write(const Armed& in, v1::Control& out) { out.mutable_armed()->set_phase(in.phase); }

void write(const Recall& in, v1::Control& out) {
  auto* to = out.mutable_recall();
  to->set_phase(in.phase);
  to->set_number(in.number);
}

void write(const Recalled& in, v1::Control& out) {
  auto* to = out.mutable_recalled();
  to->set_phase(in.phase);
  to->set_number(in.number);
  base::Seq previous = 0;
  for (const base::Seq seq : in.unstarted) {
    to->add_unstarted_steps(static_cast<std::int64_t>(seq - previous));
    previous = seq;
  }
}

void write(const Drain& in, v1::Control& out) { out.mutable_drain()->set_phase(in.phase); }

void write(const Drained& in, v1::Control& out) {
  auto* to = out.mutable_drained();
  to->set_phase(in.phase);
  to->set_started(in.started);
  to->set_last_batch(in.last_batch);
}

void write(const Abort& in, v1::Control& out) { out.mutable_abort()->set_reason(in.reason); }

void write(const BatchAck& in, v1::Control& out) { out.mutable_batch_ack()->set_number(in.number); }

void write(const LiveCounts& in, v1::LiveCounts* to) {
  for (const auto& cell : in.cells) {
    to->add_cells(cell.first);
    to->add_counts(cell.second);
  }
}

void write(const Health& in, v1::Health* to) {
  to->set_issue_lag_p50_ns(in.issue_lag_p50.ns);
  to->set_issue_lag_p99_ns(in.issue_lag_p99.ns);
  to->set_turn_max_ns(in.turn_max.ns);
  to->set_cpu_busiest_worker(in.cpu_busiest_worker);
  to->set_open_fds(in.open_fds);
  to->set_rss_bytes(in.rss_bytes);
  to->set_records_lost(in.records_lost);
  to->set_ring_fill_percent(in.ring_fill_percent);
  to->set_unsent_batches(in.unsent_batches);
  to->set_read_lag_p50_ns(in.read_lag_p50.ns);
  to->set_read_lag_p99_ns(in.read_lag_p99.ns);
  to->set_reads_unstamped(in.reads_unstamped);
  to->set_from_ns(in.from.ns);
  to->set_to_ns(in.to.ns);
  to->set_issue_lag_max_ns(in.issue_lag_max.ns);
  to->set_read_lag_max_ns(in.read_lag_max.ns);
  to->set_turn_p50_ns(in.turn_p50.ns);
  to->set_turn_p99_ns(in.turn_p99.ns);
  to->set_stalls(in.stalls);
  to->set_session_turn_max_ns(in.session_turn_max.ns);
  to->set_cpu_session(in.cpu_session);
  to->set_connections(in.connections);
  to->set_connect_failures(in.connect_failures);
  to->set_fd_limit(in.fd_limit);
  to->set_spool_bytes(in.spool_bytes);
  to->set_unspooled_batches(in.unspooled_batches);
  to->set_retransmits(in.retransmits);
  to->set_segments_sent(in.segments_sent);
  to->set_sockets_in_use(in.sockets_in_use);
  to->set_sockets_time_wait(in.sockets_time_wait);
  to->set_issue_lag_count(in.issue_lag_count);
  to->set_cpu_counting(in.cpu_counting);
  to->set_counting_queued(in.counting_queued);
  to->set_counting_queued_bytes(in.counting_queued_bytes);
  to->set_replies_counted(in.replies_counted);
  to->set_replies_uncounted(in.replies_uncounted);
  to->set_counting_drain_ns(in.counting_drain.ns);
}

void write(const Progress& in, v1::Control& out) {
  auto* to = out.mutable_progress();
  to->set_phase(in.phase);
  to->set_in_flight(in.in_flight);
  to->set_queued(in.queued);
  to->set_started(in.started);
  to->set_done(in.done);
  to->set_failed(in.failed);
  to->set_output_tokens(in.output_tokens);
  to->set_last_response_at_ns(in.last_response_at.ns);
  for (const FrontendGauge& gauge : in.frontends) {
    auto* added = to->add_frontends();
    added->set_in_flight(gauge.in_flight);
    added->set_started(gauge.started);
    added->set_done(gauge.done);
    added->set_failed(gauge.failed);
  }
  write(in.ttft, to->mutable_ttft());
  write(in.tpot, to->mutable_tpot());
  write(in.health, to->mutable_health());
}

void write(const Goodbye& in, v1::Control& out) { out.mutable_goodbye()->set_reason(in.reason); }

// Lease and RecordBatch belong to the data plane; codec.cc never brings them here.
void write(const Lease&, v1::Control&) { TUTTI_CHECK(false); }
void write(const RecordBatch&, v1::Control&) { TUTTI_CHECK(false); }

}  // namespace

std::string encode_control(const Message& message) {
  v1::Control control;
  std::visit([&control](const auto& kind) { write(kind, control); }, message);
  std::string out = control.SerializeAsString();
  TUTTI_CHECK(out.size() <= kControlBytesMax);
  return out;
}

}  // namespace tutti::wire
