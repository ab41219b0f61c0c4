#include "agent/session/record_batcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "common/wire/data_codec.h"

namespace tutti::session {

using base::Instant;

void RecordBatcher::add(std::vector<wire::Record>&& records, Instant now) {
  const std::size_t before = pending_.size();
  pending_.insert(pending_.end(), std::make_move_iterator(records.begin()),
                  std::make_move_iterator(records.end()));
  if (before == 0) {
    oldest_at_ = now;
  }
  note(before);
}

void RecordBatcher::note(std::size_t from) {
  for (std::size_t i = from; i < pending_.size(); ++i) {
    oldest_at_ = std::min(oldest_at_, pending_[i].done_at);
    pending_bytes_ += wire::record_bytes_max(pending_[i]);
  }
}

void RecordBatcher::add_counts(std::vector<wire::TokenCount>&& counts, Instant now) {
  if (counts_.empty()) {
    oldest_count_at_ = now;
  }
  counts_.insert(counts_.end(), counts.begin(), counts.end());
}

Instant RecordBatcher::due_at() const {
  const Instant records = pending_.empty() ? base::kFarFuture : oldest_at_ + kWaitMax;
  const Instant counts = counts_.empty() ? base::kFarFuture : oldest_count_at_ + kCountWaitMax;
  return std::min(records, counts);
}

bool RecordBatcher::counts_due(Instant now) const {
  return counts_.size() >= kCountsMax ||
         (!counts_.empty() && now >= oldest_count_at_ + kCountWaitMax);
}

std::size_t RecordBatcher::end_of_batch(std::size_t from) const {
  std::size_t to = from;
  std::size_t bytes = 0;
  while (to < pending_.size() && to - from < kBatchMax) {
    bytes += wire::record_bytes_max(pending_[to]);
    if (to > from && bytes > kBatchBytesMax) {
      break;
    }
    ++to;
  }
  return to;
}

void RecordBatcher::flush(Instant now, Cut what, std::vector<Command>& out) {
  std::size_t from = 0;
  // Asked after every event: what is neither full nor due is not measured again.
  const bool some = what != Cut::kDue || pending_.size() >= kBatchMax ||
                    pending_bytes_ > kBatchBytesMax || now >= oldest_at_ + kWaitMax;
  while (some && from < pending_.size()) {
    const std::size_t to = end_of_batch(from);
    const bool full = to < pending_.size() || to - from == kBatchMax;
    if (!full && what == Cut::kDue && now < oldest_at_ + kWaitMax) {
      break;
    }
    cut(from, to, out);
    from = to;
  }
  if (from > 0) {
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(from));
    oldest_at_ = now;
    pending_bytes_ = 0;
    note(0);
  }
  while (counts_due(now) || (what == Cut::kAll && !counts_.empty())) {
    cut(0, 0, out);
  }
  send_allowed(out);
}

// The sum of the records' gaps takes their place, phase by phase: a few bytes a record instead of
// hundreds, and still counted exactly as often as the records themselves.
void RecordBatcher::gather_gaps(wire::RecordBatch& batch) {
  for (const wire::Record& record : batch.records) {
    const bool gathered =
        std::any_of(batch.gaps.begin(), batch.gaps.end(),
                    [&record](const wire::PhaseGaps& part) { return part.phase == record.phase; });
    if (record.gaps.empty() || gathered) {
      continue;
    }
    gaps_.emplace();
    for (const wire::Record& each : batch.records) {
      if (each.phase == record.phase) {
        TUTTI_CHECK(gaps_->add_cells(each.gaps));
      }
    }
    batch.gaps.push_back({record.phase, gaps_->cells()});
  }
  for (wire::Record& record : batch.records) {
    record.gaps = {};
  }
}

void RecordBatcher::cut(std::size_t from, std::size_t to, std::vector<Command>& out) {
  wire::RecordBatch batch;
  batch.number = ++last_;
  batch.records.assign(
      std::make_move_iterator(pending_.begin() + static_cast<std::ptrdiff_t>(from)),
      std::make_move_iterator(pending_.begin() + static_cast<std::ptrdiff_t>(to)));
  gather_gaps(batch);
  const auto counts = static_cast<std::ptrdiff_t>(std::min(counts_.size(), kCountsMax));
  batch.tokens.assign(counts_.begin(), counts_.begin() + counts);
  counts_.erase(counts_.begin(), counts_.begin() + counts);
  out.emplace_back(SpoolAppend{batch});
  if (sending_) {
    unsent_.push_back(std::move(batch));
  }
}

void RecordBatcher::send_allowed(std::vector<Command>& out) {
  while (!unsent_.empty() && unsent_.front().number <= acked_ + kUnackedMax) {
    out.emplace_back(Send{wire::Message(std::move(unsent_.front()))});
    unsent_.pop_front();
  }
}

bool RecordBatcher::acknowledge(std::uint64_t number, std::vector<Command>& out) {
  const std::uint64_t sent = last_ - unsent_.size();
  if (number <= acked_ || number > sent) {
    return false;
  }
  acked_ = number;
  out.emplace_back(SpoolForget{number});
  send_allowed(out);
  return true;
}

void RecordBatcher::stop_sending() {
  sending_ = false;
  unsent_.clear();
}

}  // namespace tutti::session
