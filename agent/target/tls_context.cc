#include "agent/target/tls_context.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <array>
#include <memory>
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

struct X509Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using X509Handle = std::unique_ptr<X509, X509Free>;
using BioHandle = std::unique_ptr<BIO, BioFree>;

BioHandle bio_of(std::string_view pem) {
  BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  TUTTI_CHECK(bio != nullptr);
  return bio;
}

// OpenSSL would ask the terminal.
int no_passphrase(char*, int, int, void*) { return 0; }

std::vector<X509Handle> certificates_of(std::string_view pem) {
  std::vector<X509Handle> found;
  const BioHandle bio = bio_of(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) {
    found.emplace_back(next);
  }
  return found;  // the error that ended it is the caller's to name or clear
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
  if (!trust.client_cert_pem.empty() && problem_.empty()) {
    load_client(trust);
  }
  ERR_clear_error();
}

TlsContext::~TlsContext() {
  for (ssl_session_st* session : newest_) {
    SSL_SESSION_free(session);
  }
  SSL_CTX_free(context_);
}

// What the run itself names is trusted and nothing else.
void TlsContext::load_own_certificates(std::string_view pem) {
  const std::vector<X509Handle> certificates = certificates_of(pem);
  for (const X509Handle& each : certificates) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), each.get());
  }
  if (certificates.empty()) {
    problem_ = fmt::format("ca_file holds no certificates that can be read ({})", newest_error());
  }
}

void TlsContext::load_client(const TlsTrust& trust) {
  const std::vector<X509Handle> chain = certificates_of(trust.client_cert_pem);
  const BioHandle bio = bio_of(trust.client_key_pem);
  const std::unique_ptr<EVP_PKEY, KeyFree> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (chain.empty() || key == nullptr) {
    problem_ =
        fmt::format("{} holds no {} that can be read ({})",
                    chain.empty() ? "client_cert_file" : "client_key_file",
                    chain.empty() ? "certificate" : "key without a passphrase", newest_error());
    return;
  }
  bool fits = SSL_CTX_use_certificate(context_, chain.front().get()) == 1 &&
              SSL_CTX_use_PrivateKey(context_, key.get()) == 1;
  for (std::size_t i = 1; i < chain.size() && fits; ++i) {
    fits = SSL_CTX_add1_chain_cert(context_, chain[i].get()) == 1;
  }
  if (!fits) {
    problem_ =
        fmt::format("client_key_file is not the key of client_cert_file ({})", newest_error());
  }
}

void TlsContext::load_trust(const TlsTrust& trust) {
  if (!trust.ca_pem.empty()) {
    load_own_certificates(trust.ca_pem);
    return;
  }
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
