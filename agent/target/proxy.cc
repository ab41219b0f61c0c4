#include "agent/target/proxy.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>
#include <string_view>

#include "common/text/base64.h"

namespace tutti::target {
namespace {

struct UrlFree {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part(CURLU* url, CURLUPart what, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, what, &text, flags) != CURLUE_OK) {
    return {};
  }
  std::string copy = text;
  curl_free(text);
  return copy;
}

}  // namespace

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
  const std::unique_ptr<CURLU, UrlFree> url(curl_url());
  const CURLUcode code =
      curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) {
    return refuse(curl_url_strerror(code));
  }
  const std::string scheme = part(url.get(), CURLUPART_SCHEME);
  const std::string host = part(url.get(), CURLUPART_HOST);
  const std::string port = part(url.get(), CURLUPART_PORT);
  proxy.http = scheme == "http" || scheme == "https";
  if (!proxy.http && scheme != "socks5" && scheme != "socks5h") {
    return refuse("its scheme is not spoken");
  }
  if (host.empty() || port.empty()) {
    return refuse("its host or port is missing");
  }
  proxy.user = part(url.get(), CURLUPART_USER, CURLU_URLDECODE);
  proxy.password = part(url.get(), CURLUPART_PASSWORD, CURLU_URLDECODE);
  proxy.label = fmt::format("{}:{}", host, port);
  proxy.url = fmt::format("{}://{}", scheme, proxy.label);
  return proxy;
}

}  // namespace tutti::target
