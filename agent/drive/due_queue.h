#pragma once

// DueQueue: a worker's commands that may be issued, the earliest due first, then the lowest number.
// Nearly always they come in that order and a plain queue holds them; those that come behind their
// time (given back by another agent) wait in a heap of their own. One owner, no locks; memory grows
// only at a new high.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/drive/fifo.h"
#include "common/base/vocabulary.h"

namespace tutti::drive {

struct Queued {
  base::IssueCommand command{};
  std::uint32_t phase = 0;
};

class DueQueue {
 public:
  bool empty() const { return in_order_.empty() && behind_.empty(); }
  std::size_t size() const { return in_order_.size() + behind_.size(); }

  void push(const Queued& queued) {
    if (in_order_.empty() || !later(in_order_.back(), queued)) {
      in_order_.push(queued);
    } else {
      behind_.push_back(queued);
      std::push_heap(behind_.begin(), behind_.end(), later);
    }
  }
  // Not empty.
  const Queued& front() const { return behind_first() ? behind_.front() : in_order_.front(); }
  Queued pop() {
    if (!behind_first()) {
      return in_order_.pop();
    }
    std::pop_heap(behind_.begin(), behind_.end(), later);
    const Queued queued = behind_.back();
    behind_.pop_back();
    return queued;
  }

 private:
  static bool later(const Queued& a, const Queued& b) {
    return a.command.due_offset != b.command.due_offset
               ? a.command.due_offset > b.command.due_offset
               : a.command.seq > b.command.seq;
  }
  bool behind_first() const {
    return !behind_.empty() && (in_order_.empty() || later(in_order_.front(), behind_.front()));
  }

  Fifo<Queued> in_order_;
  std::vector<Queued> behind_;  // heap
};

}  // namespace tutti::drive
