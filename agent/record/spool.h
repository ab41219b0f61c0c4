#pragma once

// Spool: batches kept on the agent's disk until the coordinator has stored them, so that a lost
// coordinator loses no record. Append-only segment files; acknowledged batches free their segment.
// It survives the death of the process, not of the host (no fsync per batch). One owner thread.
//
// Segment "<run>-<agent>-<first batch>.spool" holds frames, little-endian: magic "TUTTISPL", u32
// version, u32 agent, u64 run high, u64 run low, u64 batch number, u64 length, u64 xxh3-64 of the
// payload seeded with the xxh3-64 of the 40 bytes after the magic, then the payload.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/id.h"
#include "common/base/result.h"
#include "common/sys/fd.h"

namespace tutti::record {

struct SpoolLimits {
  std::uint64_t bytes_max = 8ULL << 30;       // on disk, all segments
  std::uint64_t segment_bytes = 64ULL << 20;  // a new file begins after this many
};

class Spool {
 public:
  // Makes `directory` if it is missing. Nothing of an older run is touched.
  static base::Result<Spool> create(std::string directory, const base::Id& run, std::uint32_t agent,
                                    SpoolLimits limits = {});

  // Batch numbers ascend. On an error (disk full, limit reached) the file is as before.
  base::Status append(std::uint64_t batch, std::string_view bytes);
  // Batches ≤ `up_to` are stored elsewhere; segments that hold nothing else are deleted.
  void forget(std::uint64_t up_to);
  // After a clean end: deletes every segment of this spool.
  void discard();

  std::uint64_t bytes_on_disk() const;
  std::size_t segments() const { return segments_.size(); }

 private:
  struct Segment {
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t last_batch = 0;
  };

  Spool(std::string directory, const base::Id& run, std::uint32_t agent, SpoolLimits limits);
  base::Status begin_segment(std::uint64_t batch);
  void drop_first();

  std::string directory_;
  base::Id run_;
  std::uint32_t agent_;
  SpoolLimits limits_;
  std::vector<Segment> segments_;  // oldest first; the last is open in file_
  sys::Fd file_;
};

struct SpooledBatch {
  base::Id run{};
  std::uint32_t agent = 0;
  std::uint64_t number = 0;
  std::string_view bytes;  // lives during the callback
};

struct SpoolScan {
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;           // of their payloads
  std::vector<std::string> skipped;  // one line per damaged stretch: file, offset, length, why
};

// Reads every whole frame of `path`, a segment or a directory of segments (in name order), and
// steps over damage: a torn tail, a changed byte, foreign bytes between frames. kInput when
// unreadable.
base::Result<SpoolScan> read_spool(const std::string& path,
                                   const std::function<void(const SpooledBatch&)>& on_batch);

}  // namespace tutti::record
