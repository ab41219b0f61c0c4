#include "coordinator/report/fold.h"

#include <algorithm>

#include "common/base/check.h"

namespace tutti::report {

std::uint32_t Fold::begin_tracking(base::Instant at) {
  blocks_.push_back({at, {}});
  see(at);
  return static_cast<std::uint32_t>(blocks_.size() - 1);
}

void Fold::see(base::Instant at) {
  if (at.is_set() && started_at_.is_set()) {
    counters_.total_duration_ns = std::max(counters_.total_duration_ns, (at - started_at_).ns);
  }
}

void Fold::add(const Row& row) {
  const bool completed = row.completed_at.is_set();
  ++counters_.total_issued;
  counters_.total_completed += completed ? 1 : 0;
  counters_.total_failed += row.errors;
  see(row.issued_at);
  see(row.first_token_at);
  see(row.completed_at);
  for (const base::Instant at : row.chunk_at) {
    see(at);
  }
  if (row.tracked) {
    add_tracked(row);
  }
}

void Fold::add_tracked(const Row& row) {
  TUTTI_CHECK(row.block < blocks_.size());
  ++counters_.tracked_issued;
  counters_.tracked_failed += row.errors;
  if (!first_issued_at_.is_set() || row.issued_at < first_issued_at_) {
    first_issued_at_ = row.issued_at;
  }
  if (row.prompt_tokens >= 0) {
    isl_.add(row.prompt_tokens);
  }
  if (streaming_ && row.first_token_at.is_set()) {
    ttft_.add((row.first_token_at - row.issued_at).ns);
    base::Instant previous = row.first_token_at;
    for (const base::Instant at : row.chunk_at) {
      chunk_delta_.add((at - previous).ns);
      previous = at;
    }
  }
  if (!row.completed_at.is_set()) {
    return;
  }
  ++counters_.tracked_completed;
  latency_.add((row.completed_at - row.issued_at).ns);
  Block& block = blocks_[row.block];
  block.last_completed_at = std::max(block.last_completed_at, row.completed_at);
  if (row.issued_at > last_of_completed_at_ ||
      (row.issued_at == last_of_completed_at_ && row.completed_at > its_completion_at_)) {
    last_of_completed_at_ = row.issued_at;
    its_completion_at_ = row.completed_at;
  }
  if (row.errors > 0) {
    return;
  }
  count_finish(row.finish_reason);
  if (row.output_tokens >= 0) {
    osl_.add(row.output_tokens);
  }
  if (streaming_ && row.first_token_at.is_set() && row.tokens_after_first > 0) {
    tpot_.add(static_cast<double>((row.completed_at - row.first_token_at).ns) /
              static_cast<double>(row.tokens_after_first));
  }
}

void Fold::count_finish(wire::FinishReason reason) {
  switch (reason) {
    case wire::FinishReason::kNone:
      return;
    case wire::FinishReason::kStop:
      ++counters_.finish_stop;
      return;
    case wire::FinishReason::kLength:
      ++counters_.finish_length;
      return;
    case wire::FinishReason::kToolCalls:
      ++counters_.finish_tool_calls;
      return;
    case wire::FinishReason::kContentFilter:
      ++counters_.finish_content_filter;
      return;
    case wire::FinishReason::kFunctionCall:
      ++counters_.finish_function_call;
      return;
    case wire::FinishReason::kOther:
      ++counters_.finish_other;
      return;
  }
}

void Fold::add_lost(bool tracked, std::uint64_t count) {
  counters_.total_issued += static_cast<std::int64_t>(count);
  counters_.tracked_issued += tracked ? static_cast<std::int64_t>(count) : 0;
}

void Fold::add_stray_completion(base::Instant at) {
  ++counters_.total_completed;
  see(at);
}

void Fold::add_stray_error(base::Instant at) {
  ++counters_.total_failed;
  see(at);
}

Snapshot Fold::finish(RunState state, bool early_stopping, base::Instant now) {
  for (const Block& block : blocks_) {
    if (block.last_completed_at.is_set()) {
      counters_.tracked_duration_ns +=
          std::max<std::int64_t>(0, (block.last_completed_at - block.start_at).ns);
    }
  }
  if (its_completion_at_.is_set()) {
    counters_.legacy_window_ns =
        std::max<std::int64_t>(0, (its_completion_at_ - first_issued_at_).ns);
  }
  const bool estimates = early_stopping && state == RunState::kComplete;
  Snapshot out;
  out.taken_at = now;
  out.state = state;
  out.streaming = streaming_;
  out.counters = counters_;
  out.latency = latency_.stat(estimates);
  out.isl = isl_.stat(false);
  out.osl = osl_.stat(false);
  out.ttft = ttft_.stat(estimates);
  out.chunk_delta = chunk_delta_.stat(false);
  out.tpot = tpot_.stat(estimates);
  return out;
}

}  // namespace tutti::report
