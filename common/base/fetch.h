#pragma once

// Cache lines asked for ahead of their use. With thousands of streams one stream's state has left
// the near caches by the time its next chunk comes, and every first touch of a line waits for it.
// Asked for before a call of the kernel, they come meanwhile. Changes nothing but time.

#include <cstddef>

namespace tutti::base {

// The lines of these bytes, which are not read here.
inline void fetch_lines(const void* from, std::size_t bytes) {
  constexpr std::size_t kLineBytes = 64;
  const auto* const first = static_cast<const char*>(from);
  for (std::size_t at = 0; at < bytes; at += kLineBytes) {
    __builtin_prefetch(first + at);
  }
}

}  // namespace tutti::base
