// Bytes in and out of a connection, and requests out of bytes.

#include <algorithm>

#include "tests/mock_llm/server.h"

namespace tutti::mock_llm {
namespace {

constexpr std::size_t kBacklogMax = 256 << 10;     // pipelined bytes kept per connection
constexpr std::size_t kHeldBytesMax = 1ULL << 30;  // partial requests of all connections
constexpr int kTlsReadsPerTurn = 16;

bool is_busy(Stage stage) { return stage != Stage::kIdle && stage != Stage::kLingering; }

}  // namespace

Side& Server::side(int fd) {
  Slot& s = slot(fd);
  if (s.side == nullptr) {
    s.side = std::make_unique<Side>();
  }
  return *s.side;
}

void Server::drop_reader(int fd) {
  Slot& s = slot(fd);
  if (s.side != nullptr) {
    held_bytes_ -= s.side->held_bytes;
    s.side->held_bytes = 0;
    s.side->reader.reset();
  }
}

void Server::on_readable(int fd) {
  // A plain socket is read once a turn: the set is level-triggered, and nobody starves. OpenSSL may
  // hold decrypted bytes that epoll knows nothing of, so it is read until it has no more.
  TlsSession* tls = slot(fd).side ? slot(fd).side->tls.get() : nullptr;
  for (int i = 0; i < (tls != nullptr ? kTlsReadsPerTurn : 1); ++i) {
    const IoResult got = SocketCalls::receive(fd, tls, read_buffer_.data(), read_buffer_.size());
    if (got.io == Io::kBlocked) {
      return;
    }
    if (got.io != Io::kDone) {
      drop(fd, is_busy(slot(fd).stage));
      return;
    }
    facts_.received_bytes += got.bytes;
    if (!on_bytes(fd, {read_buffer_.data(), got.bytes})) {
      return;
    }
  }
}

bool Server::on_bytes(int fd, std::string_view bytes) {
  const Slot& s = slot(fd);
  if (s.stage == Stage::kLingering) {
    return true;  // nobody listens any more
  }
  if (s.stage == Stage::kIdle && (s.side == nullptr || s.side->backlog.empty())) {
    return take_input(fd, bytes);
  }
  stash(fd, bytes);
  return true;
}

void Server::stash(int fd, std::string_view bytes) {
  std::string& backlog = side(fd).backlog;
  backlog.append(bytes);
  Slot& s = slot(fd);
  if (backlog.size() > kBacklogMax && !s.reads_paused) {
    s.reads_paused = true;
    rewatch(fd);
  }
}

bool Server::take_input(int fd, std::string_view bytes) {
  while (!bytes.empty() && slot(fd).stage == Stage::kIdle) {
    Slot& s = slot(fd);
    const bool own = s.side != nullptr && s.side->reader != nullptr;
    RequestReader& reader = own ? *s.side->reader : shared_reader_;
    bytes.remove_prefix(reader.feed(bytes));
    if (reader.state() == RequestReader::State::kComplete) {
      // Taken out of the slot first: answering may close the connection.
      const std::unique_ptr<RequestReader> owner = own ? std::move(s.side->reader) : nullptr;
      drop_reader(fd);
      ++facts_.ports[s.port].requests;
      const bool alive = handle_request(fd, reader);
      if (!own) {
        shared_reader_.reset();
      }
      if (!alive) {
        return false;
      }
    } else if (reader.state() == RequestReader::State::kRefused) {
      const Refusal why = reader.refusal();
      shared_reader_.reset();
      drop_reader(fd);
      return refuse(fd, why.status, why.reason, true, false);
    } else if (!reader.is_fresh() && !keep_partial(fd, reader)) {
      return false;
    }
  }
  if (!bytes.empty() && slot(fd).stage != Stage::kLingering) {
    stash(fd, bytes);
  }
  return true;
}

// The request goes on in a later read: the slot gets a reader of its own.
bool Server::keep_partial(int fd, RequestReader& reader) {
  Side& rare = side(fd);
  if (rare.reader == nullptr) {
    rare.reader = std::make_unique<RequestReader>(std::move(reader));
    shared_reader_.reset();
  }
  held_bytes_ += rare.reader->held_bytes() - rare.held_bytes;
  rare.held_bytes = rare.reader->held_bytes();
  if (held_bytes_ > kHeldBytesMax) {
    drop_reader(fd);
    return refuse(fd, 503, "too many half-sent requests at once", true, false);
  }
  if (rare.reader->take_continue()) {
    return send_out(fd, "HTTP/1.1 100 Continue\r\n\r\n");
  }
  return true;
}

bool Server::handle_request(int fd, const RequestReader& request) {
  const RequestHead& head = request.head();
  wheel_.disarm(static_cast<std::uint32_t>(fd));
  const bool completion = head.route >= Route::kChat && head.route <= Route::kVideos;
  if (head.route == Route::kUnknown) {
    return refuse(fd, 404, "no such route; see tutti-mock --help", head.http11, head.keep_alive);
  }
  if (head.method != (completion ? Method::kPost : Method::kGet)) {
    return refuse(fd, 405, completion ? "this route takes POST" : "this route takes GET",
                  head.http11, head.keep_alive);
  }
  if (!completion) {
    return handle_get(fd, head);
  }
  ++facts_.completions;
  if (options_.null_server && head.http11 && head.keep_alive) {
    return send_out(fd, null_reply_) && complete(fd, true);
  }
  if (options_.null_server) {
    Exchange& exchange = slot(fd).exchange;
    exchange = Exchange{};
    exchange.tokens = 1;
    exchange.http11 = head.http11;
    exchange.keep_alive = head.keep_alive;
    out_.clear();
    writer_.document(out_, exchange);
    return send_out(fd, out_) && complete(fd, true);
  }
  const auto now_s = static_cast<std::uint32_t>(clock_.wall_unix_ns() / 1'000'000'000);
  auto plan = planner_.plan(head, request.body(), now_s);
  if (!plan) {
    return refuse(fd, plan.error().status, plan.error().message, head.http11, head.keep_alive);
  }
  return begin_exchange(fd, std::move(*plan));
}

bool Server::handle_get(int fd, const RequestHead& head) {
  Exchange& exchange = slot(fd).exchange;
  exchange = Exchange{};
  exchange.http11 = head.http11;
  exchange.keep_alive = head.keep_alive;
  out_.clear();
  if (head.route == Route::kModels) {
    exchange.created_unix_s = static_cast<std::uint32_t>(clock_.wall_unix_ns() / 1'000'000'000);
    writer_.models_list(out_, exchange, planner_.named_models());
  } else if (head.route == Route::kMetrics) {
    const std::string text = prometheus_text(facts_);
    append_answer(out_, {200, "text/plain; version=0.0.4; charset=utf-8", text, head.http11,
                         head.keep_alive});
  } else {
    append_answer(out_,
                  {200, "application/json", R"({"status":"ok"})", head.http11, head.keep_alive});
  }
  return send_out(fd, out_) && complete(fd, false);
}

// A refusal after a broken head closes the connection: where the next request starts is unknown.
bool Server::refuse(int fd, int status, std::string_view message, bool http11, bool keep_alive) {
  ++facts_.refused;
  Exchange& exchange = slot(fd).exchange;
  exchange = Exchange{};
  exchange.keep_alive = keep_alive;
  out_.clear();
  append_error(out_, status, message, http11, keep_alive);
  return send_out(fd, out_) && complete(fd, false);
}

// Sends, or keeps what a full socket did not take. While bytes are kept no new event is written, so
// they are never more than one answer's document, or an event and a tail.
bool Server::send_out(int fd, std::string_view bytes) {
  Slot& s = slot(fd);
  if (s.wants_write) {
    s.side->unsent.append(bytes);
    return true;
  }
  TlsSession* tls = s.side ? s.side->tls.get() : nullptr;
  const std::size_t most = s.exchange.fault.kind == FaultKind::kDrip ? 1 : bytes.size();
  while (!bytes.empty()) {
    const IoResult put = SocketCalls::send(fd, tls, bytes.substr(0, most));
    if (put.io == Io::kBlocked) {
      side(fd).unsent.assign(bytes);
      s.wants_write = true;
      ++facts_.blocked_sends;
      rewatch(fd);
      return true;
    }
    if (put.io != Io::kDone) {
      drop(fd, is_busy(s.stage));
      return false;
    }
    facts_.sent_bytes += put.bytes;
    bytes.remove_prefix(put.bytes);
  }
  return true;
}

void Server::on_writable(int fd) {
  Slot& s = slot(fd);
  if (!s.wants_write) {
    return;
  }
  std::string bytes = std::move(s.side->unsent);
  s.side->unsent.clear();
  s.wants_write = false;
  if (!send_out(fd, bytes) || s.wants_write) {
    return;
  }
  rewatch(fd);
  if (s.stage == Stage::kFlushing) {
    end_exchange(fd);
  } else if (s.stage == Stage::kStreaming && !wheel_.is_armed(static_cast<std::uint32_t>(fd))) {
    wheel_.arm(static_cast<std::uint32_t>(fd), s.due_ns);
  }
}

}  // namespace tutti::mock_llm
