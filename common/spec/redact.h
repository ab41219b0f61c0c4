#pragma once

// What may not be printed. Logs, dumps and error messages pass names and URLs through here.

#include <string>
#include <string_view>

#include "common/spec/tree.h"

namespace tutti::spec {

inline constexpr std::string_view kRedacted = "<redacted>";

// True for names of secrets: api_key, X-Api-Key, session-token, anything with "secret" in it, …
bool is_secret_key(std::string_view key);

// An http/https/ws/wss URL loses its userinfo and the values of secret query parameters; every
// other text, and a URL without either, comes back as it is.
std::string redact_url(std::string_view text);

// Both rules, through all mappings and lists: the value of a secret key becomes "<redacted>" whole.
Tree redacted(const Tree& tree);

}  // namespace tutti::spec
