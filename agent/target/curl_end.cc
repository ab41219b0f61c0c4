#include "agent/target/curl_end.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace tutti::target {
namespace {

constexpr int kProxyWantsLogin = 407;

// curl calls a refused CONNECT a failure to receive.
bool refused_by_proxy(const CurlFacts& facts) {
  return facts.code == CURLE_RECV_ERROR && facts.connect_status >= 300 && !facts.header_seen;
}

}  // namespace

EndKind end_kind_of(const CurlFacts& facts) {
  if (refused_by_proxy(facts)) {
    return EndKind::kConnect;
  }
  switch (facts.code) {
    case CURLE_OK:
      return EndKind::kComplete;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED:
    case CURLE_PROXY:
      return EndKind::kConnect;
    case CURLE_OPERATION_TIMEDOUT:  // no other timeout is given to curl
      return EndKind::kConnectTimeout;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_SHUTDOWN_FAILED:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_USE_SSL_FAILED:
      return EndKind::kTls;
    case CURLE_PARTIAL_FILE:  // FIN inside a counted or chunked body
      return EndKind::kClosed;
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2_STREAM:  // RST_STREAM with an error
    case CURLE_HTTP2:         // frames that make no sense, or a GOAWAY that left no stream
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_ABORTED_BY_CALLBACK:  // our own stop of a second resend
      return EndKind::kReset;
    case CURLE_WRITE_ERROR:  // our own stop of a broken reply
      return facts.header_seen ? EndKind::kClosed : EndKind::kInternal;
    case CURLE_UNSUPPORTED_PROTOCOL:  // a first line that is not HTTP/1.x
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_FILESIZE_EXCEEDED:
      return EndKind::kBadReply;
    default:
      return EndKind::kInternal;
  }
}

std::string end_detail_of(const CurlFacts& facts) {
  std::string_view what = facts.curl_text;
  if (facts.code == CURLE_ABORTED_BY_CALLBACK) {
    what = "two kept connections in a row were closed before any reply byte";
  } else if (what.empty()) {
    what = curl_easy_strerror(static_cast<CURLcode>(facts.code));
  }
  const std::string where = facts.proxy.empty()
                                ? std::string(facts.frontend)
                                : fmt::format("{} through proxy {}", facts.frontend, facts.proxy);
  if (facts.os_error == 0) {
    std::string_view remedy;
    if (refused_by_proxy(facts) && facts.connect_status == kProxyWantsLogin) {
      remedy = "; it wants a user and password: distributed.proxy takes them";
    } else if (facts.prior_knowledge) {
      remedy = "; perhaps it does not speak HTTP/2 without TLS";
    }
    return fmt::format("{}: {}{}", where, what, remedy);
  }
  std::string_view remedy;
  if (facts.os_error == EADDRNOTAVAIL) {
    remedy = "; no local port is free: fewer connections per frontend, or more source addresses";
  } else if (facts.os_error == EPFNOSUPPORT) {
    remedy = "; no source address is of its family, IPv4 or IPv6: add one, or leave all out";
  } else if (facts.os_error == EMFILE || facts.os_error == ENFILE) {
    remedy = "; the open-files limit is reached: raise it, or run more agents";
  }
  return fmt::format("{}: {} ({}){}", where, std::strerror(facts.os_error), what, remedy);
}

bool is_shortage_here(int os_error) {
  switch (os_error) {
    case EADDRNOTAVAIL:
    case EADDRINUSE:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return true;
    default:
      return false;
  }
}

}  // namespace tutti::target
