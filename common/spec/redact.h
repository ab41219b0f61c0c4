#pragma once

// What may not be printed. Logs, dumps and error messages pass names and URLs through here.

#include <string>
#include <string_view>

#include "common/spec/tree.h"

namespace tutti::spec {

inline constexpr std::string_view kRedacted = "<redacted>";

// True for names of secrets: api_key, X-Api-Key, session-token, anything with "secret" in it, …
bool is_secret_key(std::string_view key);

// True for words of a command line whose value is a secret: --api-key, --proxy,
// --distributed.headers.X-Team=…
bool is_secret_flag(std::string_view word);

// A mapping of this name has values that are all secrets, whatever they are called.
inline constexpr std::string_view kSecretValues = "headers";

// An http/https/ws/wss/socks URL loses its userinfo and the values of secret query parameters;
// every other text, and a URL without either, comes back as it is.
std::string redact_url(std::string_view text);

// Both rules, through all mappings and lists: the value of a secret key becomes "<redacted>" whole,
// and so does every value of a mapping called kSecretValues.
Tree redacted(const Tree& tree);

}  // namespace tutti::spec
