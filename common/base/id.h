#pragma once

// Names that must not collide: runs, incarnations of a process, query ids in files.

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace tutti::base {

// 128 bits. A run id, an agent's incarnation. Printed as 32 lower-case hex digits.
struct Id {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  bool is_set() const { return high != 0 || low != 0; }
  std::string hex() const;
  friend bool operator==(const Id&, const Id&) = default;
  friend auto operator<=>(const Id&, const Id&) = default;
};

// From the operating system's entropy; call at the rim only (mains, hosts).
Id fresh_id();

// A name beside `path` for a file that is renamed to it when whole. Drawn at random: on a folder
// several hosts or containers share, process ids repeat. Call at the rim only.
std::string draft_path(const std::string& path);

// The query id of event files: 32 hex digits, a bijective mix of (run, phase, seq), so that equal
// runs differ and no two queries of a run collide.
std::string query_id(const Id& run, std::uint32_t phase, std::uint64_t seq);

}  // namespace tutti::base

template <>
struct std::hash<tutti::base::Id> {
  std::size_t operator()(const tutti::base::Id& id) const noexcept {
    return static_cast<std::size_t>(id.high ^ (id.low * 0x9E3779B97F4A7C15ULL));
  }
};
