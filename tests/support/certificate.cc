#include "tests/support/certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <utility>

#include "common/base/check.h"

namespace tutti::support {

void make_certificate(const Certificate& shape, ssl_ctx_st* context, const std::string& pem_file,
                      const std::string& key_file) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), shape.good_from_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate), shape.good_until_s);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* text = reinterpret_cast<const unsigned char*>("tutti test");
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  for (const auto& [nid, value] : {std::pair{NID_subject_alt_name, shape.names.c_str()},
                                   std::pair{NID_basic_constraints, "critical,CA:TRUE"}}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  TUTTI_CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
  if (context != nullptr) {
    TUTTI_CHECK(SSL_CTX_use_certificate(context, certificate) == 1);
    TUTTI_CHECK(SSL_CTX_use_PrivateKey(context, key) == 1);
  }
  if (!pem_file.empty()) {
    FILE* file = fopen(pem_file.c_str(), "we");
    TUTTI_CHECK(file != nullptr && PEM_write_X509(file, certificate) == 1);
    fclose(file);
  }
  if (!key_file.empty()) {
    FILE* file = fopen(key_file.c_str(), "we");
    TUTTI_CHECK(file != nullptr &&
                PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
    fclose(file);
  }
  X509_free(certificate);
  EVP_PKEY_free(key);
}

}  // namespace tutti::support
