#pragma once

// Chain: an intrusive list by age of things that are in at most one chain at a time and outlive
// their stay in it. T has `T* older` and `T* newer`, which only the chain touches. One owner.

#include <cstddef>

namespace tutti::target {

template <class T>
class Chain {
 public:
  T* oldest() const { return oldest_; }
  T* newest() const { return newest_; }
  std::size_t size() const { return size_; }

  void add(T& item) {
    item.older = newest_;
    item.newer = nullptr;
    (newest_ != nullptr ? newest_->newer : oldest_) = &item;
    newest_ = &item;
    ++size_;
  }
  void remove(T& item) {
    (item.older != nullptr ? item.older->newer : oldest_) = item.newer;
    (item.newer != nullptr ? item.newer->older : newest_) = item.older;
    item.older = item.newer = nullptr;
    --size_;
  }

 private:
  T* oldest_ = nullptr;
  T* newest_ = nullptr;
  std::size_t size_ = 0;
};

// A call's place in the line of those that may not open a connection yet.
template <class Call>
struct ConnectWait {
  explicit ConnectWait(Call* of) : call(of) {}
  Call* call;
  bool on = false;      // in the line
  bool let_in = false;  // was in it, and its pacer opened
  ConnectWait* older = nullptr;
  ConnectWait* newer = nullptr;
};

}  // namespace tutti::target
