#pragma once

// What coordinator and agents say to each other, as plain values. docs/protocol.md tells the story;
// proto/tutti/v1 and the batch codec are encodings of these structs and of nothing else.
//
// Direction is in the comment of each: up (agent → coordinator) or down (coordinator → agent).
// Every message rides on a Link (link.h): numbered, acknowledged, delivered once and in order for
// one pair of incarnations. So no message carries a retry counter, and receivers need no
// reordering.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/id.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"
#include "common/wire/clock_messages.h"
#include "common/wire/health.h"
#include "common/wire/record.h"
#include "common/wire/target_spec.h"
#include "common/wire/token_count.h"
#include "common/wire/trajectory.h"

namespace tutti::wire {

inline constexpr std::uint32_t kProtocolVersion = 2;

// ---- joining ---------------------------------------------------------------------------------

// down, only when the coordinator is the dialler: the first message, so that a listening agent
// learns whom to answer.
struct Dial {
  std::uint32_t protocol_version = kProtocolVersion;
  base::Id run{};

  friend bool operator==(const Dial&, const Dial&) = default;
};

// up: who I am and what this host can do.
struct Hello {
  std::uint32_t protocol_version = kProtocolVersion;
  std::string software_version;
  std::string agent_name;  // unique in a run: given, or host:pid
  std::string host;
  std::uint32_t pid = 0;
  std::uint32_t cores = 0;
  std::uint32_t workers = 1;
  std::uint64_t fd_limit = 0;                 // soft limit after raising
  std::uint32_t ephemeral_ports = 0;          // size of ip_local_port_range
  std::vector<std::string> source_addresses;  // its own choice (--source-address); empty: none
  // Addresses that are this host's: ADDRESS, or ADDRESS/BITS where a whole block is (loopback).
  std::vector<std::string> own_addresses;
  std::uint64_t memory_bytes = 0;  // free for this process when it joined; 0: not known
  bool counts_tokens = false;      // its build has tokenizers

  friend bool operator==(const Hello&, const Hello&) = default;
};

// down: accepted as agent number `agent`.
struct Welcome {
  base::Id run{};
  std::uint32_t agent = 0;
  base::Duration heartbeat{};   // send something at least this often
  base::Duration lost_after{};  // silence after which the other side is lost

  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// down: not accepted; the agent prints `reason` and exits with kSetup.
struct Refused {
  std::string reason;

  friend bool operator==(const Refused&, const Refused&) = default;
};

// ---- getting ready ---------------------------------------------------------------------------

// down: bodies and model come next, in that order, unless the agent says it has them.
struct Prepare {
  TargetSpec target{};
  std::string bodies_hash;  // hex xxh3-128 of the whole body set
  std::uint64_t bodies_bytes = 0;
  std::uint32_t bodies_rows = 0;
  std::uint32_t slots = 0;  // the most this agent will be asked to hold in flight
  // What a report needs beside the records, for the agent's spool; it reads nothing in it.
  std::string run_note{};
  ReplyCounting counting{};

  friend bool operator==(const Prepare&, const Prepare&) = default;
};

// up: reply to Prepare.
struct BodiesWanted {
  bool wanted = true;         // false: cached by content hash
  bool model_wanted = false;  // the same of the files it counts with

  friend bool operator==(const BodiesWanted&, const BodiesWanted&) = default;
};

// down, repeated: a slice of the body set's bytes (data::BodySet's file form) or of the packed
// model's, zstd-compressed.
struct BodyChunk {
  std::uint64_t offset = 0;  // of the uncompressed slice
  std::string compressed;
  bool last = false;
  bool model = false;

  friend bool operator==(const BodyChunk&, const BodyChunk&) = default;
};

// up: ready for phases, or not, with the reason. One reach entry per frontend.
struct Reach {
  bool reachable = false;
  std::uint32_t connect_us = 0;
  std::string error;

  friend bool operator==(const Reach&, const Reach&) = default;
};
struct Prepared {
  std::string error;  // empty: ready
  std::vector<Reach> frontends;
  std::uint32_t connections_open = 0;

  friend bool operator==(const Prepared&, const Prepared&) = default;
};

// ---- phases ----------------------------------------------------------------------------------

// down: phase `phase` will start at `start_at` (agent's clock). Leases may come before or after.
struct ArmPhase {
  std::uint32_t phase = 0;
  base::PhaseKind kind = base::PhaseKind::kPerformance;
  base::Pacing pacing = base::Pacing::kClosedLoop;
  std::uint32_t slots = 0;  // C_i; Σ over agents is exactly C in a closed loop
  base::Instant start_at{};
  base::Instant coordinator_start_at{};  // the same instant on the coordinator's clock …
  base::Duration clock_error{};          // … within ± this

  friend bool operator==(const ArmPhase&, const ArmPhase&) = default;
};
// up
struct Armed {
  std::uint32_t phase = 0;

  friend bool operator==(const Armed&, const Armed&) = default;
};

// down (data plane): issue commands, in schedule order.
struct Lease {
  std::uint32_t phase = 0;
  std::vector<base::IssueCommand> commands;
  std::vector<Trajectory> trajectories{};  // of all commands, in their order; or none

  friend bool operator==(const Lease&, const Lease&) = default;
};

// down: stop starting queries of this phase at once and say which commands were never started.
struct Recall {
  std::uint32_t phase = 0;
  std::uint32_t number = 0;

  friend bool operator==(const Recall&, const Recall&) = default;
};
// up: the unstarted ones, now the coordinator's again. The agent may be leased more afterwards.
struct Recalled {
  std::uint32_t phase = 0;
  std::uint32_t number = 0;
  std::vector<base::Seq> unstarted;

  friend bool operator==(const Recalled&, const Recalled&) = default;
};

// down: no lease of this phase will follow; say when the last exchange has ended.
struct Drain {
  std::uint32_t phase = 0;

  friend bool operator==(const Drain&, const Drain&) = default;
};
// up: nothing of this phase is queued or in flight and every record is in a batch ≤ last_batch.
struct Drained {
  std::uint32_t phase = 0;
  std::uint64_t started = 0;
  std::uint64_t last_batch = 0;

  friend bool operator==(const Drained&, const Drained&) = default;
};

// down: end what is in flight now (records say kCancelled), drop what is queued.
struct Abort {
  std::string reason;

  friend bool operator==(const Abort&, const Abort&) = default;
};

// ---- facts -----------------------------------------------------------------------------------

// up (data plane). Batches count from 1 per agent incarnation; accept is idempotent by (run, agent,
// number).
//
// The gaps between content events of all its records of one phase, in stats::LiveHistogram's cells.
struct PhaseGaps {
  std::uint16_t phase = 0;
  std::vector<CountedCell> cells;

  friend bool operator==(const PhaseGaps&, const PhaseGaps&) = default;
};
struct RecordBatch {
  std::uint64_t number = 0;
  std::vector<Record> records;
  std::vector<PhaseGaps> gaps{};     // of records without chunk_at; stands and falls with them
  std::vector<TokenCount> tokens{};  // of records of this agent, in this batch or another

  friend bool operator==(const RecordBatch&, const RecordBatch&) = default;
};
// down: batches ≤ number are stored. Their spool is kept until the coordinator says Goodbye, as
// far as there is room.
struct BatchAck {
  std::uint64_t number = 0;

  friend bool operator==(const BatchAck&, const BatchAck&) = default;
};

struct FrontendGauge {
  std::uint32_t in_flight = 0;
  std::uint64_t started = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;

  friend bool operator==(const FrontendGauge&, const FrontendGauge&) = default;
};

// Fixed-edge histogram counts since the last Progress (stats::LiveHistogram's edges), for the live
// view.
struct LiveCounts {
  std::vector<CountedCell> cells;  // sparse

  friend bool operator==(const LiveCounts&, const LiveCounts&) = default;
};

// up, at every heartbeat and when an interval of Health ends: gauges of the running phase. Lossy in
// meaning (newest wins), never needed for correctness.
struct Progress {
  std::uint32_t phase = 0;
  std::uint32_t in_flight = 0;
  std::uint32_t queued = 0;
  std::uint64_t started = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t output_tokens = 0;   // content events, or usage where reported
  base::Instant last_response_at{};  // newest byte of any reply
  std::vector<FrontendGauge> frontends;
  LiveCounts ttft;
  LiveCounts tpot;
  Health health{};

  friend bool operator==(const Progress&, const Progress&) = default;
};

// either way: the last message of a link.
struct Goodbye {
  std::string reason;

  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

using Message =
    std::variant<Dial, Hello, Welcome, Refused, ClockPing, ClockPong, Prepare, BodiesWanted,
                 BodyChunk, Prepared, ArmPhase, Armed, Lease, Recall, Recalled, Drain, Drained,
                 Abort, RecordBatch, BatchAck, Progress, Goodbye>;

}  // namespace tutti::wire
