#pragma once

// Proxy: the one that target.proxy names, taken apart once, and what goes through it. Only
// MultiTransport uses one. Plain frontends are asked through an http or https proxy by the whole
// URL, https ones by a CONNECT tunnel; SOCKS carries both alike. Plain values; any thread. Holds
// the password: never logged.

#include <string>

#include "common/base/result.h"
#include "common/wire/messages.h"

namespace tutti::target {

struct Proxy {
  std::string url;       // SCHEME://HOST:PORT; empty: none
  std::string label;     // HOST:PORT, for messages
  std::string user;      // decoded; with the password empty: none given
  std::string password;  // decoded
  bool http = false;     // http or https, not SOCKS

  bool is_set() const { return !url.empty(); }
  bool has_login() const { return !user.empty() || !password.empty(); }
  // What Proxy-Authorization says; empty: nothing.
  std::string authorization() const;
};

// kSetup errors say what is wrong without the text, which may hold a password.
base::Result<Proxy> parse_proxy(const std::string& text);

// What DirectTransport cannot do.
inline bool needs_multi(const wire::TargetSpec& target) {
  return !target.proxy.empty() || target.streams_max > 0;
}

}  // namespace tutti::target
