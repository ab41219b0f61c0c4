// Rules of `distributed` on how frontends are reached: proxy, HTTP version, login, headers,
// certificates; and which transport that takes. Messages never hold a value: most are secrets.

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "common/spec/bind.h"
#include "common/spec/coerce.h"
#include "common/spec/redact.h"
#include "common/spec/rules.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kPlaceholder =
    "holds the placeholder of a written config; put the secret back, best as \"${NAME}\"";

bool is_placeholder(std::string_view text) {
  return text.find(kRedacted) != std::string_view::npos;
}

// Of SCHEME://[USER[:PASSWORD]@]HOST:PORT[/]; empty: it is one.
std::string proxy_problem(const std::string& url) {
  constexpr std::string_view kWanted =
      "must look like http://HOST:PORT or http://USER:PASSWORD@…; "
      "https, socks5 and socks5h are the other schemes";
  constexpr std::array<std::string_view, 4> kSchemes{"http", "https", "socks5", "socks5h"};
  const std::size_t colon = url.find("://");
  if (colon == std::string::npos ||
      std::find(kSchemes.begin(), kSchemes.end(), url.substr(0, colon)) == kSchemes.end()) {
    return std::string(kWanted);
  }
  if (is_placeholder(url)) {
    return std::string(kPlaceholder);
  }
  std::string_view rest = std::string_view(url).substr(colon + 3);
  rest.remove_suffix(rest.ends_with('/') ? 1 : 0);
  const std::size_t at = rest.rfind('@');
  const std::string_view authority = at == std::string_view::npos ? rest : rest.substr(at + 1);
  if (authority.find_first_of("/?#") != std::string_view::npos) {
    return "must end after its port; percent-encode such signs in user and password";
  }
  const std::size_t port_at = authority.rfind(':');
  if (port_at == std::string_view::npos || port_at == 0) {
    return fmt::format("has no {}; {}", port_at == 0 ? "host" : "port", kWanted);
  }
  const std::string_view digits = authority.substr(port_at + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  return whole && port >= 1 && port <= 65535 ? "" : "has no port from 1 to 65535 after its host";
}

class ReachRules {
 public:
  ReachRules(const Tree& tree, const Config& config, Findings& findings)
      : tree_(tree), config_(config), findings_(findings) {
    for (const std::string& url : config.endpoint_config.endpoints) {
      plain_ = plain_ || url.starts_with("http://");
      tls_ = tls_ || url.starts_with("https://");
    }
    tls_known_ = findings.is_clean("endpoint_config.endpoints");
  }

  void check() {
    check_proxy();
    check_version();
    check_login();
    check_headers();
    check_certificates();
  }

 private:
  const Distributed& ours() const { return config_.distributed; }
  bool two() const { return ours().http_version == HttpVersion::kHttp2; }
  void wrong(const std::string& field, std::string_view problem) {
    const std::string path = "distributed." + field;
    findings_.wrong_at(place_of(tree_, path), path, std::string(problem));
  }

  void check_proxy() {
    if (!ours().proxy) {
      return;
    }
    if (const std::string problem = proxy_problem(*ours().proxy); !problem.empty()) {
      wrong("proxy", problem);
    }
    if (ours().transport == base::Way::kDirect) {
      wrong("proxy", "needs transport multi or auto: direct opens its connections itself");
    }
    if (two() && plain_ && ours().proxy->starts_with("http")) {
      wrong("proxy",
            "with http_version http2 reaches https endpoints only, as an http proxy reads plain "
            "requests itself: use socks5, https endpoints or http1.1");
    }
  }

  void check_version() {
    if (two() && ours().transport == base::Way::kDirect) {
      wrong("http_version", "http2 needs transport multi or auto: direct frames HTTP/1.1");
    }
    if (!two() && ours().streams_per_connection != Distributed{}.streams_per_connection) {
      wrong("streams_per_connection", "is of http_version http2 only: set that, or leave it out");
    }
  }

  void check_login() {
    if (!ours().user_password) {
      return;
    }
    const std::string& login = *ours().user_password;
    if (is_placeholder(login)) {
      wrong("user_password", kPlaceholder);
    } else if (login.find(':') == std::string::npos || has_line_end(login)) {
      wrong("user_password", "must look like USER:PASSWORD, in one line");
    }
    if (has_key()) {
      wrong("user_password",
            "and endpoint_config.api_key would be two Authorization headers: "
            "leave one out");
    }
  }

  bool has_key() const {
    const auto& key = config_.endpoint_config.api_key;
    return key.has_value() && !key->empty();
  }
  static bool has_line_end(std::string_view text) {
    return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
  }

  std::string name_problem(const std::string& name, std::size_t index) const {
    if (strcasecmp(name.c_str(), "Authorization") == 0) {
      return has_key() || ours().user_password
                 ? "is sent already, from api_key or user_password: leave one out"
                 : "";
    }
    std::string problem = header_name_problem(name);
    const auto same = [&name](const std::string& other) {
      return strcasecmp(name.c_str(), other.c_str()) == 0;
    };
    const auto& all = ours().headers.entries;
    const bool twice = std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(index),
                                   [&](const Tree::Entry& before) { return same(before.key); });
    const bool routed =
        std::any_of(config_.datasets.begin(), config_.datasets.end(), [&](const DatasetSpec& set) {
          const auto& routing = set.agentic_inference.routing_headers;
          return set.agentic_inference.present && std::any_of(routing.begin(), routing.end(), same);
        });
    if (problem.empty() && (twice || routed || same(ours().affinity_header.value_or("")))) {
      problem = "is sent already, by headers, affinity_header or routing_headers: leave one out";
    }
    return problem;
  }

  void check_headers() {
    const auto& all = ours().headers.entries;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string field = "headers." + all[i].key;
      const auto value = to_text(all[i].value);
      if (const std::string problem = name_problem(all[i].key, i); !problem.empty()) {
        wrong(field, problem);
      } else if (!value || has_line_end(*value)) {
        wrong(field, "must be text, in quotes and in one line");
      } else if (is_placeholder(*value)) {
        wrong(field, kPlaceholder);
      }
    }
  }

  void check_certificates() {
    const bool insecure = config_.settings.client.insecure;
    const bool tls_proxy = ours().proxy && ours().proxy->starts_with("https://");
    if (ours().ca_file && insecure) {
      wrong("ca_file", "would not be read, as client.insecure checks nothing: leave one out");
    } else if (ours().ca_file && tls_known_ && !tls_ && !tls_proxy) {
      wrong("ca_file", "has nothing to check: no endpoint is https; leave it out");
    }
    if (ours().client_cert_file.has_value() != ours().client_key_file.has_value()) {
      const bool cert = ours().client_cert_file.has_value();
      wrong(cert ? "client_cert_file" : "client_key_file",
            cert ? "needs client_key_file: the certificate's key, which may be in the same file"
                 : "needs client_cert_file: the key's certificate");
    } else if (ours().client_cert_file && tls_known_ && !tls_) {
      wrong("client_cert_file", "would not be shown: no endpoint is https; leave it out");
    }
  }

  const Tree& tree_;
  const Config& config_;
  Findings& findings_;
  bool plain_ = false;
  bool tls_ = false;
  bool tls_known_ = false;
};

}  // namespace

void check_reach(const Tree& tree, Config& config, Findings& findings) {
  ReachRules(tree, config, findings).check();
  Distributed& distributed = config.distributed;
  const bool needs_multi = distributed.proxy || distributed.http_version == HttpVersion::kHttp2;
  if (needs_multi && distributed.transport == base::Way::kAuto) {
    distributed.transport = base::Way::kMulti;
  }
}

}  // namespace tutti::spec
