#pragma once

// Record: the immutable facts of one exchange, the product of this program. Made once by the worker
// that ran the exchange, carried in batches, never changed. Stamps are instants of the *agent's*
// monotonic clock (0: it did not happen); differences of stamps of one record are exact,
// comparisons across agents need the roster's clock mapping.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "common/base/vocabulary.h"

namespace tutti::wire {

enum class Outcome : std::uint8_t {
  kOk = 0,
  kFailed = 1,     // see failure, http_status, error_message
  kCancelled = 2,  // ended by us: abort of the run; counts as failed in files
};

// Why an exchange failed. The files' `error_type` is derived from it (runtime-metrics 3.10).
enum class Failure : std::uint8_t {
  kNone = 0,
  kHttpStatus,  // status ≠ 200; http_status and the first KB of the body are kept
  kConnect,     // refused, unreachable, no ports, DNS
  kConnectTimeout,
  kTls,
  kReset,        // connection lost before the reply was whole
  kTruncated,    // stream ended without [DONE] and without a finish reason
  kEmptyStream,  // event stream without any event
  kStreamError,  // error object or error event inside a 200
  kBadReply,     // body that does not decode, malformed SSE, too large an event
  kRequestTimeout,
  kCancelled,
  kInternal,
  kTurnTimeout,  // the turn of a conversation took longer than turn_timeout_s
  kTurnSkipped,  // never sent: a turn before it failed
};

enum class FinishReason : std::uint8_t {
  kNone = 0,
  kStop,
  kLength,
  kToolCalls,
  kContentFilter,
  kFunctionCall,
  kOther,
};

// Text the event file needs: what came first, and the rest joined.
struct OutputText {
  std::string content_first;
  std::string content_rest;
  std::string reasoning_first;
  std::string reasoning_rest;
  std::string tool_calls;    // JSON array of merged calls, or empty
  bool has_content = false;  // a content chunk came, even when reasoning came first
  bool has_reasoning = false;
  bool has_rest = false;  // a second chunk of the leading kind came

  friend bool operator==(const OutputText&, const OutputText&) = default;
};

// How often a cell of stats::LiveHistogram was hit.
using CountedCell = std::pair<std::uint16_t, std::uint32_t>;

struct Record {
  base::Seq seq = 0;
  base::SampleIndex sample = 0;
  std::uint16_t phase = 0;     // index into the run's phases
  std::uint16_t worker = 0;    // worker of this agent
  std::uint16_t frontend = 0;  // index into the run's endpoints
  Outcome outcome = Outcome::kOk;
  Failure failure = Failure::kNone;
  FinishReason finish_reason = FinishReason::kNone;
  std::uint16_t http_status = 0;
  bool streamed = false;  // the reply came as an event stream
  bool connection_reused = false;
  bool resent = false;  // once, because a kept connection was closed before any byte went out

  base::Instant due_at{};     // when the schedule wanted it (closed loop: when its slot was free)
  base::Instant issued_at{};  // when the worker took it up, before any wait for a connection
  base::Instant sent_at{};    // when the request was first handed to the kernel
  base::Instant first_byte_at{};   // first byte of the reply's header
  base::Instant first_token_at{};  // first content, reasoning or tool-call event
  base::Instant last_token_at{};
  base::Instant done_at{};   // reply whole, or failure known
  std::uint32_t dns_us = 0;  // connection set-up, 0 when reused
  std::uint32_t connect_us = 0;
  std::uint32_t tls_us = 0;

  std::uint32_t content_events = 0;  // events that bore output
  std::uint32_t malformed_events = 0;
  std::uint32_t bytes_up = 0;
  std::uint32_t bytes_down = 0;
  std::int32_t prompt_tokens = -1;  // from the server's usage; -1: not reported
  std::int32_t completion_tokens = -1;
  std::int32_t reasoning_tokens = -1;

  std::string error_message;  // bounded: kErrorTextMax
  std::string finish_text;    // the server's finish reason as sent, when kOther
  OutputText output;
  std::vector<base::Instant> chunk_at;  // content events after the first; with stream_all_chunks
  // Otherwise the gaps between content events, counted; cells ascend. Not encoded with the record:
  // its batch carries the sum of its records' (RecordBatch::gaps).
  std::vector<CountedCell> gaps;

  friend bool operator==(const Record&, const Record&) = default;
};

inline constexpr std::size_t kErrorTextMax = 1024;

}  // namespace tutti::wire
