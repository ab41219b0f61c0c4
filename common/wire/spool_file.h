#pragma once

// The frames of an agent's spool files: how one is made, and how what is left of a file is read.
// Agents write them (agent/record), `tutti report --from-spools` reads them. No owner.
//
// A file is a sequence of frames, little-endian: magic "TUTTISPL", u32 version, u32 agent, u64 run
// high, u64 run low, u64 number, u64 length, u64 xxh3-64 of the payload seeded with the xxh3-64 of
// the 40 bytes after the magic, then the payload. Number 0 is a *note*, an encoded control message
// that tells whose records these are; other numbers are those of RecordBatches.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/id.h"
#include "common/base/result.h"

namespace tutti::wire {

inline constexpr std::size_t kSpoolHeaderBytes = 56;
inline constexpr std::uint64_t kSpoolFrameBytesMax = 1ULL << 30;
inline constexpr std::uint64_t kSpoolNote = 0;  // number of a note

using SpoolHeader = std::array<unsigned char, kSpoolHeaderBytes>;

SpoolHeader spool_header(const base::Id& run, std::uint32_t agent, std::uint64_t number,
                         std::string_view payload);

struct SpoolFrame {
  base::Id run{};
  std::uint32_t agent = 0;
  std::uint64_t number = 0;
  std::string_view bytes;  // lives during the callback
};

struct SpoolScan {
  std::uint64_t files = 0;
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;           // of their payloads
  std::vector<std::string> skipped;  // one line per damaged stretch: file, offset, length, why
};

// Reads every whole frame of `path`, a file or a directory of .spool files (in name order), and
// steps over damage: a torn tail, a changed byte, foreign bytes between frames. Memory: one file.
// kInput when unreadable.
base::Result<SpoolScan> read_spool(const std::string& path,
                                   const std::function<void(const SpoolFrame&)>& on_frame);

}  // namespace tutti::wire
