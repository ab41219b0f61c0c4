#pragma once

// is_plain: whether the inside of a JSON string stands for itself: ASCII without controls, quotes
// and backslashes. Eight bytes at a time, for the text of every reply goes through it. Pure.

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tutti::target {

// Of eight bytes at once, the top bits of those below 0x20, above 0x7F, of quotes and backslashes.
// Borrows only run from a byte that is one of these to higher ones, so the lowest bit is exact, and
// so is none.
inline std::uint64_t unplain_bytes(std::uint64_t word) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  const std::uint64_t quote = word ^ (kOnes * '"');
  const std::uint64_t backslash = word ^ (kOnes * '\\');
  return (word | (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes)) & kHighs;
}

inline bool is_plain(std::string_view text) {
  std::uint64_t word = 0;
  std::size_t at = 0;
  for (; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (unplain_bytes(word) != 0) {
      return false;
    }
  }
  word = 0x6161616161616161;  // what is missing of the last eight is plain
  std::memcpy(&word, text.data() + at, text.size() - at);
  return unplain_bytes(word) == 0;
}

}  // namespace tutti::target
