#pragma once

// SpscRing<T>: one producer thread, one consumer thread, fixed capacity, no lock, no allocation
// after construction. Full is a fact the producer sees (push returns false) and must count.

#include <atomic>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace tutti::base {

template <class T>
class SpscRing {
 public:
  // Capacity is rounded up to a power of two.
  explicit SpscRing(std::size_t capacity)
      : slots_(std::bit_ceil(capacity < 2 ? 2 : capacity)), mask_(slots_.size() - 1) {}

  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  // Producer only. On false the value was not taken (and was not moved from).
  bool push(T&& value) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head - cached_tail_ > mask_) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head - cached_tail_ > mask_) {
        return false;
      }
    }
    slots_[head & mask_] = std::move(value);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Consumer only. The slot keeps the moved-from value, so its buffers are reused.
  bool pop(T& out) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == cached_head_) {
      cached_head_ = head_.load(std::memory_order_acquire);
      if (tail == cached_head_) {
        return false;
      }
    }
    std::swap(out, slots_[tail & mask_]);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  std::size_t capacity() const { return slots_.size(); }
  // Exact only when both sides are still; a gauge otherwise.
  std::size_t size() const {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_acquire);
  }

 private:
  std::vector<T> slots_;
  std::size_t mask_;
  alignas(64) std::atomic<std::size_t> head_{0};
  std::size_t cached_tail_ = 0;
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::size_t cached_head_ = 0;
};

}  // namespace tutti::base
