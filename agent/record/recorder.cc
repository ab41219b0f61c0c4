#include "agent/record/recorder.h"

#include <algorithm>
#include <utility>

namespace tutti::record {

Recorder::Recorder(std::size_t capacity)
    : ring_(capacity), spares_(std::min(capacity, kSparesMax)) {}

bool Recorder::add(std::unique_ptr<wire::Record>& record) {
  const std::size_t phase = std::min<std::size_t>(record->phase, kPhasesTold - 1);
  if (ring_.push(std::move(record))) {
    if (!spares_.pop(record)) {
      record = std::make_unique<wire::Record>();
    }
    return true;
  }
  auto& count = lost_[phase];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return false;
}

std::unique_ptr<wire::Record> Recorder::take() {
  std::unique_ptr<wire::Record> record;
  ring_.pop(record);
  return record;
}

void Recorder::give_back(std::unique_ptr<wire::Record> record) {
  const wire::OutputText& text = record->output;
  const std::size_t bytes = text.content_first.capacity() + text.content_rest.capacity() +
                            text.reasoning_first.capacity() + text.reasoning_rest.capacity() +
                            text.tool_calls.capacity() + record->error_message.capacity() +
                            record->finish_text.capacity() +
                            record->chunk_at.capacity() * sizeof(base::Instant) +
                            record->gaps.capacity() * sizeof(wire::CountedCell);
  if (bytes <= kSpareBytesMax) {
    spares_.push(std::move(record));  // full: freed here
  }
}

std::uint64_t Recorder::lost() const {
  std::uint64_t sum = 0;
  for (const auto& count : lost_) {
    sum += count.load(std::memory_order_acquire);
  }
  return sum;
}

std::uint64_t Recorder::lost(std::uint32_t phase) const {
  return lost_[std::min<std::size_t>(phase, kPhasesTold - 1)].load(std::memory_order_acquire);
}

std::uint32_t Recorder::fill_percent() const {
  return static_cast<std::uint32_t>(ring_.size() * 100 / ring_.capacity());
}

}  // namespace tutti::record
