#pragma once

// A hashed timer wheel: 65,536 buckets of 32.768 µs, one timer per id, O(1) to arm, move and
// disarm. Never early; at most one tick late by itself. Timers beyond one turn of the wheel (2.1 s)
// stay in their bucket and are looked at once a turn. Reads no clock; owned by one thread.

#include <cstdint>
#include <vector>

namespace tutti::mock_llm {

class TimerWheel {
 public:
  explicit TimerWheel(std::int64_t now_ns);

  // (Re)arms id's timer. A due time that is already past is collected by the next collect().
  void arm(std::uint32_t id, std::int64_t due_ns);
  void disarm(std::uint32_t id);
  bool is_armed(std::uint32_t id) const;

  // No timer is due before this; INT64_MAX when none is armed.
  std::int64_t next_wake_ns() const;

  // Appends the ids due at now_ns, earliest bucket first, and disarms them.
  void collect(std::int64_t now_ns, std::vector<std::uint32_t>& due);

  std::size_t armed_count() const { return armed_; }

 private:
  struct Node {
    std::uint32_t previous;
    std::uint32_t next;
    std::uint32_t bucket;  // kNone: not armed
    std::int64_t tick;
  };

  void link(std::uint32_t id, std::uint32_t bucket, std::int64_t tick);
  void unlink(std::uint32_t id);
  void collect_bucket(std::uint32_t bucket, std::int64_t tick, std::vector<std::uint32_t>& due);

  std::vector<std::uint32_t> heads_;     // the last one is the bucket of timers already due
  std::vector<std::uint64_t> occupied_;  // one bit a bucket
  std::vector<Node> nodes_;
  std::int64_t cursor_;  // every tick up to this one has been collected
  std::size_t armed_ = 0;
};

}  // namespace tutti::mock_llm
