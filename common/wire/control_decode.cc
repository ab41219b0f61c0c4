#include <fmt/format.h>

#include <limits>
#include <utility>

#include "common/wire/codec.h"
#include "common/wire/control_codec.h"
#include "common/wire/ranges.h"
#include "tutti/v1/control.pb.h"

namespace tutti::wire {
namespace {

// The first thing wrong in a message; empty while all is well.
using Fault = std::string;

template <class E>
E read_enum(std::uint32_t value, const char* field, Fault& fault) {
  if (value > static_cast<std::uint32_t>(kLastOf<E>)) {
    fault = fmt::format("{}: unknown value {}", field, value);
    return E{};
  }
  return static_cast<E>(value);
}

base::Id read(const v1::Id& in) { return {in.high(), in.low()}; }

Message read(const v1::Dial& in, Fault&) { return Dial{in.protocol_version(), read(in.run())}; }

Message read(const v1::Hello& in, Fault&) {
  Hello out;
  out.protocol_version = in.protocol_version();
  out.software_version = in.software_version();
  out.agent_name = in.agent_name();
  out.host = in.host();
  out.pid = in.pid();
  out.cores = in.cores();
  out.workers = in.workers();
  out.fd_limit = in.fd_limit();
  out.ephemeral_ports = in.ephemeral_ports();
  out.source_addresses.assign(in.source_addresses().begin(), in.source_addresses().end());
  out.own_addresses.assign(in.own_addresses().begin(), in.own_addresses().end());
  out.memory_bytes = in.memory_bytes();
  out.counts_tokens = in.counts_tokens();
  return out;
}

Message read(const v1::Welcome& in, Fault&) {
  return Welcome{read(in.run()), in.agent(), {in.heartbeat_ns()}, {in.lost_after_ns()}};
}

Message read(const v1::Refused& in, Fault&) { return Refused{in.reason()}; }

Message read(const v1::ClockPing& in, Fault&) {
  return ClockPing{in.number(), {in.coordinator_sent_ns()}};
}

Message read(const v1::ClockPong& in, Fault&) {
  return ClockPong{
      in.number(), {in.coordinator_sent_ns()}, {in.agent_received_ns()}, {in.agent_sent_ns()}};
}

TargetSpec read(const v1::TargetSpec& in, Fault& fault) {
  TargetSpec out;
  out.urls.assign(in.urls().begin(), in.urls().end());
  out.api = read_enum<base::ApiType>(in.api(), "target.api", fault);
  out.streaming = in.streaming();
  out.stamp_every_chunk = in.stamp_every_chunk();
  for (const auto& header : in.headers()) {
    out.headers.push_back(Header{header.name(), header.value()});
  }
  out.verify_tls = in.verify_tls();
  out.balance = read_enum<base::Balance>(in.balance(), "target.balance", fault);
  out.connect_timeout = {in.connect_timeout_ns()};
  out.request_timeout = {in.request_timeout_ns()};
  out.idle_connection_max = {in.idle_connection_max_ns()};
  out.connections_max = in.connections_max();
  out.connections_warm = in.connections_warm();
  out.connect_rate_max = in.connect_rate_max();
  out.way = read_enum<base::Way>(in.way(), "target.way", fault);
  out.weights.assign(in.weights().begin(), in.weights().end());
  out.affinity_header = in.affinity_header();
  out.routing_headers.assign(in.routing_headers().begin(), in.routing_headers().end());
  out.turn_timeout = {in.turn_timeout_ns()};
  out.proxy = in.proxy();
  out.ca_pem = in.ca_pem();
  out.client_cert_pem = in.client_cert_pem();
  out.client_key_pem = in.client_key_pem();
  out.streams_max = in.streams_max();
  out.source_addresses.assign(in.source_addresses().begin(), in.source_addresses().end());
  return out;
}

Message read(const v1::Prepare& in, Fault& fault) {
  const v1::ReplyCounting& counting = in.counting();
  return Prepare{read(in.target(), fault),
                 in.bodies_hash(),
                 in.bodies_bytes(),
                 in.bodies_rows(),
                 in.slots(),
                 in.run_note(),
                 {counting.model_hash(), counting.model_bytes(), {counting.drain_max_ns()}}};
}

Message read(const v1::BodiesWanted& in, Fault&) {
  return BodiesWanted{in.wanted(), in.model_wanted()};
}

Message read(const v1::BodyChunk& in, Fault& fault) {
  if (in.compressed().size() > kBodyChunkBytesMax) {
    fault = fmt::format("body_chunk.compressed: {} bytes, more than {}", in.compressed().size(),
                        kBodyChunkBytesMax);
  }
  return BodyChunk{in.offset(), in.compressed(), in.last(), in.model()};
}

Message read(const v1::Prepared& in, Fault&) {
  Prepared out;
  out.error = in.error();
  for (const auto& reach : in.frontends()) {
    out.frontends.push_back(Reach{reach.reachable(), reach.connect_us(), reach.error()});
  }
  out.connections_open = in.connections_open();
  return out;
}

Message read(const v1::ArmPhase& in, Fault& fault) {
  return ArmPhase{in.phase(),
                  read_enum<base::PhaseKind>(in.kind(), "arm_phase.kind", fault),
                  read_enum<base::Pacing>(in.pacing(), "arm_phase.pacing", fault),
                  in.slots(),
                  {in.start_at_ns()},
                  {in.coordinator_start_at_ns()},
                  {in.clock_error_ns()}};
}

Message read(const v1::Armed& in, Fault&) { return Armed{in.phase()}; }

Message read(const v1::Recall& in, Fault&) { return Recall{in.phase(), in.number()}; }

Message read(const v1::Recalled& in, Fault&) {
  Recalled out;
  out.phase = in.phase();
  out.number = in.number();
  out.unstarted.reserve(static_cast<std::size_t>(in.unstarted_steps_size()));
  base::Seq previous = 0;
  for (const std::int64_t step : in.unstarted_steps()) {
    previous += static_cast<std::uint64_t>(step);
    out.unstarted.push_back(previous);
  }
  return out;
}

Message read(const v1::Drain& in, Fault&) { return Drain{in.phase()}; }

Message read(const v1::Drained& in, Fault&) {
  return Drained{in.phase(), in.started(), in.last_batch()};
}

Message read(const v1::Abort& in, Fault&) { return Abort{in.reason()}; }

Message read(const v1::BatchAck& in, Fault&) { return BatchAck{in.number()}; }

LiveCounts read(const v1::LiveCounts& in, const char* field, Fault& fault) {
  LiveCounts out;
  if (in.cells_size() != in.counts_size()) {
    fault = fmt::format("{}: {} cells with {} counts", field, in.cells_size(), in.counts_size());
    return out;
  }
  out.cells.reserve(static_cast<std::size_t>(in.cells_size()));
  for (int i = 0; i < in.cells_size(); ++i) {
    if (in.cells(i) > std::numeric_limits<std::uint16_t>::max()) {
      fault = fmt::format("{}: no cell {}", field, in.cells(i));
      return out;
    }
    out.cells.emplace_back(static_cast<std::uint16_t>(in.cells(i)), in.counts(i));
  }
  return out;
}

Health read(const v1::Health& in) {
  Health out;
  out.issue_lag_p50 = {in.issue_lag_p50_ns()};
  out.issue_lag_p99 = {in.issue_lag_p99_ns()};
  out.turn_max = {in.turn_max_ns()};
  out.cpu_busiest_worker = in.cpu_busiest_worker();
  out.open_fds = in.open_fds();
  out.rss_bytes = in.rss_bytes();
  out.records_lost = in.records_lost();
  out.ring_fill_percent = in.ring_fill_percent();
  out.unsent_batches = in.unsent_batches();
  out.read_lag_p50 = {in.read_lag_p50_ns()};
  out.read_lag_p99 = {in.read_lag_p99_ns()};
  out.reads_unstamped = in.reads_unstamped();
  out.from = {in.from_ns()};
  out.to = {in.to_ns()};
  out.issue_lag_max = {in.issue_lag_max_ns()};
  out.read_lag_max = {in.read_lag_max_ns()};
  out.turn_p50 = {in.turn_p50_ns()};
  out.turn_p99 = {in.turn_p99_ns()};
  out.stalls = in.stalls();
  out.session_turn_max = {in.session_turn_max_ns()};
  out.cpu_session = in.cpu_session();
  out.connections = in.connections();
  out.connect_failures = in.connect_failures();
  out.fd_limit = in.fd_limit();
  out.spool_bytes = in.spool_bytes();
  out.unspooled_batches = in.unspooled_batches();
  out.retransmits = in.retransmits();
  out.segments_sent = in.segments_sent();
  out.sockets_in_use = in.sockets_in_use();
  out.sockets_time_wait = in.sockets_time_wait();
  out.issue_lag_count = in.issue_lag_count();
  out.cpu_counting = in.cpu_counting();
  out.counting_queued = in.counting_queued();
  out.counting_queued_bytes = in.counting_queued_bytes();
  out.replies_counted = in.replies_counted();
  out.replies_uncounted = in.replies_uncounted();
  out.counting_drain = {in.counting_drain_ns()};
  return out;
}

Message read(const v1::Progress& in, Fault& fault) {
  Progress out;
  out.phase = in.phase();
  out.in_flight = in.in_flight();
  out.queued = in.queued();
  out.started = in.started();
  out.done = in.done();
  out.failed = in.failed();
  out.output_tokens = in.output_tokens();
  out.last_response_at = {in.last_response_at_ns()};
  for (const auto& gauge : in.frontends()) {
    out.frontends.push_back(
        FrontendGauge{gauge.in_flight(), gauge.started(), gauge.done(), gauge.failed()});
  }
  out.ttft = read(in.ttft(), "progress.ttft", fault);
  out.tpot = read(in.tpot(), "progress.tpot", fault);
  out.health = read(in.health());
  return out;
}

Message read(const v1::Goodbye& in, Fault&) { return Goodbye{in.reason()}; }

Message read_kind(const v1::Control& in, Fault& fault) {
  switch (in.kind_case()) {
    case v1::Control::kDial:
      return read(in.dial(), fault);
    case v1::Control::kHello:
      return read(in.hello(), fault);
    case v1::Control::kWelcome:
      return read(in.welcome(), fault);
    case v1::Control::kRefused:
      return read(in.refused(), fault);
    case v1::Control::kClockPing:
      return read(in.clock_ping(), fault);
    case v1::Control::kClockPong:
      return read(in.clock_pong(), fault);
    case v1::Control::kPrepare:
      return read(in.prepare(), fault);
    case v1::Control::kBodiesWanted:
      return read(in.bodies_wanted(), fault);
    case v1::Control::kBodyChunk:
      return read(in.body_chunk(), fault);
    case v1::Control::kPrepared:
      return read(in.prepared(), fault);
    case v1::Control::kArmPhase:
      return read(in.arm_phase(), fault);
    case v1::Control::kArmed:
      return read(in.armed(), fault);
    case v1::Control::kRecall:
      return read(in.recall(), fault);
    case v1::Control::kRecalled:
      return read(in.recalled(), fault);
    case v1::Control::kDrain:
      return read(in.drain(), fault);
    case v1::Control::kDrained:
      return read(in.drained(), fault);
    case v1::Control::kAbort:
      return read(in.abort(), fault);
    case v1::Control::kBatchAck:
      return read(in.batch_ack(), fault);
    case v1::Control::kProgress:
      return read(in.progress(), fault);
    case v1::Control::kGoodbye:
      return read(in.goodbye(), fault);
    case v1::Control::KIND_NOT_SET:
      break;
  }
  fault = "of no kind this version knows";
  return Message{};
}

}  // namespace

base::Result<Message> decode_control(std::string_view bytes) {
  const auto refuse = [](const std::string& reason) {
    return base::fail(base::ExitCode::kExecution, "control message refused: " + reason);
  };
  if (bytes.size() > kControlBytesMax) {
    return refuse(fmt::format("{} bytes, more than {}", bytes.size(), kControlBytesMax));
  }
  v1::Control control;
  if (!control.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return refuse(fmt::format("{} bytes that are not Protobuf", bytes.size()));
  }
  Fault fault;
  Message message = read_kind(control, fault);
  if (!fault.empty()) {
    return refuse(fault);
  }
  return message;
}

}  // namespace tutti::wire
