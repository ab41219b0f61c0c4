#include "agent/target/tls_session.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace tutti::target {
namespace {

constexpr int kOwner = 0;  // OpenSSL's slot for the application

// libcurl leaves errors in this thread's queue, and a stale one would be taken for ours.
void forget_errors() {
  if (ERR_peek_error() != 0) {
    ERR_clear_error();
  }
}

std::string_view newest_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "no reason known";
}

}  // namespace

// The rim: OpenSSL reads what the call was given and writes to what waits to be sent.
struct TlsCallbacks {
  static int read(BIO* bio, char* to, int size) {
    auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (self.in_.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const std::size_t n = std::min(self.in_.size(), static_cast<std::size_t>(size));
    std::memcpy(to, self.in_.data(), n);
    self.in_.remove_prefix(n);
    return static_cast<int>(n);
  }
  static int write(BIO* bio, const char* from, int size) {
    auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    self.out_.append(from, static_cast<std::size_t>(size));
    return size;
  }
  static long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO* make(TlsSession& session) {
    static BIO_METHOD* const kRim = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tutti rim");
      TUTTI_CHECK(made != nullptr);
      BIO_meth_set_read(made, read);
      BIO_meth_set_write(made, write);
      BIO_meth_set_ctrl(made, control);
      return made;
    }();
    BIO* bio = BIO_new(kRim);
    if (bio != nullptr) {
      BIO_set_data(bio, &session);
      BIO_set_init(bio, 1);
    }
    return bio;
  }
};

int TlsSession::on_new_session(ssl_st* ssl, ssl_session_st* session) {
  const auto& self = *static_cast<TlsSession*>(SSL_get_ex_data(ssl, kOwner));
  self.context_->keep(self.frontend_, session);
  return 1;  // the reference is ours now
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

bool TlsSession::open(TlsContext& context, std::uint16_t frontend) {
  TUTTI_CHECK(ssl_ == nullptr);
  context_ = &context;
  frontend_ = frontend;
  secured_ = false;
  broken_ = false;
  request_bytes = 0;
  sent_of_request_ = 0;
  problem_ = context.problem();
  if (!problem_.empty()) {
    return false;
  }
  ssl_ = SSL_new(context.context_);
  BIO* bio = ssl_ != nullptr ? TlsCallbacks::make(*this) : nullptr;
  if (bio == nullptr) {
    problem_ = "OpenSSL has no memory left";
    close();
    return false;
  }
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_ex_data(ssl_, kOwner, this);
  SSL_set_connect_state(ssl_);
  const std::string& host = context.hosts_[frontend];
  X509_VERIFY_PARAM* checks = SSL_get0_param(ssl_);
  if (X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str()) != 1) {
    // A name may be written with the dot of the root, which no certificate has.
    const bool dot = !host.empty() && host.back() == '.';
    std::string name = host.substr(0, host.size() - (dot ? 1 : 0));
    X509_VERIFY_PARAM_set1_host(checks, name.c_str(), name.size());
    SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  }
  if (context.newest_[frontend] != nullptr) {
    SSL_set_session(ssl_, context.newest_[frontend]);
  }
  return true;
}

void TlsSession::close() {
  SSL_free(std::exchange(ssl_, nullptr));
  if (!out_.empty()) {
    mark_sent(out_.size() - sent_);
  }
}

// A buffer to write into, unless one with something in it is held.
void TlsSession::lend() {
  if (out_.empty()) {
    out_.swap(context_->spare_);
  }
}

void TlsSession::mark_sent(std::size_t bytes) {
  sent_ += bytes;
  sent_of_request_ += bytes;
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
    out_.swap(context_->spare_);
  }
}

std::string TlsSession::handshake_problem() {
  const long verdict = SSL_get_verify_result(ssl_);
  const bool of_certificate =
      ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  if (!of_certificate || verdict == X509_V_OK) {
    return fmt::format("TLS handshake failed: {}", newest_reason());
  }
  std::string text = fmt::format("the server's certificate is not accepted: {}",
                                 X509_verify_cert_error_string(verdict));
  if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    text += fmt::format(", it is not for \"{}\"", context_->hosts_[frontend_]);
  } else if (verdict != X509_V_ERR_CERT_HAS_EXPIRED && verdict != X509_V_ERR_CERT_NOT_YET_VALID) {
    text += "; SSL_CERT_FILE can name who else is to be trusted";
  }
  return text;
}

TlsSession::Shaking TlsSession::handshake(std::string_view cipher, std::string_view& rest) {
  lend();
  forget_errors();
  in_ = cipher;
  const int rc = SSL_do_handshake(ssl_);
  rest = std::exchange(in_, {});
  Shaking shaking = Shaking::kDone;
  if (rc == 1) {
    secured_ = true;
  } else if (SSL_get_error(ssl_, rc) == SSL_ERROR_WANT_READ) {
    shaking = Shaking::kWaits;
  } else {
    problem_ = handshake_problem();
    broken_ = true;
    shaking = Shaking::kFailed;
    ERR_clear_error();
  }
  mark_sent(0);
  return shaking;
}

TlsSession::Reading TlsSession::decrypt(std::string_view cipher, std::string_view& plain) {
  lend();
  forget_errors();
  in_ = cipher;
  std::vector<char>& to = context_->plain_;
  std::size_t size = 0;
  Reading reading = Reading::kMore;
  while (true) {
    const int room = static_cast<int>(std::min<std::size_t>(to.size() - size, INT_MAX));
    const int n = room > 0 ? SSL_read(ssl_, to.data() + size, room) : 0;
    if (n > 0) {
      size += static_cast<std::size_t>(n);
      // Nothing is read ahead: another call could only say that it wants more.
      if (in_.empty() && SSL_pending(ssl_) == 0) {
        break;
      }
    } else {
      const int why = SSL_get_error(ssl_, n);
      if (why == SSL_ERROR_ZERO_RETURN) {
        reading = Reading::kClosed;
      } else if (why != SSL_ERROR_WANT_READ || room == 0) {
        problem_ = fmt::format("TLS: {}", newest_reason());
        broken_ = true;
        reading = Reading::kBroken;
        ERR_clear_error();
      }
      break;
    }
  }
  in_ = {};
  plain = {to.data(), size};
  mark_sent(0);
  return reading;
}

TlsSession::Writing TlsSession::encrypt(std::span<const iovec> parts, std::size_t& taken) {
  lend();
  forget_errors();
  std::vector<char>& gather = context_->gather_;
  std::size_t size = 0;
  for (const iovec& part : parts) {
    const std::size_t n = std::min(part.iov_len, gather.size() - size);
    std::memcpy(gather.data() + size, part.iov_base, n);
    size += n;
  }
  Writing writing = Writing::kDone;
  const int n = SSL_write(ssl_, gather.data(), static_cast<int>(size));
  taken = n > 0 ? static_cast<std::size_t>(n) : 0;
  if (n <= 0) {
    // In the middle of a message of the peer's handshake it must be read first.
    const bool waits = SSL_get_error(ssl_, n) == SSL_ERROR_WANT_READ;
    writing = waits ? Writing::kWaits : Writing::kBroken;
    if (!waits) {
      problem_ = fmt::format("TLS: {}", newest_reason());
      broken_ = true;
    }
    ERR_clear_error();
  }
  mark_sent(0);
  return writing;
}

// Without it OpenSSL takes the session for an interrupted one and will not resume it.
void TlsSession::say_goodbye() {
  if (!secured_ || broken_) {
    return;
  }
  if (!out_.empty()) {
    SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN);
    return;
  }
  lend();
  SSL_shutdown(ssl_);
  forget_errors();
  mark_sent(0);
}

}  // namespace tutti::target
