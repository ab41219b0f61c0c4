#pragma once

// ScriptedServer: an HTTP/1.1 server on loopback that answers with exactly the bytes, pauses,
// closes and resets a test asks for, one thread per connection; plain or TLS with a certificate
// made on the spot. DeafPort and closed_port() stand for hosts that do not answer. Construct and
// destroy on one thread; counters may be read any time. The answer function runs on connection
// threads.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/certificate.h"

namespace tutti::support {

struct ScriptedRequest {
  std::string head;  // request line and header, with the blank line
  std::string body;
  std::size_t connection = 0;     // number of the connection, from 0
  std::size_t on_connection = 0;  // number of the request on it, from 0
  std::size_t number = 0;         // of all requests, from 0

  // Value of a header, or empty.
  std::string header(const std::string& name) const;
};

struct Step {
  enum class Kind { kSend, kPause, kClose, kReset, kGoodbye, kNewKeys };
  Kind kind = Kind::kSend;
  std::string bytes;
  std::chrono::microseconds pause{0};
};
using Script = std::vector<Step>;

Step send_bytes(std::string bytes);
Step pause_for(std::chrono::microseconds time);
Step close_now();  // FIN
Step reset_now();  // RST
Step goodbye();    // as close_now(), but TLS says close_notify before
Step new_keys();   // TLS 1.3: a key update that asks for one; plain: nothing

// Whole replies.
std::string json_reply(const std::string& body, int status = 200);
std::string chat_json(const std::string& text);  // body of a non-streamed chat completion
std::string stream_head();                       // 200, text/event-stream, chunked
std::string http_chunk(const std::string& bytes);
std::string last_chunk();
std::string content_event(const std::string& text);  // "data: {…}\n\n"
std::string finish_events();                         // finish reason and [DONE]
// A streamed chat completion with one event per word, `gap` apart.
Script stream_script(const std::vector<std::string>& words, std::chrono::microseconds gap = {});

class ScriptedServer {
 public:
  using Answer = std::function<Script(const ScriptedRequest&)>;

  explicit ScriptedServer(Answer answer, bool tls = false, const Certificate& certificate = {});
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer();

  std::uint16_t port() const;
  std::string url() const;  // http(s)://127.0.0.1:port/v1/chat/completions
  // PEM file with the server's own certificate (TLS only).
  std::string certificate_file() const;

  std::size_t connections() const;  // accepted so far
  std::size_t open_connections() const;
  std::vector<std::string> peers() const;  // address each accepted connection came from
  std::size_t requests() const;            // read whole so far
  std::size_t in_flight_max() const;
  std::vector<ScriptedRequest> seen() const;
  // FIN on every connection that waits for a request; waits, 5 s at most, until all of them do.
  void close_idle();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// A port that accepts no connection: a connect to it hangs.
class DeafPort {
 public:
  DeafPort();
  DeafPort(const DeafPort&) = delete;
  DeafPort& operator=(const DeafPort&) = delete;
  ~DeafPort();
  std::string url() const;

 private:
  std::uint16_t port_ = 0;
  std::vector<int> fds_;
};

// A port nobody listens on: a connect to it is refused.
std::uint16_t closed_port();

}  // namespace tutti::support
