#pragma once

// Recorder: the way of records from one worker to the session thread, and of read ones back, so
// that a worker's records and texts need no new memory. Records travel as pointers: few of them are
// on the way at a time, and those few stay in the cache, which a ring of whole records would not.
// add() never blocks, and allocates only while more records are on the way than spares wait (1,024
// are kept: a session that sleeps for 20 ms at 50,000 records a second) or texts are outsized; a
// full ring is a counted loss that makes the run invalid. One producer, one consumer; counters may
// be read by either.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/ring.h"
#include "common/base/time.h"
#include "common/wire/record.h"

namespace tutti::record {

// A record waits for company for so long, from the end of its query to the batch it is sent in,
// unless somebody waits for it: a batch costs several wake-ups, however little is in it.
inline constexpr base::Duration kCompanyMax = base::Duration::millis(20);

class Recorder {
 public:
  // Losses are told apart for phases below this; later ones share the last count.
  static constexpr std::size_t kPhasesTold = 64;
  static constexpr std::size_t kSparesMax = 1024;
  static constexpr std::size_t kSpareBytesMax = std::size_t{64} << 10;

  explicit Recorder(std::size_t capacity);

  // Worker. Takes the record and leaves in its place one that was given back, or a new one: its
  // content means nothing, its buffers are to be reused. False: lost, the record is as it was.
  bool add(std::unique_ptr<wire::Record>& record);
  // Session. The oldest record; null: none.
  std::unique_ptr<wire::Record> take();
  // Session. A record it has read. Outsized ones, and those beyond kSparesMax that wait, are not
  // kept.
  void give_back(std::unique_ptr<wire::Record> record);

  std::uint64_t lost() const;
  std::uint64_t lost(std::uint32_t phase) const;
  std::size_t size() const { return ring_.size(); }
  std::uint32_t fill_percent() const;

 private:
  base::SpscRing<std::unique_ptr<wire::Record>> ring_;
  base::SpscRing<std::unique_ptr<wire::Record>> spares_;  // session → worker
  std::array<std::atomic<std::uint64_t>, kPhasesTold> lost_{};
};

}  // namespace tutti::record
