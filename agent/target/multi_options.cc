// The options of curl's handles that an exchange and a probe have in common: whom to trust, which
// proxy to go through, which HTTP to speak.

#include <algorithm>
#include <climits>

#include "agent/target/exchange.h"

namespace tutti::target {
namespace {

int on_close(void* sockets, curl_socket_t fd) {
  static_cast<SocketSource*>(sockets)->close_socket(fd);
  return 0;
}

// Not copied: the target outlives every handle.
void set_pem(CURL* easy, CURLoption option, const std::string& pem) {
  curl_blob blob{};
  blob.data = const_cast<char*>(pem.data());  // NOLINT: curl reads it only
  blob.len = pem.size();
  blob.flags = CURL_BLOB_NOCOPY;
  curl_easy_setopt(easy, option, &blob);
}

void set_trust(CURL* easy, const ExchangeShared& shared) {
  const wire::TargetSpec& target = *shared.config->target;
  const long peer = target.verify_tls ? 1L : 0L;
  const long host = target.verify_tls ? 2L : 0L;
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, peer);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, host);
  curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, peer);
  curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, host);
  if (!target.ca_pem.empty()) {  // instead of what this host trusts, its folder included
    set_pem(easy, CURLOPT_CAINFO_BLOB, target.ca_pem);
    set_pem(easy, CURLOPT_PROXY_CAINFO_BLOB, target.ca_pem);
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, nullptr);
  } else if (!shared.ca_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, shared.ca_file.c_str());
    curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, shared.ca_file.c_str());
  }
  if (!target.client_cert_pem.empty()) {
    set_pem(easy, CURLOPT_SSLCERT_BLOB, target.client_cert_pem);
    set_pem(easy, CURLOPT_SSLKEY_BLOB, target.client_key_pem);
  }
}

// http_proxy, no_proxy and their kin are not for measured traffic: "" keeps curl from asking.
void set_proxy(CURL* easy, const ExchangeShared& shared) {
  const Proxy& proxy = shared.proxy;
  curl_easy_setopt(easy, CURLOPT_PROXY, proxy.url.c_str());
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
  if (!proxy.is_set()) {
    return;
  }
  if (proxy.has_login()) {
    curl_easy_setopt(easy, CURLOPT_PROXYAUTH, static_cast<long>(CURLAUTH_BASIC));
    curl_easy_setopt(easy, CURLOPT_PROXYUSERNAME, proxy.user.c_str());
    curl_easy_setopt(easy, CURLOPT_PROXYPASSWORD, proxy.password.c_str());
  }
  // The frontend's headers are not the proxy's to see, and what the proxy says to CONNECT is no
  // reply.
  curl_easy_setopt(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

}  // namespace

// Of plain frontends libcurl 7.88 begins HTTP/2 anew for each query that it was told to, also on a
// connection that speaks it already (curl pull request 10643), so only that which opens one is; the
// others take one that stands, and open_socket refuses them another.
void set_streams(CURL* easy, const Frontend& frontend, bool opens) {
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, opens ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                   static_cast<long>(frontend.tls ? CURL_HTTP_VERSION_2TLS
                                     : opens      ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                                                  : CURL_HTTP_VERSION_2_0));
}

void bound_connecting(CURL* easy, const wire::TargetSpec& target, bool bounded) {
  const std::int64_t ms = (target.connect_timeout.ns + 999'999) / 1'000'000;
  // 0 is curl's own 300 s, for which it sets no timer.
  const std::int64_t some = ms > 0 ? std::min<std::int64_t>(ms, INT_MAX) : INT_MAX;
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, bounded ? static_cast<long>(some) : 0L);
}

void configure_handle(CURL* easy, const ExchangeShared& shared) {
  const wire::TargetSpec& target = *shared.config->target;
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_SHARE, shared.share);
  curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);  // one look-up per run, not per minute
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, shared.sockets);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_SSL_ENABLE_ALPN, target.streams_max > 0 ? 1L : 0L);
  set_trust(easy, shared);
  set_proxy(easy, shared);
  // curl compares whole seconds with ">": n stands for "idle for less than n + 1 seconds", 0
  // included.
  const std::int64_t idle_s = (target.idle_connection_max.ns + 999'999'999) / 1'000'000'000;
  curl_easy_setopt(
      easy, CURLOPT_MAXAGE_CONN,
      static_cast<long>(idle_s > 0 ? std::min<std::int64_t>(idle_s - 1, INT_MAX) : INT_MAX));
}

}  // namespace tutti::target
