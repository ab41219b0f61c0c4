// MultiTransport over HTTP/2: which query gets a stream of a connection that stands, which one
// opens another, and which one waits for that. Curl would decide all three by itself; but then no
// pacer would be asked, and a thousand queries of one instant would open a thousand connections or
// look through each other's. How many streams a peer takes shows when curl finds none where we
// counted on one: the query goes back to its line, and that many it is until a connection ends.
// Lines are by frontend, oldest first.

#include <algorithm>

#include "agent/target/multi_transport.h"

namespace tutti::target {

// Curl closes an idle one to make room, but finds none among those in use.
bool MultiTransport::may_open_one_more(const Shard& shard, std::uint16_t frontend) const {
  std::size_t connections = 0;
  std::size_t streams = 0;
  for (std::size_t i = 0; i < shard.standing.size(); ++i) {
    connections += shard.standing[i] + shard.opening[i];
    streams += shard.busy[i];
  }
  return shard.connections_max == 0 || connections < shard.connections_max || streams == 0 ||
         shard.standing[frontend] + shard.opening[frontend] == 0;
}

// For the oldest in the frontend's line, which then opens a connection or does not; notes when only
// the pacer keeps it from one.
bool MultiTransport::finds_place(const Shard& shard, std::uint16_t frontend, base::Instant now) {
  Exchange& first = *shard.waiting[frontend].oldest()->call;
  const std::uint64_t streams = shard.streams[frontend];
  const std::uint64_t opening = shard.opening[frontend];
  const bool more =
      may_open_one_more(shard, frontend) || (first.found_none && shard.busy[frontend] == opening);
  first.opens = false;
  if (shard.standing[frontend] * streams > shard.busy[frontend] - opening &&
      !(first.found_none && more)) {
    return true;
  }
  // Those that are being opened will have room for their openers and so many more.
  if (!more || shard.waiting[frontend].size() <= opening * (streams - 1)) {
    return false;
  }
  first.opens = stock_.kept(frontend) > 0 || !paces_.bounds(frontend) || paces_.open(now);
  paced_ = paced_ || !first.opens;
  return first.opens;
}

void MultiTransport::serve_line(Shard& shard, std::uint16_t frontend, base::Instant now) {
  const auto& line = shard.waiting[frontend];
  while (!failing_line_ && line.oldest() != nullptr && finds_place(shard, frontend, now)) {
    launch_stream(shard, *line.oldest()->call);
  }
}

void MultiTransport::serve_lines(Shard& shard, base::Instant now) {
  shard.line_moves = false;
  for (std::size_t frontend = 0; frontend < shard.waiting.size(); ++frontend) {
    serve_line(shard, static_cast<std::uint16_t>(frontend), now);
  }
}

void MultiTransport::launch_stream(Shard& shard, Exchange& exchange) {
  const std::uint16_t frontend = exchange.frontend();
  forget_waiting(exchange);
  exchange.wait.let_in = exchange.opens && paces_.bounds(frontend);
  exchange.found_none = false;
  exchange.opened = {-1, -1};
  shard.opening[frontend] += exchange.opens ? 1U : 0U;
  set_streams(exchange.easy(), config_.frontends[frontend], exchange.opens);
  launch(exchange);
}

// Curl has ended its transfer for want of a stream. False: it was not that which ended it.
bool MultiTransport::goes_back_to_line(Shard& shard, Exchange& exchange) {
  const std::uint16_t frontend = exchange.frontend();
  if (exchange.opens || cancelling_) {
    return false;
  }
  curl_multi_remove_handle(shard.multi, exchange.easy());
  forget_connecting(exchange);
  --shard.running;
  --shard.busy[frontend];
  const std::uint32_t used = shard.busy[frontend] - shard.opening[frontend];
  if (shard.standing[frontend] > 0) {
    shard.streams[frontend] =
        std::clamp(used / shard.standing[frontend], 1U, shard.streams[frontend]);
  }
  wait_to_connect(exchange);
  serve_line(shard, frontend, clock_.mono());
  return true;
}

// The connection they waited for did not stand in time: they have no more time for another than a
// query that opens its own. Queries that start meanwhile stay in line until the end.
void MultiTransport::fail_line(Shard& shard, std::uint16_t frontend, base::Instant now) {
  const auto& line = shard.waiting[frontend];
  const base::Duration limit = config_.target->connect_timeout;
  while (line.oldest() != nullptr && line.oldest()->call->started_at() + limit <= now) {
    Exchange& first = *line.oldest()->call;
    end(first, now, EndKind::kConnectTimeout,
        first.frontend_label() + ": the connection it waited for did not stand in time");
  }
  failing_line_ = false;
  for (Shard& each : shards_) {
    each.line_moves = true;
  }
}

// It has what it was to open, or has ended.
void MultiTransport::note_opened(Shard& shard, Exchange& exchange) {
  shard.opening[exchange.frontend()] -= exchange.opens ? 1U : 0U;
  exchange.opens = false;
}

// Called back by curl, which takes no new handle now: the line goes on when it has returned. Of
// several addresses tried at once the others are closed by now.
void MultiTransport::note_standing(Exchange& exchange) {
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
