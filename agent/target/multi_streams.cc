// MultiTransport over HTTP/2: which query gets a stream of a connection that stands, which one
// opens another, and which one waits for that. Curl would decide both by itself; but then a
// thousand queries of one instant would look through each other's connections, and no pacer would
// be asked. What curl still opens unasked, because a peer takes fewer streams than were asked for,
// is counted and charged like any other. A shard's lines go by frontend, oldest first.

#include <algorithm>

#include "agent/target/multi_transport.h"

namespace tutti::target {

// For the oldest in the frontend's line; notes when only the pacer keeps it from one.
bool MultiTransport::finds_place(const Shard& shard, std::uint16_t frontend, base::Instant now) {
  const std::uint64_t streams = config_.target->streams_max;
  const std::uint64_t opening = shard.opening[frontend];
  if (shard.standing[frontend] * streams > shard.busy[frontend] - opening) {
    return true;
  }
  // Those that are being opened will have room for their openers and so many more.
  if (shard.waiting[frontend].size() <= opening * (streams - 1)) {
    return false;
  }
  if (stock_.kept(frontend) > 0 || !paces_.bounds(frontend) || paces_.open(now)) {
    return true;
  }
  paced_ = true;
  return false;
}

void MultiTransport::serve_line(Shard& shard, std::uint16_t frontend, base::Instant now) {
  const auto& line = shard.waiting[frontend];
  while (line.oldest() != nullptr && finds_place(shard, frontend, now)) {
    Exchange& first = *line.oldest()->call;
    const bool opens = shard.standing[frontend] * std::uint64_t{config_.target->streams_max} <=
                       shard.busy[frontend] - shard.opening[frontend];
    forget_waiting(first);
    first.wait.let_in = opens && paces_.bounds(frontend);
    first.opened = {-1, -1};
    if (opens) {
      note_opening(shard, first);
    }
    launch(first);
  }
}

void MultiTransport::serve_lines(Shard& shard, base::Instant now) {
  shard.line_moves = false;
  for (std::size_t frontend = 0; frontend < shard.waiting.size(); ++frontend) {
    serve_line(shard, static_cast<std::uint16_t>(frontend), now);
  }
}

void MultiTransport::note_opening(Shard& shard, Exchange& exchange) {
  shard.opening[exchange.frontend()] += exchange.opens ? 0U : 1U;
  exchange.opens = true;
}

// It has what it was to open, or has ended.
void MultiTransport::note_opened(Shard& shard, Exchange& exchange) {
  shard.opening[exchange.frontend()] -= exchange.opens ? 1U : 0U;
  exchange.opens = false;
}

// Called back by curl, which takes no new handle now: the line goes on when it has returned. Of
// several addresses tried at once the others are closed by now.
void MultiTransport::connection_stands(Exchange& exchange) {
  Shard& shard = shard_of(exchange);
  note_opened(shard, exchange);
  for (const int fd : exchange.opened) {
    if (fd >= 0 && state_of(fd).opener == &exchange) {
      state_of(fd).opener = nullptr;
      state_of(fd).stands = true;
      ++shard.standing[exchange.frontend()];
    }
  }
  exchange.opened = {-1, -1};
  shard.line_moves = true;
}

}  // namespace tutti::target
