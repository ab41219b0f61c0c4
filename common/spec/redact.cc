#include "common/spec/redact.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "common/spec/words.h"

namespace tutti::spec {
namespace {

// application/x-www-form-urlencoded, as the reference re-encodes a query it has changed.
std::string form_encoded(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~';
    if (plain) {
      result += c;
    } else if (c == ' ') {
      result += '+';
    } else {
      result += '%';
      result += kHex[byte >> 4U];
      result += kHex[byte & 15U];
    }
  }
  return result;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string form_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low >= 0) {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      result += text[i] == '+' ? ' ' : text[i];
    }
  }
  return result;
}

// The query with secret values replaced, or nullopt when it has none.
std::optional<std::string> redacted_query(std::string_view query) {
  std::string result;
  bool changed = false;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) {
      continue;
    }
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string name = form_decoded(pair.substr(0, equals));
    std::string value = form_decoded(pair.substr(std::min(equals + 1, pair.size())));
    if (is_secret_key(name)) {
      changed = true;
      value = kRedacted;
    }
    result += (result.empty() ? "" : "&") + form_encoded(name) + "=" + form_encoded(value);
  }
  return changed ? std::optional<std::string>(result) : std::nullopt;
}

}  // namespace

bool is_secret_key(std::string_view key) {
  std::string name = lower_case(trimmed(key));
  std::replace(name.begin(), name.end(), '-', '_');
  static constexpr std::array<std::string_view, 6> kNames{
      "api_key", "access_token", "authorization", "auth_token", "password", "token"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || name.ends_with("_key") ||
         name.ends_with("_token") || name.ends_with("_password") ||
         name.find("secret") != std::string::npos;
}

bool is_secret_flag(std::string_view word) {
  if (!word.starts_with("--")) {
    return false;
  }
  const std::vector<std::string> parts = split(word.substr(2, word.find('=') - 2), '.');
  return is_secret_key(parts.back()) || parts.back() == "proxy" ||
         std::find(parts.begin(), parts.end(), kSecretValues) != parts.end();
}

std::string redact_url(std::string_view text) {
  const std::size_t colon = text.find("://");
  const std::string scheme = lower_case(text.substr(0, std::min(colon, text.size())));
  if (colon == std::string_view::npos ||
      (scheme != "http" && scheme != "https" && scheme != "ws" && scheme != "wss" &&
       scheme != "socks5" && scheme != "socks5h")) {
    return std::string(text);
  }
  const std::size_t host_at = colon + 3;
  const std::size_t path_at = std::min(text.find_first_of("/?#", host_at), text.size());
  std::string authority(text.substr(host_at, path_at - host_at));
  if (authority.empty()) {
    return std::string(text);
  }
  const std::size_t user_end = authority.rfind('@');
  if (user_end != std::string::npos) {
    authority.replace(0, user_end, kRedacted);
  }
  const std::size_t fragment_at = std::min(text.find('#', path_at), text.size());
  const std::size_t query_at = std::min(text.find('?', path_at), fragment_at);
  const std::string_view query =
      query_at < fragment_at ? text.substr(query_at + 1, fragment_at - query_at - 1) : "";
  const auto safe_query = redacted_query(query);
  if (user_end == std::string::npos && !safe_query) {
    return std::string(text);
  }
  std::string result = scheme + "://" + authority;
  result += text.substr(path_at, query_at - path_at);
  if (safe_query || query_at < fragment_at) {
    result += "?";
    result += safe_query ? *safe_query : std::string(query);
  }
  result += text.substr(fragment_at);
  return result;
}

Tree redacted(const Tree& tree) {
  Tree result = tree;
  if (result.kind == Tree::Kind::kString) {
    result.text = redact_url(result.text);
  }
  for (Tree& item : result.items) {
    item = redacted(item);
  }
  const Tree hidden = Tree::of_string(std::string(kRedacted));
  for (Tree::Entry& entry : result.entries) {
    entry.value = is_secret_key(entry.key) ? hidden : redacted(entry.value);
    if (entry.key == kSecretValues) {
      for (Tree::Entry& each : entry.value.entries) {
        each.value = hidden;
      }
    }
  }
  return result;
}

}  // namespace tutti::spec
