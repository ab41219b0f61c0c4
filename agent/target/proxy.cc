#include "agent/target/proxy.h"

#include <fmt/format.h>

#include <string_view>

#include "agent/target/url_parts.h"
#include "common/text/base64.h"

namespace tutti::target {
std::string Proxy::authorization() const {
  return has_login() ? "Basic " + text::base64(user + ":" + password) : std::string{};
}

base::Result<Proxy> parse_proxy(const std::string& text) {
  Proxy proxy;
  if (text.empty()) {
    return proxy;
  }
  const auto refuse = [](std::string_view what) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("proxy: {}; write SCHEME://HOST:PORT with http, https, socks5 or "
                                  "socks5h",
                                  what));
  };
  const Url url(curl_url());
  const CURLUcode code =
      curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) {
    return refuse(curl_url_strerror(code));
  }
  const std::string scheme = url_part(url, CURLUPART_SCHEME);
  const std::string host = url_part(url, CURLUPART_HOST);
  const std::string port = url_part(url, CURLUPART_PORT);
  proxy.http = scheme == "http" || scheme == "https";
  if (!proxy.http && scheme != "socks5" && scheme != "socks5h") {
    return refuse("its scheme is not spoken");
  }
  if (host.empty() || port.empty()) {
    return refuse("its host or port is missing");
  }
  proxy.user = url_part(url, CURLUPART_USER, CURLU_URLDECODE);
  proxy.password = url_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
  proxy.label = fmt::format("{}:{}", host, port);
  proxy.url = fmt::format("{}://{}", scheme, proxy.label);
  return proxy;
}

}  // namespace tutti::target
