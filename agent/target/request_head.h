#pragma once

// RequestHead: what every request to one frontend begins with, rendered once: request line, Host,
// the configured headers in their order, and "Content-Length: " for the length to follow; with an
// affinity header that one comes before, and the text ends where its sample's number goes. Byte for
// byte what MultiTransport has curl send. Also the frontend's address when its URL spells one.

#include <string>
#include <string_view>

#include "agent/target/frontend.h"
#include "agent/target/warm_stock.h"
#include "common/wire/messages.h"

namespace tutti::target {

inline constexpr std::string_view kLengthName = "Content-Length: ";

struct RequestHead {
  std::string text;
  std::size_t routing_at = 0;  // where in it a conversation's routing lines go
  std::string host;            // without the brackets of IPv6
  SocketAddress address{};     // unset: the host is a name
};

// `frontend` is one of parse_frontends(target).
RequestHead render_head(const Frontend& frontend, const wire::TargetSpec& target);

}  // namespace tutti::target
