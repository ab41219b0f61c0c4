#include "tests/support/scripted_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/sys/fd.h"
#include "tests/support/loopback.h"

namespace tutti::support {
namespace {

void make_reset_on_close(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

// ---- bytes -----------------------------------------------------------------------------------

std::string ScriptedRequest::header(const std::string& name) const {
  std::size_t at = head.find("\r\n");
  while (at != std::string::npos && at + 2 < head.size()) {
    const std::size_t begin = at + 2;
    at = head.find("\r\n", begin);
    const std::string line = head.substr(begin, at - begin);
    if (line.size() > name.size() && line[name.size()] == ':' &&
        strncasecmp(line.c_str(), name.c_str(), name.size()) == 0) {
      const std::size_t value = line.find_first_not_of(' ', name.size() + 1);
      return value == std::string::npos ? "" : line.substr(value);
    }
  }
  return "";
}

Step send_bytes(std::string bytes) { return {Step::Kind::kSend, std::move(bytes), {}}; }
Step pause_for(std::chrono::microseconds time) { return {Step::Kind::kPause, "", time}; }
Step close_now() { return {Step::Kind::kClose, "", {}}; }
Step reset_now() { return {Step::Kind::kReset, "", {}}; }
Step goodbye() { return {Step::Kind::kGoodbye, "", {}}; }
Step new_keys() { return {Step::Kind::kNewKeys, "", {}}; }

std::string json_reply(const std::string& body, int status) {
  return fmt::format(
      "HTTP/1.1 {} Scripted\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      status, body.size(), body);
}

std::string chat_json(const std::string& text) {
  return fmt::format(
      R"({{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,)"
      R"("message":{{"role":"assistant","content":"{}"}},"finish_reason":"stop"}}]}})",
      text);
}

std::string stream_head() {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
         "Transfer-Encoding: chunked\r\n\r\n";
}

std::string http_chunk(const std::string& bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string last_chunk() { return "0\r\n\r\n"; }

std::string content_event(const std::string& text) {
  return fmt::format(
      "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}},"
      "\"finish_reason\":null}}]}}\n\n",
      text);
}

std::string finish_events() {
  return "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"
         "\n\ndata: [DONE]\n\n";
}

Script stream_script(const std::vector<std::string>& words, std::chrono::microseconds gap) {
  Script script{send_bytes(stream_head())};
  for (const auto& word : words) {
    if (gap.count() > 0) {
      script.push_back(pause_for(gap));
    }
    script.push_back(send_bytes(http_chunk(content_event(word))));
  }
  script.push_back(send_bytes(http_chunk(finish_events()) + last_chunk()));
  return script;
}

// ---- server ----------------------------------------------------------------------------------

struct ScriptedServer::Inside {
  Answer answer;
  bool tls = false;
  SSL_CTX* context = nullptr;
  std::string pem_file;
  sys::Fd listener;
  std::uint16_t port = 0;
  std::thread acceptor;
  std::atomic<bool> stopping{false};
  std::atomic<std::size_t> in_flight{0};

  mutable std::mutex mutex;  // what follows
  std::map<int, bool> open;  // fd → waits for a request
  std::vector<std::thread> threads;
  std::vector<ScriptedRequest> seen;
  std::size_t connections = 0;
  std::vector<std::string> peers;
  std::size_t in_flight_max = 0;

  struct Connection {
    int fd = -1;
    SSL* ssl = nullptr;
    std::string input;
    std::size_t number = 0;

    bool read_more() {
      char buffer[16384];
      const auto n = ssl != nullptr ? SSL_read(ssl, buffer, sizeof buffer)
                                    : static_cast<int>(recv(fd, buffer, sizeof buffer, 0));
      if (n <= 0) {
        return false;
      }
      input.append(buffer, static_cast<std::size_t>(n));
      return true;
    }
    bool write_all(const std::string& bytes) {
      std::size_t done = 0;
      while (done < bytes.size()) {
        const auto left = bytes.size() - done;
        const auto n = ssl != nullptr
                           ? SSL_write(ssl, bytes.data() + done, static_cast<int>(left))
                           : static_cast<int>(send(fd, bytes.data() + done, left, MSG_NOSIGNAL));
        if (n <= 0) {
          return false;
        }
        done += static_cast<std::size_t>(n);
      }
      return true;
    }
  };

  void accept_loop();
  void serve(int fd, std::size_t number);
  bool read_request(Connection& connection, ScriptedRequest& request);
  bool play(Connection& connection, const Script& script);
  void note_idle(int fd, bool idle) {
    const std::lock_guard lock(mutex);
    open[fd] = idle;
  }
};

void ScriptedServer::Inside::accept_loop() {
  while (true) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const int fd =
        accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC);
    if (fd < 0) {
      return;
    }
    const std::lock_guard lock(mutex);
    if (stopping) {
      ::close(fd);
      return;
    }
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    open[fd] = true;
    threads.emplace_back([this, fd, number = connections] { serve(fd, number); });
    ++connections;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &from.sin_addr, text, sizeof text);
    peers.emplace_back(text);
  }
}

bool ScriptedServer::Inside::read_request(Connection& connection, ScriptedRequest& request) {
  std::size_t head_end = std::string::npos;
  while ((head_end = connection.input.find("\r\n\r\n")) == std::string::npos) {
    if (!connection.read_more()) {
      return false;
    }
  }
  head_end += 4;
  request.head = connection.input.substr(0, head_end);
  const std::string length = request.header("Content-Length");
  const std::size_t body = length.empty() ? 0 : std::stoul(length);
  while (connection.input.size() < head_end + body) {
    if (!connection.read_more()) {
      return false;
    }
  }
  request.body = connection.input.substr(head_end, body);
  connection.input.erase(0, head_end + body);
  return true;
}

// False: the connection is over.
bool ScriptedServer::Inside::play(Connection& connection, const Script& script) {
  for (const auto& step : script) {
    switch (step.kind) {
      case Step::Kind::kSend:
        if (!connection.write_all(step.bytes)) {
          return false;
        }
        break;
      case Step::Kind::kPause: {
        // In slices, so that a stopping server does not wait for a stalled script.
        const auto until = std::chrono::steady_clock::now() + step.pause;
        while (!stopping && std::chrono::steady_clock::now() < until) {
          std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(
              until - std::chrono::steady_clock::now(), std::chrono::milliseconds(20)));
        }
        break;
      }
      case Step::Kind::kReset:
        make_reset_on_close(connection.fd);
        return false;
      case Step::Kind::kGoodbye:
        if (connection.ssl != nullptr) {
          SSL_shutdown(connection.ssl);
        }
        return false;
      case Step::Kind::kNewKeys:
        if (connection.ssl != nullptr) {
          SSL_key_update(connection.ssl, SSL_KEY_UPDATE_REQUESTED);
          SSL_do_handshake(connection.ssl);
        }
        break;
      case Step::Kind::kClose:
        return false;
    }
  }
  return true;
}

void ScriptedServer::Inside::serve(int fd, std::size_t number) {
  Connection connection;
  connection.fd = fd;
  connection.number = number;
  bool good = true;
  if (tls) {
    connection.ssl = SSL_new(context);
    SSL_set_fd(connection.ssl, fd);
    good = SSL_accept(connection.ssl) == 1;
  }
  ScriptedRequest request;
  for (std::size_t n = 0; good && !stopping; ++n) {
    note_idle(fd, true);
    good = read_request(connection, request);
    if (!good) {
      break;
    }
    request.connection = number;
    request.on_connection = n;
    note_idle(fd, false);
    const std::size_t now = ++in_flight;
    {
      const std::lock_guard lock(mutex);
      request.number = seen.size();
      seen.push_back(request);
      in_flight_max = std::max(in_flight_max, now);
    }
    const Script script = answer(request);
    // Over before its last bytes leave: the client may send the next query the moment it has them.
    const bool last_sends = !script.empty() && script.back().kind == Step::Kind::kSend;
    good = play(connection, last_sends ? Script(script.begin(), script.end() - 1) : script);
    --in_flight;
    good = good && (!last_sends || connection.write_all(script.back().bytes));
  }
  if (connection.ssl != nullptr) {
    SSL_free(connection.ssl);
  }
  const std::lock_guard lock(mutex);
  open.erase(fd);
  ::close(fd);
}

ScriptedServer::ScriptedServer(Answer answer, bool tls, const Certificate& certificate)
    : inside_(std::make_unique<Inside>()) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  inside_->answer = std::move(answer);
  inside_->tls = tls;
  inside_->listener = sys::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  inside_->port = bind_loopback(inside_->listener.get());
  TUTTI_CHECK(listen(inside_->listener.get(), 1024) == 0);
  if (tls) {
    inside_->context = SSL_CTX_new(TLS_server_method());
    inside_->pem_file = fmt::format("/tmp/tutti-test-{}-{}.pem", getpid(), inside_->port);
    make_certificate(certificate, inside_->context, inside_->pem_file);
    if (!certificate.clients_file.empty()) {
      TUTTI_CHECK(SSL_CTX_load_verify_file(inside_->context, certificate.clients_file.c_str()) ==
                  1);
      SSL_CTX_set_verify(inside_->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                         nullptr);
      const unsigned char name[] = "tutti test";
      SSL_CTX_set_session_id_context(inside_->context, name, sizeof name);
    }
  }
  inside_->acceptor = std::thread([this] { inside_->accept_loop(); });
}

ScriptedServer::~ScriptedServer() {
  inside_->stopping = true;
  shutdown(inside_->listener.get(), SHUT_RDWR);
  inside_->acceptor.join();
  {
    const std::lock_guard lock(inside_->mutex);
    for (const auto& [fd, idle] : inside_->open) {
      shutdown(fd, SHUT_RDWR);
    }
  }
  for (auto& thread : inside_->threads) {
    thread.join();
  }
  if (inside_->context != nullptr) {
    SSL_CTX_free(inside_->context);
    unlink(inside_->pem_file.c_str());
  }
}

std::uint16_t ScriptedServer::port() const { return inside_->port; }

std::string ScriptedServer::url() const {
  return fmt::format("{}://127.0.0.1:{}/v1/chat/completions", inside_->tls ? "https" : "http",
                     inside_->port);
}

std::string ScriptedServer::certificate_file() const { return inside_->pem_file; }

std::size_t ScriptedServer::connections() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->connections;
}

std::vector<std::string> ScriptedServer::peers() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->peers;
}

std::size_t ScriptedServer::open_connections() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->open.size();
}

std::size_t ScriptedServer::requests() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->seen.size();
}

std::size_t ScriptedServer::in_flight_max() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->in_flight_max;
}

std::vector<ScriptedRequest> ScriptedServer::seen() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->seen;
}

void ScriptedServer::close_idle() {
  // A client has its reply a moment before the thread that sent it waits for the next request.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const auto busy = [this] {
    const std::lock_guard lock(inside_->mutex);
    return std::any_of(inside_->open.begin(), inside_->open.end(),
                       [](const auto& each) { return !each.second; });
  };
  while (busy() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::lock_guard lock(inside_->mutex);
  for (const auto& [fd, idle] : inside_->open) {
    if (idle) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

// ---- hosts that do not answer ----------------------------------------------------------------

DeafPort::DeafPort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  port_ = bind_loopback(listener);
  TUTTI_CHECK(listen(listener, 0) == 0);
  fds_.push_back(listener);
  // Fill the accept queue: from then on the kernel drops every SYN.
  const sockaddr_in address = loopback(port_);
  for (int i = 0; i < 4; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    [[maybe_unused]] const int rc =
        connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    fds_.push_back(fd);
  }
  usleep(20'000);
}

DeafPort::~DeafPort() {
  for (const int fd : fds_) {
    ::close(fd);
  }
}

std::string DeafPort::url() const {
  return fmt::format("http://127.0.0.1:{}/v1/chat/completions", port_);
}

std::uint16_t closed_port() {
  const sys::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return bind_loopback(fd.get());
}

}  // namespace tutti::support
