#pragma once

// is_plain: whether the inside of a JSON string stands for itself: ASCII without controls, quotes
// and backslashes. Eight bytes at a time, for the text of every reply goes through it. And what a
// plain count is. Pure.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tutti::target {

// Of eight bytes at once: some byte is below 0x20, above 0x7F, a quote or a backslash. Borrows only
// run from a byte that is one of these to its neighbour, so "none" is exact.
inline bool has_unplain_byte(std::uint64_t word) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  const std::uint64_t quote = word ^ (kOnes * '"');
  const std::uint64_t backslash = word ^ (kOnes * '\\');
  return ((word | (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes)) & kHighs) != 0;
}

inline bool is_plain(std::string_view text) {
  std::uint64_t word = 0;
  std::size_t at = 0;
  for (; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (has_unplain_byte(word)) {
      return false;
    }
  }
  word = 0x6161616161616161;  // what is missing of the last eight is plain
  std::memcpy(&word, text.data() + at, text.size() - at);
  return !has_unplain_byte(word);
}

// One by one: near the end of a text, out of the way of what is usual.
[[gnu::noinline]] inline const char* plain_end_slowly(const char* at, const char* end) {
  while (at < end && is_plain({at, 1})) {
    ++at;
  }
  return at;
}

// Where the plain bytes from `at` on end.
inline const char* plain_end(const char* at, const char* end) {
#if defined(__SSE2__)  // every x86-64
  for (; end - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // Compared with signs: what is above 0x7F is below 0x20 too.
    const __m128i odd = _mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)),
                                     _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                  _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(odd));
    if (found != 0) {
      return at + std::countr_zero(found);
    }
  }
#endif
  return plain_end_slowly(at, end);
}

// Takes a whole number from 0 off the front: no sign, no leading zero, at most 18 digits. False: it
// is not one.
inline bool take_plain_count(const char*& at, const char* end, std::uint64_t& value) {
  constexpr std::ptrdiff_t kDigitsMax = 18;
  const char* const from = at;
  for (value = 0; at < end && *at >= '0' && *at <= '9' && at - from < kDigitsMax; ++at) {
    value = value * 10 + static_cast<unsigned char>(*at - '0');
  }
  return at > from && (*from != '0' || at - from == 1);
}

// As the facts of a reply hold one.
inline std::int32_t clamped_count(std::uint64_t value) {
  return static_cast<std::int32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace tutti::target
