#pragma once

// TlsSession: the TLS of one client connection, bytes in, bytes out. It knows no socket: the owner
// feeds it what recvmsg brought, so that kernel stamps stay the owner's, and sends what it has
// to_send(). Hence no call ever blocks or waits to write, and each takes all it is given. What
// arrives without being a reply (session tickets, key updates, warnings) is dealt with inside and
// answered in to_send(). A member of a pooled connection: open() and close() reuse its place; what
// OpenSSL allocates inside is its own. Owned by one worker thread.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "agent/target/tls_context.h"

struct bio_st;
struct ssl_st;

namespace tutti::target {

class TlsSession {
 public:
  enum class Shaking : std::uint8_t { kWaits, kDone, kFailed };
  enum class Reading : std::uint8_t {
    kMore,
    kClosed,  // the peer's close_notify: nothing follows, and nothing was cut off
    kBroken   // a fatal alert or a record that is none: problem()
  };
  enum class Writing : std::uint8_t {
    kDone,
    kWaits,  // for bytes of the peer; decrypt() them and try again
    kBroken
  };

  TlsSession() = default;
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // A new client session to this frontend. False: problem().
  bool open(TlsContext& context, std::uint16_t frontend);
  bool is_open() const { return ssl_ != nullptr; }
  // Forgets it. What waits to be sent is lost.
  void close();

  // The first call is given nothing. After kDone, `rest` is what belongs to decrypt().
  Shaking handshake(std::string_view cipher, std::string_view& rest);
  // All plain bytes that `cipher` completes, also beside kClosed and kBroken. The view holds until
  // the next decrypt() of any session.
  Reading decrypt(std::string_view cipher, std::string_view& plain);
  // Encrypts from the front of `parts`, at most what one socket buffer takes; `taken` bytes of it.
  Writing encrypt(std::span<const iovec> parts, std::size_t& taken);
  // Adds our close_notify, where one may still be said.
  void say_goodbye();

  std::string_view to_send() const { return std::string_view(out_).substr(sent_); }
  void mark_sent(std::size_t bytes);
  // Bytes marked as sent since note_request().
  bool nothing_sent() const { return sent_of_request_ == 0; }
  void note_request() { sent_of_request_ = 0; }
  // Plain bytes of the request that lie in to_send().
  std::size_t request_bytes = 0;

  const std::string& problem() const { return problem_; }

 private:
  friend class TlsContext;
  friend struct TlsCallbacks;

  static int on_new_session(ssl_st* ssl, ssl_session_st* session);
  void lend();
  std::string handshake_problem();

  ssl_st* ssl_ = nullptr;
  TlsContext* context_ = nullptr;
  std::string_view in_;   // during a call: what it was given
  std::string out_;       // borrowed from the context while it holds something
  std::size_t sent_ = 0;  // of out_
  std::size_t sent_of_request_ = 0;
  std::uint16_t frontend_ = 0;
  bool secured_ = false;
  bool broken_ = false;
  std::string problem_;
};

}  // namespace tutti::target
