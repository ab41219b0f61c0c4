#pragma once

// hide_credentials(): a server that did not like our API key may quote it in its error, and errors
// go into records, reports and logs. Failures only: not on the hot path. Pure; any thread.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/wire/messages.h"

namespace tutti::target {

// In place, without growing: "<redacted>" for each credential in `text`, also for the beginning of
// one that the text's end cuts off.
inline void hide_credentials(const std::vector<wire::Header>& headers, std::string& text) {
  constexpr std::string_view kRedacted = "<redacted>";
  constexpr std::size_t kShortest = 6;  // less would blank words that are nobody's secret
  for (const wire::Header& header : headers) {
    std::string_view secret(header.value);
    secret.remove_prefix(std::min(secret.rfind(' ') + 1, secret.size()));
    if (header.name != "Authorization" || secret.size() < kShortest) {
      continue;
    }
    std::size_t at = 0;
    while ((at = text.find(secret, at)) != std::string::npos) {
      text.replace(at, secret.size(), kRedacted.substr(0, secret.size()));
    }
    for (std::size_t part = std::min(secret.size(), text.size()); part >= kShortest; --part) {
      if (text.ends_with(secret.substr(0, part))) {
        text.replace(text.size() - part, part, kRedacted.substr(0, part));
        break;
      }
    }
  }
}

}  // namespace tutti::target
