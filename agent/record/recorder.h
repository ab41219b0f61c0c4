#pragma once

// Recorder: the way of records from one worker to the session thread, and of their emptied buffers
// back, so that a worker's texts need no memory of their own. add() never blocks and never
// allocates; a full ring is a counted loss that makes the run invalid. One producer, one consumer;
// counters may be read by either.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/ring.h"
#include "common/wire/record.h"

namespace tutti::record {

class Recorder {
 public:
  // Losses are told apart for phases below this; later ones share the last count.
  static constexpr std::size_t kPhasesTold = 64;
  static constexpr std::size_t kSparesMax = 1024;
  static constexpr std::size_t kSpareBytesMax = std::size_t{64} << 10;

  explicit Recorder(std::size_t capacity);

  // Worker. Takes the record's content and leaves in it the buffers of one that was given back, if
  // any was. False: lost.
  bool add(wire::Record& record);
  // Session. Swaps the oldest record into `out`; false: none.
  bool take(wire::Record& out) { return ring_.pop(out); }
  // Session. A record it has copied or does not need. Outsized buffers, and those beyond
  // kSparesMax that wait, are not kept.
  void give_back(wire::Record& record);

  std::uint64_t lost() const;
  std::uint64_t lost(std::uint32_t phase) const;
  std::size_t size() const { return ring_.size(); }
  std::uint32_t fill_percent() const;

 private:
  base::SpscRing<wire::Record> ring_;
  base::SpscRing<wire::Record> spares_;  // session → worker: content without meaning
  std::array<std::atomic<std::uint64_t>, kPhasesTold> lost_{};
};

}  // namespace tutti::record
