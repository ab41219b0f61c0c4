#pragma once

// BLAKE2b without a key, any digest length from 1 to 64 bytes (RFC 7693; the length is part of the
// hash, so a short digest is no prefix of a long one). For marks of a few bytes that must equal
// those of the reference client, not for secrets and not for speed. Pure.

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti::base {

// The digest as lower-case hex digits, two for each byte. `digest_bytes` in 1 … 64.
std::string blake2b_hex(std::string_view text, std::size_t digest_bytes);

}  // namespace tutti::base
