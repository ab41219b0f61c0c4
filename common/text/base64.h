#pragma once

// base64(): bytes as RFC 4648, section 4, writes them, padded and in one line: what basic
// authentication puts into its header. Pure; any thread.

#include <string>
#include <string_view>

namespace tutti::text {

std::string base64(std::string_view bytes);

}  // namespace tutti::text
