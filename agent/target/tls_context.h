#pragma once

// TlsContext: what the TLS sessions of one worker share: whom to trust, the frontends' names, the
// newest session of each frontend for resumption, and buffers that would be wasted on each of
// thousands. A name is checked against the certificate, and sent as SNI unless it is an address;
// ALPN offers http/1.1 alone. Trust is that of MultiTransport: the run's own certificates, else
// $SSL_CERT_FILE, else the file that libcurl was built with, and its folder of certificates.
// Outlives its sessions. One owner thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct ssl_ctx_st;
struct ssl_session_st;

namespace tutti::target {

class TlsSession;

struct TlsTrust {
  bool verify = true;
  std::string ca_file;                 // instead of the system's, empty: the system's
  std::string_view ca_pem{};           // certificates, before ca_file; empty: none
  std::string_view client_cert_pem{};  // this side's and those above it; empty: none
  std::string_view client_key_pem{};
};

class TlsContext {
 public:
  // `hosts`: by frontend, IPv6 addresses without brackets. Sessions are fed at most `read_bytes` at
  // once.
  TlsContext(const TlsTrust& trust, std::vector<std::string> hosts, std::size_t read_bytes);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Why no session can be opened; empty: they can.
  const std::string& problem() const { return problem_; }

 private:
  friend class TlsSession;

  void load_trust(const TlsTrust& trust);
  void load_own_certificates(std::string_view pem);
  void load_client(const TlsTrust& trust);
  void keep(std::uint16_t frontend, ssl_session_st* session);

  ssl_ctx_st* context_;
  std::vector<std::string> hosts_;
  std::vector<ssl_session_st*> newest_;  // by frontend, null: none yet
  std::vector<char> plain_;              // of the last decrypt()
  std::vector<char> gather_;             // of one encrypt()
  std::string spare_;                    // a buffer for the next session that has bytes to send
  std::string problem_;
};

}  // namespace tutti::target
