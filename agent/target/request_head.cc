#include "agent/target/request_head.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "agent/target/url_parts.h"
#include "common/base/check.h"
#include "common/text/json_write.h"

namespace tutti::target {
namespace {

template <class Address>
void keep(SocketAddress& to, const Address& address) {
  std::memcpy(&to.storage, &address, sizeof address);
  to.length = sizeof address;
}

SocketAddress literal_address(std::string host, const std::string& port) {
  SocketAddress found;
  const auto port_number = htons(static_cast<std::uint16_t>(std::atoi(port.c_str())));
  sockaddr_in v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = port_number;
    keep(found, v4);
    return found;
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    sockaddr_in6 v6{};
    if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = port_number;
      keep(found, v6);
    }
  }
  return found;
}

}  // namespace

std::string routing_lines(const wire::TargetSpec& target, std::string_view id) {
  std::string lines;
  for (const std::string& name : target.routing_headers) {
    lines += name + ": ";
    lines += id;
    lines += "\r\n";
  }
  return lines;
}

std::string turn_timeout_text(base::Duration timeout) {
  std::string text = "turn timeout after ";
  text::append_json_double(text, timeout.to_seconds());
  return text + "s";
}

RequestHead render_head(const Frontend& frontend, const wire::TargetSpec& target) {
  const Url url(curl_url());
  TUTTI_CHECK(curl_url_set(url.get(), CURLUPART_URL, frontend.url.c_str(), 0) == CURLUE_OK);
  const std::string host = url_part(url, CURLUPART_HOST);
  const std::string port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const std::string query = url_part(url, CURLUPART_QUERY);
  RequestHead head;
  std::string& text = head.text;
  text = "POST " + url_part(url, CURLUPART_PATH);
  if (!query.empty()) {
    text += "?" + query;
  }
  text += " HTTP/1.1\r\nHost: " + host;
  if (port != (frontend.tls ? "443" : "80")) {
    text += ":" + port;
  }
  text += "\r\n";
  for (const auto& header : target.headers) {
    text += header.name + (header.value.empty() ? ":" : ": ") + header.value + "\r\n";
  }
  head.routing_at = text.size();
  if (target.affinity_header.empty()) {
    text += kLengthName;
    TUTTI_CHECK(text.size() + 4 == frontend.head_bytes);  // the digits and two line ends follow
  } else {
    text += target.affinity_header + ": " + kAffinityValue;
    TUTTI_CHECK(text.size() + 2 + kLengthName.size() + 4 == frontend.head_bytes);
  }
  const bool bracketed = host.size() > 2 && host.front() == '[';
  head.host = bracketed ? host.substr(1, host.size() - 2) : host;
  head.address = literal_address(host, port);
  return head;
}

}  // namespace tutti::target
