#include "agent/session/record_batcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tutti::session {

using base::Instant;

void RecordBatcher::add(std::vector<wire::Record>&& records, Instant now) {
  if (pending_.empty()) {
    oldest_at_ = now;
  }
  pending_.insert(pending_.end(), std::make_move_iterator(records.begin()),
                  std::make_move_iterator(records.end()));
}

Instant RecordBatcher::due_at() const {
  return pending_.empty() ? base::kFarFuture : oldest_at_ + kWaitMax;
}

void RecordBatcher::flush(Instant now, bool everything, std::vector<Command>& out) {
  std::size_t from = 0;
  while (pending_.size() - from >= kBatchMax) {
    cut(from, out);
    from += kBatchMax;
  }
  if (from < pending_.size() && (everything || now >= due_at())) {
    cut(from, out);
    from = pending_.size();
  }
  if (from > 0) {
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(from));
    oldest_at_ = now;
  }
  send_allowed(out);
}

void RecordBatcher::cut(std::size_t from, std::vector<Command>& out) {
  const std::size_t to = std::min(from + kBatchMax, pending_.size());
  wire::RecordBatch batch;
  batch.number = ++last_;
  batch.records.assign(
      std::make_move_iterator(pending_.begin() + static_cast<std::ptrdiff_t>(from)),
      std::make_move_iterator(pending_.begin() + static_cast<std::ptrdiff_t>(to)));
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
