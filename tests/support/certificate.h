#pragma once

// A self-signed certificate made on the spot, for TLS servers in tests.

#include <string>

struct ssl_ctx_st;

namespace tutti::support {

struct Certificate {
  std::string names = "IP:127.0.0.1";  // subjectAltName, as OpenSSL's config spells it
  long good_from_s = -3600;            // from now
  long good_until_s = 86'400;
  // ScriptedServer: serves only those with a certificate in this PEM file.
  std::string clients_file{};
};

// Gives it to a server's context, and writes it as PEM to a file, unless its name is empty; the key
// too, to `key_file`.
void make_certificate(const Certificate& shape, ssl_ctx_st* context, const std::string& pem_file,
                      const std::string& key_file = {});

}  // namespace tutti::support
