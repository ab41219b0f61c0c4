#pragma once

// UTF-8 at the door: what comes from servers and files may be broken, what we write never is.
// Replacement follows the Unicode "maximal subpart" practice, so it equals Python's
// errors="replace".

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti::text {

bool is_utf8(std::string_view bytes);

// Appends `bytes` with every broken sequence replaced by U+FFFD.
void append_utf8(std::string& out, std::string_view bytes);

// The longest prefix of at most `bytes_max` bytes that does not cut a code point of valid UTF-8.
std::string_view clip_utf8(std::string_view text, std::size_t bytes_max);

}  // namespace tutti::text
