#pragma once

// Fifo<T>: a first-in first-out queue in one block of memory that grows only when it reaches a new
// high, so that a steady state does not allocate (std::deque does). One owner, no locks.

#include <cstddef>
#include <utility>
#include <vector>

namespace tutti::drive {

template <class T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const T& front() const { return items_[head_]; }
  const T& back() const { return items_[(head_ + size_ - 1) & (items_.size() - 1)]; }

  void push(T value) {
    if (size_ == items_.size()) {
      grow();
    }
    items_[(head_ + size_) & (items_.size() - 1)] = std::move(value);
    ++size_;
  }
  T pop() {
    T value = std::move(items_[head_]);
    head_ = (head_ + 1) & (items_.size() - 1);
    --size_;
    return value;
  }
  void clear() {
    head_ = 0;
    size_ = 0;
  }

 private:
  void grow() {
    std::vector<T> bigger(items_.empty() ? 64 : items_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) {
      bigger[i] = std::move(items_[(head_ + i) & (items_.size() - 1)]);
    }
    items_ = std::move(bigger);
    head_ = 0;
  }

  std::vector<T> items_;  // none, or a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace tutti::drive
