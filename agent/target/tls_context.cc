#include "agent/target/tls_context.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <utility>

#include "agent/target/tls_session.h"
#include "common/base/check.h"

namespace tutti::target {
namespace {

constexpr std::size_t kRecordBytes = std::size_t{17} << 10;
constexpr std::size_t kGatherBytes = std::size_t{64} << 10;

std::string newest_error() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_peek_last_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

}  // namespace

TlsContext::TlsContext(const TlsTrust& trust, std::vector<std::string> hosts,
                       std::size_t read_bytes)
    : context_(SSL_CTX_new(TLS_client_method())),
      hosts_(std::move(hosts)),
      newest_(hosts_.size(), nullptr),
      // A read may complete a record most of which came before.
      plain_(read_bytes + kRecordBytes),
      gather_(kGatherBytes) {
  TUTTI_CHECK(context_ != nullptr);
  constexpr std::array<unsigned char, 9> kHttp11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  TUTTI_CHECK(SSL_CTX_set_alpn_protos(context_, kHttp11.data(), kHttp11.size()) == 0);
  // An open stream between two tokens holds no record buffers: they are most of a connection's
  // memory.
  SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION);
  // The newest session of a frontend is kept here; OpenSSL's own cache of clients is never asked.
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context_, TlsSession::on_new_session);
  SSL_CTX_set_verify(context_, trust.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (trust.verify) {
    load_trust(trust);
  }
  ERR_clear_error();
}

TlsContext::~TlsContext() {
  for (ssl_session_st* session : newest_) {
    SSL_SESSION_free(session);
  }
  SSL_CTX_free(context_);
}

void TlsContext::load_trust(const TlsTrust& trust) {
  const curl_version_info_data* curl = curl_version_info(CURLVERSION_NOW);
  if (!trust.ca_file.empty()) {
    if (SSL_CTX_load_verify_file(context_, trust.ca_file.c_str()) != 1) {
      problem_ = fmt::format(
          "SSL_CERT_FILE \"{}\" holds no certificates that can be read ({}); name a PEM file, or "
          "unset it",
          trust.ca_file, newest_error());
    }
  } else if (curl->cainfo == nullptr || SSL_CTX_load_verify_file(context_, curl->cainfo) != 1) {
    SSL_CTX_set_default_verify_paths(context_);
  }
  if (curl->capath != nullptr) {
    SSL_CTX_load_verify_dir(context_, curl->capath);
  }
}

void TlsContext::keep(std::uint16_t frontend, ssl_session_st* session) {
  SSL_SESSION_free(std::exchange(newest_[frontend], session));
}

}  // namespace tutti::target
