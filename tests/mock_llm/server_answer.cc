// The course of an answer: its place, its waits, its events, its faults, its end.

#include <algorithm>

#include "tests/mock_llm/server.h"

namespace tutti::mock_llm {
namespace {

// How long a connection we have closed may take to be closed by its client.
constexpr std::int64_t kLingerNs = 2'000'000'000;

std::uint32_t timer_of(int fd) { return static_cast<std::uint32_t>(fd); }

}  // namespace

bool Server::begin_exchange(int fd, Exchange exchange) {
  Slot& s = slot(fd);
  s.exchange = std::move(exchange);
  s.tokens_sent = 0;
  s.events_sent = 0;
  s.head_sent = false;
  bool played = false;
  if (const bool alive = play_instant_fault(fd, played); played) {
    return alive;
  }
  if (options_.concurrency_max != 0 && facts_.active >= options_.concurrency_max) {
    s.stage = Stage::kQueued;
    queue_.emplace_back(fd, s.generation);
    ++facts_.queued;
    facts_.queued_max = std::max(facts_.queued_max, facts_.queued);
    return true;
  }
  grant(fd);
  return true;
}

// Faults that take no place and no time.
bool Server::play_instant_fault(int fd, bool& played) {
  Slot& s = slot(fd);
  const Exchange& exchange = s.exchange;
  switch (exchange.fault.kind) {
    case FaultKind::kStatus:
      played = true;
      count_fault(exchange);
      out_.clear();
      append_error(out_, static_cast<int>(exchange.fault.number),
                   "the mock was told to answer this", exchange.http11, exchange.keep_alive);
      return send_out(fd, out_) && complete(fd, false);
    case FaultKind::kReset:
      played = true;
      count_fault(exchange);
      reset_connection(fd);
      return false;
    case FaultKind::kNoAnswer:
      played = true;
      count_fault(exchange);
      s.stage = Stage::kSilent;
      return true;
    default:
      return true;
  }
}

void Server::grant(int fd) {
  Slot& s = slot(fd);
  s.has_place = true;
  ++facts_.active;
  facts_.active_max = std::max(facts_.active_max, facts_.active);
  const std::int64_t now = now_ns();
  s.due_ns = now + s.exchange.ttft_ns;
  if (!s.exchange.stream) {
    // A document is ready when the last event of its stream would be.
    const std::int64_t events = writer_.event_count(s.exchange);
    const std::int64_t most = (INT64_MAX / 2) / (s.exchange.gap_ns + 1);
    s.due_ns += s.exchange.gap_ns * std::clamp<std::int64_t>(events - 1, 0, most);
  }
  const bool early =
      options_.early_head && s.exchange.stream && s.exchange.fault.kind != FaultKind::kEmpty;
  s.stage = early ? Stage::kGranted : Stage::kWaiting;
  wheel_.arm(timer_of(fd), early ? now : s.due_ns);
}

void Server::grant_next() {
  while (!queue_.empty() && facts_.active < options_.concurrency_max) {
    const auto [fd, generation] = queue_.front();
    queue_.pop_front();
    const Slot& s = slot(fd);
    if (s.stage == Stage::kQueued && s.generation == generation) {
      --facts_.queued;
      grant(fd);
    }
  }
}

void Server::release_place(int fd) {
  Slot& s = slot(fd);
  if (s.has_place) {
    s.has_place = false;
    --facts_.active;
    grant_next();
  }
}

void Server::on_due(int fd) {
  Slot& s = slot(fd);
  switch (s.stage) {
    case Stage::kIdle:  // --idle-timeout
      linger(fd, true);
      break;
    case Stage::kGranted:
      if (send_head(fd)) {
        slot(fd).stage = Stage::kWaiting;
        wheel_.arm(timer_of(fd), slot(fd).due_ns);
      }
      break;
    case Stage::kWaiting:
      begin_answer(fd);
      break;
    case Stage::kHeadPause: {
      const std::string rest = std::move(s.side->paused);
      s.side->paused.clear();
      if (!send_out(fd, rest)) {
        break;
      }
      if (!s.exchange.stream) {
        complete(fd, true);
        break;
      }
      s.stage = Stage::kWaiting;
      wheel_.arm(timer_of(fd), s.due_ns);
      break;
    }
    case Stage::kStreaming:
      send_piece(fd);
      break;
    case Stage::kLingering:
      drop(fd, false);
      break;
    default:
      break;
  }
}

// Sends out_ = head and first bytes. False: gone, or paused by slow-headers (then on_due goes on).
bool Server::send_head(int fd) {
  Slot& s = slot(fd);
  s.head_sent = true;
  out_.clear();
  writer_.stream_head(out_, s.exchange);
  if (options_.role_chunk && s.exchange.api == Api::kChat) {
    writer_.role_event(out_, s.exchange, now_ns());
  }
  if (s.exchange.fault.kind != FaultKind::kSlowHeaders) {
    return send_out(fd, out_);
  }
  count_fault(s.exchange);
  const std::size_t line = out_.find('\n') + 1;
  side(fd).paused = out_.substr(line);
  out_.resize(line);
  if (!send_out(fd, out_)) {
    return false;
  }
  s.stage = Stage::kHeadPause;
  const std::int64_t resume = now_ns() + s.exchange.fault.duration_ns;
  s.due_ns = std::max(s.due_ns, resume);
  wheel_.arm(timer_of(fd), resume);
  return false;
}

void Server::begin_answer(int fd) {
  Slot& s = slot(fd);
  if (s.exchange.fault.kind == FaultKind::kEmpty) {
    count_fault(s.exchange);
    out_.clear();
    append_answer(out_, {200, s.exchange.stream ? "text/event-stream" : "application/json", "",
                         s.exchange.http11, s.exchange.keep_alive});
    if (send_out(fd, out_)) {
      complete(fd, false);
    }
    return;
  }
  if (!s.exchange.stream) {
    send_document(fd);
    return;
  }
  if (!s.head_sent && !send_head(fd)) {
    return;
  }
  s.stage = Stage::kStreaming;
  send_piece(fd);
}

// Faults that count events have a meaning for documents too: half of the document comes.
void Server::send_document(int fd) {
  Slot& s = slot(fd);
  facts_.late.add(now_ns() - s.due_ns);
  const Fault fault = s.exchange.fault;
  out_.clear();
  writer_.document(out_, s.exchange, now_ns());
  const std::size_t line = out_.find('\n') + 1;
  if (fault.kind != FaultKind::kNone && writer_.spoil_document(out_, s.exchange)) {
    count_fault(s.exchange);
  }
  if (fault.kind == FaultKind::kSlowHeaders) {
    side(fd).paused = out_.substr(line);
    out_.resize(line);
  }
  if (!send_out(fd, out_)) {
    return;
  }
  switch (fault.kind) {
    case FaultKind::kSlowHeaders:
      s.stage = Stage::kHeadPause;
      wheel_.arm(timer_of(fd), now_ns() + fault.duration_ns);
      return;
    case FaultKind::kResetAfter:
      reset_connection(fd);
      return;
    case FaultKind::kStall:
      s.stage = Stage::kSilent;
      return;
    case FaultKind::kTruncate:
      s.cuts = true;
      s.exchange.keep_alive = false;
      complete(fd, false);
      return;
    default:
      facts_.tokens += s.exchange.tokens;
      complete(fd, true);
  }
}

void Server::send_piece(int fd) {
  Slot& s = slot(fd);
  if (s.wants_write || play_stream_fault(fd)) {
    return;  // a blocked stream goes on when its socket has drained
  }
  if (s.tokens_sent == s.exchange.tokens) {
    send_tail(fd);
    return;
  }
  const Piece piece = writer_.piece(s.exchange, s.tokens_sent, s.events_sent + 1);
  if (s.exchange.fault.kind == FaultKind::kMalformed && s.exchange.fault.number == piece.event) {
    count_fault(s.exchange);
  }
  out_.clear();
  const std::int64_t now = now_ns();
  writer_.content_event(out_, s.exchange, piece, now);
  if (!send_out(fd, out_)) {
    return;
  }
  if (s.events_sent == 0 || s.exchange.gap_ns != 0) {
    facts_.late.add(now - s.due_ns);  // without a gap "as fast as possible" has no schedule
  }
  facts_.tokens += piece.count;
  ++facts_.events;
  s.tokens_sent += piece.count;
  ++s.events_sent;
  if (s.tokens_sent == s.exchange.tokens) {
    if (!play_stream_fault(fd)) {
      send_tail(fd);
    }
    return;
  }
  if (options_.gap_per_token) {
    RequestDraws draws(s.exchange.seed, (std::uint64_t{1} << 63) + s.events_sent * 4ULL);
    s.due_ns += options_.gap.draw(draws);
  } else {
    s.due_ns += s.exchange.gap_ns;
  }
  wheel_.arm(timer_of(fd), s.due_ns);
}

// True when the stream ended, or was silenced, by a fault due after this many events.
bool Server::play_stream_fault(int fd) {
  Slot& s = slot(fd);
  const Fault fault = s.exchange.fault;
  const bool counts_events =
      fault.kind == FaultKind::kResetAfter || fault.kind == FaultKind::kTruncate ||
      fault.kind == FaultKind::kEnd || fault.kind == FaultKind::kStall ||
      fault.kind == FaultKind::kErrorEvent || fault.kind == FaultKind::kNamedError;
  if (!counts_events || s.events_sent != fault.number) {
    return false;
  }
  count_fault(s.exchange);
  out_.clear();
  switch (fault.kind) {
    case FaultKind::kResetAfter:
      reset_connection(fd);
      return true;
    case FaultKind::kStall:
      s.stage = Stage::kSilent;
      return true;
    case FaultKind::kTruncate:
      s.cuts = true;
      s.exchange.keep_alive = false;
      complete(fd, false);
      return true;
    case FaultKind::kErrorEvent:
      writer_.error_event(out_, s.exchange, false);
      writer_.done_event(out_, s.exchange);
      break;
    case FaultKind::kNamedError:
      writer_.error_event(out_, s.exchange, true);
      break;
    default:
      break;
  }
  writer_.body_end(out_, s.exchange);
  if (send_out(fd, out_)) {
    complete(fd, false);
  }
  return true;
}

// The events that follow the last token at once go out together, as servers send them.
void Server::send_tail(int fd) {
  Slot& s = slot(fd);
  const FaultKind fault = s.exchange.fault.kind;
  out_.clear();
  const std::int64_t now = now_ns();
  writer_.finish_event(out_, s.exchange, now);
  writer_.usage_event(out_, s.exchange, now);
  if (fault != FaultKind::kNoDone) {
    writer_.done_event(out_, s.exchange);
  }
  writer_.body_end(out_, s.exchange);
  if (fault == FaultKind::kNoDone || fault == FaultKind::kDrip) {
    count_fault(s.exchange);
  }
  if (send_out(fd, out_)) {
    complete(fd, true);
  }
}

// The answer is written; it ends when it is sent.
bool Server::complete(int fd, bool whole) {
  Slot& s = slot(fd);
  s.completes = whole;
  s.stage = Stage::kFlushing;
  if (!s.wants_write) {
    end_exchange(fd);
  }
  return slot(fd).stage != Stage::kFree;
}

void Server::end_exchange(int fd) {
  Slot& s = slot(fd);
  facts_.finished += s.completes ? 1 : 0;
  const bool closes = s.exchange.fault.kind == FaultKind::kClose;
  if (closes) {
    count_fault(s.exchange);
  }
  const bool keeps = s.exchange.keep_alive && !closes;
  s.exchange.echo.reset();
  s.exchange.fault = Fault{};
  release_place(fd);
  if (keeps) {
    go_idle(fd);
  } else {
    linger(fd, !s.cuts);
  }
}

void Server::go_idle(int fd) {
  Slot& s = slot(fd);
  s.stage = Stage::kIdle;
  if (options_.idle_timeout_ns != 0) {
    wheel_.arm(timer_of(fd), now_ns() + options_.idle_timeout_ns);
  }
  if (s.side != nullptr && !s.side->backlog.empty()) {
    resumed_.emplace_back(fd, s.generation);
  }
  if (s.reads_paused) {
    s.reads_paused = false;
    rewatch(fd);
  }
}

// FIN, then wait for the client's: closing at once with unread bytes would reset the connection and
// could destroy the answer on its way.
void Server::linger(int fd, bool polite) {
  Slot& s = slot(fd);
  SocketCalls::finish_sending(fd, s.side ? s.side->tls.get() : nullptr, polite);
  s.stage = Stage::kLingering;
  if (s.reads_paused) {
    s.reads_paused = false;
    rewatch(fd);
  }
  wheel_.arm(timer_of(fd), now_ns() + kLingerNs);
}

void Server::reset_connection(int fd) {
  SocketCalls::make_close_a_reset(fd);
  drop(fd, false);
}

}  // namespace tutti::mock_llm
