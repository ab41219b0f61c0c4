#include "agent/target/frontend.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "agent/target/proxy.h"
#include "agent/target/url_parts.h"

namespace tutti::target {
namespace {

// Bytes of the request's head as curl writes it: request line, Host, our headers, Content-Length.
// An HTTP proxy is asked for the whole URL of a plain frontend, and told who asks.
std::uint32_t head_bytes_of(const Url& url, const wire::TargetSpec& target, const std::string& host,
                            const Proxy& by_url) {
  const std::string query = url_part(url, CURLUPART_QUERY);
  std::size_t bytes = std::strlen("POST  HTTP/1.1\r\n") + url_part(url, CURLUPART_PATH).size() +
                      (query.empty() ? 0 : query.size() + 1);
  bytes += std::strlen("Host: \r\n") + host.size();
  for (const auto& header : target.headers) {
    bytes += header.name.size() + 2 + header.value.size() + 2;
    bytes -= header.value.empty() ? 1U : 0U;
  }
  if (!target.affinity_header.empty()) {
    bytes += target.affinity_header.size() + 2 + std::strlen(kAffinityValue) + 2;
  }
  if (by_url.is_set()) {
    bytes += std::strlen("http://") + host.size() + std::strlen("Proxy-Connection: Keep-Alive\r\n");
    const std::string login = by_url.authorization();
    bytes += login.empty() ? 0 : std::strlen("Proxy-Authorization: \r\n") + login.size();
  }
  return static_cast<std::uint32_t>(bytes + std::strlen("Content-Length: \r\n\r\n"));
}

// Empty: fine, and `out` is filled.
std::string parse_one(const std::string& text, const wire::TargetSpec& target, const Proxy& proxy,
                      Frontend& out) {
  const Url url(curl_url());
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0);
  if (code != CURLUE_OK) {
    return fmt::format("{}; write http://host:port/path", curl_url_strerror(code));
  }
  curl_url_set(url.get(), CURLUPART_USER, nullptr, 0);
  curl_url_set(url.get(), CURLUPART_PASSWORD, nullptr, 0);
  curl_url_set(url.get(), CURLUPART_FRAGMENT, nullptr, 0);
  const std::string scheme = url_part(url, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return fmt::format("scheme \"{}\" is not spoken; use http or https", scheme);
  }
  const std::string host = url_part(url, CURLUPART_HOST);
  const std::string port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (host.empty()) {
    return "has no host; write http://host:port/path";
  }
  out.tls = scheme == "https";
  out.url = url_part(url, CURLUPART_URL);
  out.label = fmt::format("{}:{}", host, port);
  const bool default_port = port == (out.tls ? "443" : "80");
  out.head_bytes = head_bytes_of(url, target, default_port ? host : out.label,
                                 proxy.http && !out.tls ? proxy : Proxy{});
  return {};
}

// The text before a user name or password could begin, for messages.
std::string_view without_secrets(std::string_view url) {
  return url.find('@') == std::string_view::npos ? url : std::string_view("(with user info)");
}

bool is_token(std::string_view name) {
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7F || std::strchr("\"(),/:;<=>?@[\\]{}", c) != nullptr) {
      return false;
    }
  }
  return !name.empty();
}

std::string check_header(const wire::Header& header) {
  if (!is_token(header.name)) {
    return fmt::format("header name \"{}\" is not an HTTP token", header.name);
  }
  if (header.value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
    return fmt::format("header {}: its value holds a line break or NUL; remove it", header.name);
  }
  // What the transport writes itself, or what would change how the request is framed.
  for (const char* own : {"Host", "Content-Length", "Transfer-Encoding", "Expect"}) {
    if (curl_strequal(header.name.c_str(), own) != 0) {
      return fmt::format("header {} belongs to the transport; remove it", header.name);
    }
  }
  return {};
}

}  // namespace

base::Result<std::vector<Frontend>> parse_frontends(const wire::TargetSpec& target) {
  std::vector<Frontend> frontends;
  std::string problems;
  const auto note = [&problems](const std::string& text) {
    problems += problems.empty() ? text : "; " + text;
  };
  if (target.urls.empty()) {
    note("no endpoint URL given; name at least one");
  }
  if (target.urls.size() > 0xFFFF) {
    note(fmt::format("{} endpoint URLs; at most 65535 are served", target.urls.size()));
  }
  const auto proxy = parse_proxy(target.proxy);
  if (!proxy) {
    note(proxy.error().message);
  }
  for (std::size_t i = 0; i < target.urls.size(); ++i) {
    Frontend frontend;
    const std::string problem =
        parse_one(target.urls[i], target, proxy ? *proxy : Proxy{}, frontend);
    if (!problem.empty()) {
      note(fmt::format("endpoint {} \"{}\": {}", i, without_secrets(target.urls[i]), problem));
    }
    frontends.push_back(std::move(frontend));
  }
  for (const auto& header : target.headers) {
    const std::string problem = check_header(header);
    if (!problem.empty()) {
      note(problem);
    }
  }
  if (!target.affinity_header.empty()) {
    const std::string problem = check_header({target.affinity_header, ""});
    if (!problem.empty()) {
      note(problem);
    }
  }
  for (const auto& name : target.routing_headers) {
    const std::string problem = check_header({name, ""});
    if (!problem.empty()) {
      note(problem);
    }
  }
  if (!problems.empty()) {
    return base::fail(base::ExitCode::kSetup, problems);
  }
  return frontends;
}

}  // namespace tutti::target
