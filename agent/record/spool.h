#pragma once

// Spool: a copy of every batch on the agent's disk until the run has ended, so that the spools of
// all agents hold the whole run when the coordinator is lost (docs/decisions/009). What the
// coordinator has acknowledged is given up early only where room is needed. Append-only segment
// files "<run>-<agent>-<first batch>.spool" of the frames of wire/spool_file.h; each begins with
// all notes, so that one alone tells whose it is. It survives the death of the process, not of the
// host (no fsync per batch). One owner thread.

#include <cstdint>
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
  // What a reader must know beside the batches; stands in this and every later segment.
  base::Status note(std::string_view bytes);
  // Batches ≤ `up_to` are stored elsewhere: their segments may go when room is needed, and go at
  // once after release().
  void forget(std::uint64_t up_to);
  // The coordinator has ended the run knowingly: what is stored with it is not needed here.
  void release();
  // After a clean end: deletes every segment of this spool.
  void discard();

  std::uint64_t bytes_on_disk() const;
  std::size_t segments() const { return segments_.size(); }
  // Newest acknowledged batch that was given up for room; 0: none.
  std::uint64_t given_up_to() const { return given_up_to_; }

 private:
  struct Segment {
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t last_batch = 0;
  };
  struct Frame {
    std::uint64_t batch = 0;
    std::uint64_t offset = 0;
  };

  Spool(std::string directory, const base::Id& run, std::uint32_t agent, SpoolLimits limits);
  base::Status begin_segment(std::uint64_t batch);
  base::Status write_frame(std::uint64_t number, std::string_view bytes);
  bool give_up_first();
  bool give_up_part();
  void drop_first();

  std::string directory_;
  base::Id run_;
  std::uint32_t agent_;
  SpoolLimits limits_;
  std::vector<Segment> segments_;  // oldest first; the last is open in file_
  sys::Fd file_;
  std::vector<Frame> frames_;  // of the batches in it
  std::vector<std::string> notes_;
  std::uint64_t newest_ = 0;  // batch
  std::uint64_t acknowledged_ = 0;
  std::uint64_t given_up_to_ = 0;
  bool released_ = false;
};

}  // namespace tutti::record
