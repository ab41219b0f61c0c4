#pragma once

// The columns of a lease and of a record batch, in wire order, and the rules encoder and decoder
// must share to the letter: which stamp a stamp is written against, how flags are packed. Private
// to the data codec; docs/protocol.md describes the same for readers.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/time.h"
#include "common/wire/record.h"

namespace tutti::wire {

// Before the columns: version, kind, number or phase, row count.
inline constexpr std::size_t kHeadFields = 4;
// Phases, sizes, cells and counts of a batch's gaps: far above what 65,536 phases' usual ones take.
inline constexpr std::size_t kGapNumbersMax = std::size_t{1} << 20;
// Of each count of tokens: phase, step of seq, output, after_first, without_template.
inline constexpr std::size_t kTokenCountNumbers = 5;

enum class DataKind : std::uint8_t { kRecords = 1, kLease = 2 };

// The last is of bytes: the conversation whose first turn the command is, else nothing.
enum class LeaseColumn : std::uint8_t { kSeq, kSample, kDueOffset, kSalt, kConversation };
inline constexpr std::array kLeaseColumnNames = {"seq", "sample", "due_offset", "salt",
                                                 "conversation"};

enum class RecordColumn : std::uint8_t {
  kSeq,
  kSample,
  kPhase,
  kWorker,
  kFrontend,
  kOutcome,
  kFailure,
  kFinishReason,
  kHttpStatus,
  kFlags,
  kIssuedAt,
  kDueAt,
  kSentAt,
  kFirstByteAt,
  kFirstTokenAt,
  kLastTokenAt,
  kDoneAt,
  kDnsUs,
  kConnectUs,
  kTlsUs,
  kContentEvents,
  kMalformedEvents,
  kBytesUp,
  kBytesDown,
  kPromptTokens,
  kCompletionTokens,
  kReasoningTokens,
  kChunkCounts,
  kChunkSteps,
  kGaps,
  kTokens,
  kErrorMessage,
  kFinishText,
  kContentFirst,
  kContentRest,
  kReasoningFirst,
  kReasoningRest,
  kToolCalls
};
inline constexpr std::array kRecordColumnNames = {"seq",
                                                  "sample",
                                                  "phase",
                                                  "worker",
                                                  "frontend",
                                                  "outcome",
                                                  "failure",
                                                  "finish_reason",
                                                  "http_status",
                                                  "flags",
                                                  "issued_at",
                                                  "due_at",
                                                  "sent_at",
                                                  "first_byte_at",
                                                  "first_token_at",
                                                  "last_token_at",
                                                  "done_at",
                                                  "dns_us",
                                                  "connect_us",
                                                  "tls_us",
                                                  "content_events",
                                                  "malformed_events",
                                                  "bytes_up",
                                                  "bytes_down",
                                                  "prompt_tokens",
                                                  "completion_tokens",
                                                  "reasoning_tokens",
                                                  "chunk_counts",
                                                  "chunk_steps",
                                                  "gaps",
                                                  "tokens",
                                                  "error_message",
                                                  "finish_text",
                                                  "content_first",
                                                  "content_rest",
                                                  "reasoning_first",
                                                  "reasoning_rest",
                                                  "tool_calls"};
static_assert(kRecordColumnNames.size() == static_cast<std::size_t>(RecordColumn::kToolCalls) + 1);

inline constexpr std::size_t kTextColumnFirst =
    static_cast<std::size_t>(RecordColumn::kErrorMessage);

// Differences are taken modulo 2^64, so that every pair of values has one and none overflows.
inline std::int64_t step_between(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::int64_t>(to - from);
}
inline std::int64_t step_between(base::Instant from, base::Instant to) {
  return step_between(static_cast<std::uint64_t>(from.ns), static_cast<std::uint64_t>(to.ns));
}
inline base::Instant step_from(base::Instant from, std::int64_t step) {
  return {static_cast<std::int64_t>(static_cast<std::uint64_t>(from.ns) +
                                    static_cast<std::uint64_t>(step))};
}

// The life of an exchange. Each stamp is written as the step from the last one before it that is
// set.
inline constexpr std::array<base::Instant Record::*, 6> kLife = {
    &Record::issued_at,      &Record::sent_at,       &Record::first_byte_at,
    &Record::first_token_at, &Record::last_token_at, &Record::done_at};
inline constexpr std::size_t kLifeOfChunks = 4;  // chunks follow first_token_at

inline base::Instant stamp_before(const Record& record, std::size_t place) {
  while (place-- > 1) {
    const base::Instant stamp = record.*kLife[place];
    if (stamp.is_set()) {
      return stamp;
    }
  }
  return record.issued_at;
}

inline constexpr std::int64_t kFlagsMax = 0x3F;

inline std::int64_t flags_of(const Record& record) {
  return std::int64_t{record.streamed} | std::int64_t{record.connection_reused} << 1 |
         std::int64_t{record.resent} << 2 | std::int64_t{record.output.has_content} << 3 |
         std::int64_t{record.output.has_reasoning} << 4 | std::int64_t{record.output.has_rest} << 5;
}

inline void set_flags(Record& record, std::int64_t flags) {
  record.streamed = (flags & 1) != 0;
  record.connection_reused = (flags & 2) != 0;
  record.resent = (flags & 4) != 0;
  record.output.has_content = (flags & 8) != 0;
  record.output.has_reasoning = (flags & 16) != 0;
  record.output.has_rest = (flags & 32) != 0;
}

// The text of a text column; R is Record or const Record.
template <class R>
auto& text_of(R& record, RecordColumn column) {
  switch (column) {
    case RecordColumn::kFinishText:
      return record.finish_text;
    case RecordColumn::kContentFirst:
      return record.output.content_first;
    case RecordColumn::kContentRest:
      return record.output.content_rest;
    case RecordColumn::kReasoningFirst:
      return record.output.reasoning_first;
    case RecordColumn::kReasoningRest:
      return record.output.reasoning_rest;
    case RecordColumn::kToolCalls:
      return record.output.tool_calls;
    default:
      return record.error_message;
  }
}

}  // namespace tutti::wire
