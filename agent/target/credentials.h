#pragma once

// hide_credentials(): a server that did not like our API key may quote it in its error, and errors
// go into records, reports and logs. Failures only: not on the hot path. Pure; any thread.

#include <strings.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "agent/target/proxy.h"
#include "common/wire/messages.h"

namespace tutti::target {

// In place, without growing: "<redacted>" for `secret` wherever it stands in `text`, also for its
// beginning where the text's end cuts it off.
inline void hide_credential(std::string_view secret, std::string& text) {
  constexpr std::string_view kRedacted = "<redacted>";
  constexpr std::size_t kShortest = 6;  // less would blank words that are nobody's secret
  if (secret.size() < kShortest) {
    return;
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

// The word after the scheme of Authorization, the value of any other header that the user gave, and
// what a proxy is told.
inline void hide_credentials(const wire::TargetSpec& target, const Proxy& proxy,
                             std::string& text) {
  const auto last_word = [](std::string_view value) {
    value.remove_prefix(std::min(value.rfind(' ') + 1, value.size()));
    return value;
  };
  for (const wire::Header& header : target.headers) {
    if (strcasecmp(header.name.c_str(), "Authorization") == 0) {
      hide_credential(last_word(header.value), text);
    } else if (header.name != "Content-Type" && header.name != "Accept") {
      hide_credential(header.value, text);
    }
  }
  if (proxy.has_login()) {
    hide_credential(last_word(proxy.authorization()), text);
    hide_credential(proxy.password, text);
  }
}

}  // namespace tutti::target
