#pragma once

// The mock server: one thread, one epoll set (level-triggered), one timer wheel, one slot per
// connection indexed by its file descriptor. A slot allocates nothing for a plain stream; what is
// rare (a partial request, unread or unsent bytes, TLS) lives in its Side. Bodies: server.cc (loop,
// accept), server_io.cc (bytes in and out), server_answer.cc (answers).

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "tests/mock_llm/facts.h"
#include "tests/mock_llm/http_request.h"
#include "tests/mock_llm/options.h"
#include "tests/mock_llm/planner.h"
#include "tests/mock_llm/reply.h"
#include "tests/mock_llm/socket.h"
#include "tests/mock_llm/timer_wheel.h"

namespace tutti::mock_llm {

enum class Stage : std::uint8_t {
  kFree,
  kIdle,       // between requests, or inside one that has not come whole
  kQueued,     // waiting for a place (--max-concurrency)
  kGranted,    // early head: to be sent at once
  kWaiting,    // for the first token, or for the document
  kHeadPause,  // the fault slow-headers, between status line and the rest
  kStreaming,
  kSilent,    // will never say another word; ends when the client goes
  kFlushing,  // the answer is written, its last bytes are not sent yet
  kLingering  // our FIN is sent; what still comes is thrown away until the client closes
};

// The rare part of a slot.
struct Side {
  std::unique_ptr<RequestReader> reader;  // a request that has come in part
  std::size_t held_bytes = 0;             // counted for it in Server::held_bytes_
  std::string backlog;                    // read, belongs to later requests
  std::string unsent;                     // written, the socket was full
  std::string paused;                     // held back by slow-headers
  std::unique_ptr<TlsSession> tls;
};

struct Slot {
  std::uint32_t generation = 0;
  std::uint16_t port = 0;  // index
  Stage stage = Stage::kFree;
  bool has_place = false;  // counted as active
  bool head_sent = false;
  bool completes = false;  // the answer being flushed is a whole one
  bool cuts = false;       // the connection ends without a TLS goodbye
  bool reads_paused = false;
  bool wants_write = false;
  std::uint32_t tokens_sent = 0;
  std::uint32_t events_sent = 0;
  std::int64_t due_ns = 0;  // of the next event
  Exchange exchange;
  std::unique_ptr<Side> side;
};

class Server {
 public:
  // Listens on every port. `options` and `clock` must outlive the server.
  static base::Result<std::unique_ptr<Server>> open(const MockOptions& options,
                                                    const base::Clock& clock);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  std::vector<std::string> urls() const;
  // Serves until `stop_fd` becomes readable; closes every connection then.
  void run(int stop_fd);
  const Facts& facts() const { return facts_; }

 private:
  Server(const MockOptions& options, const base::Clock& clock);

  // server.cc
  base::Status start();
  void watch(int fd, std::uint32_t events, std::uint64_t tag, bool add) const;
  void rewatch(int fd);
  int wait_for_events();
  void handle_event(std::uint64_t tag, std::uint32_t events);
  void accept_some(std::uint16_t port);
  void adopt(int fd, std::uint16_t port);
  void pause_accepting(bool pause);
  void run_resumed();
  void drop(int fd, bool cancelled);

  // server_io.cc: false means the slot is gone.
  void on_readable(int fd);
  bool on_bytes(int fd, std::string_view bytes);
  bool take_input(int fd, std::string_view bytes);
  bool keep_partial(int fd, RequestReader& reader);
  void stash(int fd, std::string_view bytes);
  bool handle_request(int fd, const RequestReader& request);
  bool handle_get(int fd, const RequestHead& head);
  bool refuse(int fd, int status, std::string_view message, bool http11, bool keep_alive);
  bool send_out(int fd, std::string_view bytes);
  void on_writable(int fd);
  Side& side(int fd);
  void drop_reader(int fd);

  // server_answer.cc
  bool begin_exchange(int fd, Exchange exchange);
  bool play_instant_fault(int fd, bool& played);
  void grant(int fd);
  void grant_next();
  void release_place(int fd);
  void on_due(int fd);
  void begin_answer(int fd);
  bool send_head(int fd);
  void send_document(int fd);
  void send_piece(int fd);
  bool play_stream_fault(int fd);
  void send_tail(int fd);
  bool complete(int fd, bool whole);
  void end_exchange(int fd);
  void linger(int fd, bool polite);
  void reset_connection(int fd);
  void go_idle(int fd);
  void count_fault(const Exchange& exchange) {
    ++facts_.faults[static_cast<std::size_t>(exchange.fault.kind)];
  }
  bool is_blocked(int fd) const { return slots_[static_cast<std::size_t>(fd)].wants_write; }
  Slot& slot(int fd) { return slots_[static_cast<std::size_t>(fd)]; }
  std::int64_t now_ns() const { return clock_.mono().ns; }

  const MockOptions& options_;
  const base::Clock& clock_;
  Planner planner_;
  ReplyWriter writer_;
  TimerWheel wheel_;
  Facts facts_;
  RequestReader shared_reader_;
  std::unique_ptr<TlsServer> tls_;
  std::vector<Listener> listeners_;
  Fd epoll_;
  int stop_fd_ = -1;
  bool stopping_ = false;
  bool accept_paused_ = false;
  std::size_t held_bytes_ = 0;  // of partial requests, all connections
  std::vector<Slot> slots_;
  std::deque<std::pair<int, std::uint32_t>> queue_;     // fd, generation
  std::vector<std::pair<int, std::uint32_t>> resumed_;  // have a backlog and became idle
  std::vector<std::uint32_t> due_;
  std::vector<char> read_buffer_;
  std::string out_;         // the bytes being written
  std::string null_reply_;  // --null
};

}  // namespace tutti::mock_llm
