#include "tests/mock_llm/timer_wheel.h"

#include <bit>

namespace tutti::mock_llm {
namespace {

constexpr int kTickShift = 15;  // 2^15 ns
constexpr std::uint32_t kBuckets = 1U << 16;
constexpr std::uint32_t kReady = kBuckets;
constexpr std::uint32_t kNone = UINT32_MAX;

std::uint32_t bucket_of(std::int64_t tick) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(tick) & (kBuckets - 1));
}

}  // namespace

TimerWheel::TimerWheel(std::int64_t now_ns)
    : heads_(kBuckets + 1, kNone), occupied_(kBuckets / 64, 0), cursor_(now_ns >> kTickShift) {}

void TimerWheel::link(std::uint32_t id, std::uint32_t bucket, std::int64_t tick) {
  if (id >= nodes_.size()) {
    nodes_.resize(id + 1, Node{kNone, kNone, kNone, 0});
  }
  Node& node = nodes_[id];
  node = Node{kNone, heads_[bucket], bucket, tick};
  if (node.next != kNone) {
    nodes_[node.next].previous = id;
  }
  heads_[bucket] = id;
  if (bucket < kBuckets) {
    occupied_[bucket / 64] |= 1ULL << (bucket % 64);
  }
  ++armed_;
}

void TimerWheel::unlink(std::uint32_t id) {
  Node& node = nodes_[id];
  if (node.previous != kNone) {
    nodes_[node.previous].next = node.next;
  } else {
    heads_[node.bucket] = node.next;
    if (node.next == kNone && node.bucket < kBuckets) {
      occupied_[node.bucket / 64] &= ~(1ULL << (node.bucket % 64));
    }
  }
  if (node.next != kNone) {
    nodes_[node.next].previous = node.previous;
  }
  node.bucket = kNone;
  --armed_;
}

void TimerWheel::arm(std::uint32_t id, std::int64_t due_ns) {
  disarm(id);
  // Rounded up, so that a timer is never early.
  const std::int64_t tick = (due_ns + (1LL << kTickShift) - 1) >> kTickShift;
  link(id, tick <= cursor_ ? kReady : bucket_of(tick), tick);
}

void TimerWheel::disarm(std::uint32_t id) {
  if (is_armed(id)) {
    unlink(id);
  }
}

bool TimerWheel::is_armed(std::uint32_t id) const {
  return id < nodes_.size() && nodes_[id].bucket != kNone;
}

std::int64_t TimerWheel::next_wake_ns() const {
  if (armed_ == 0) {
    return INT64_MAX;
  }
  if (heads_[kReady] != kNone) {
    return cursor_ << kTickShift;
  }
  const std::uint32_t start = bucket_of(cursor_ + 1);
  for (std::uint32_t k = 0; k <= kBuckets / 64; ++k) {
    const std::uint32_t word = (start / 64 + k) % (kBuckets / 64);
    std::uint64_t bits = occupied_[word];
    if (k == 0) {
      bits &= ~0ULL << (start % 64);
    }
    if (bits != 0) {
      const std::uint32_t bucket = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      const std::uint32_t ahead = (bucket - start) & (kBuckets - 1);
      return (cursor_ + 1 + ahead) << kTickShift;
    }
  }
  return INT64_MAX;
}

void TimerWheel::collect_bucket(std::uint32_t bucket, std::int64_t tick,
                                std::vector<std::uint32_t>& due) {
  for (std::uint32_t id = heads_[bucket]; id != kNone;) {
    const std::uint32_t next = nodes_[id].next;
    if (nodes_[id].tick <= tick) {
      unlink(id);
      due.push_back(id);
    }
    id = next;
  }
}

void TimerWheel::collect(std::int64_t now_ns, std::vector<std::uint32_t>& due) {
  collect_bucket(kReady, INT64_MAX, due);
  const std::int64_t tick = now_ns >> kTickShift;
  // After a long sleep one turn of the wheel sees every bucket.
  const std::int64_t first = tick - cursor_ > kBuckets ? tick - kBuckets + 1 : cursor_ + 1;
  for (std::int64_t t = first; t <= tick && armed_ != 0; ++t) {
    const std::uint32_t bucket = bucket_of(t);
    if (occupied_[bucket / 64] == 0) {
      t += 63 - bucket % 64;  // nothing in this word
      continue;
    }
    collect_bucket(bucket, tick, due);
  }
  if (tick > cursor_) {
    cursor_ = tick;
  }
}

}  // namespace tutti::mock_llm
