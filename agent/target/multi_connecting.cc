// MultiTransport's line of queries that may not open a connection yet. curl decides for itself
// whether it opens one; so a query is given to curl when one of its shard is free, or when the
// pacer allows a new one, and whatever curl opens is charged.

#include "agent/target/multi_transport.h"

namespace tutti::target {

// Without connect_rate_max only those for a frontend in trouble have to stand in line.
bool MultiTransport::may_connect(std::uint16_t frontend, base::Instant now) const {
  return !paces_.bounds(frontend) || (waiting_count_ == 0 && paces_.open(now));
}

bool MultiTransport::has_idle(const Shard& shard, std::uint16_t frontend) {
  return shard.open[frontend] > shard.busy[frontend];
}

bool MultiTransport::finds_connection(const Shard& shard, const Exchange& exchange) const {
  return has_idle(shard, exchange.frontend()) || stock_.kept(exchange.frontend()) > 0;
}

void MultiTransport::wait_to_connect(Exchange& exchange) {
  shard_of(exchange).waiting[exchange.frontend()].add(exchange.wait);
  exchange.wait.on = true;
  ++waiting_count_;
}

void MultiTransport::forget_waiting(Exchange& exchange) {
  shard_of(exchange).waiting[exchange.frontend()].remove(exchange.wait);
  exchange.wait.on = false;
  --waiting_count_;
}

// A handle of `shard` was released, and perhaps its connection kept.
void MultiTransport::give_to_waiting(Shard& shard) {
  Exchange* first = nullptr;
  for (const auto& line : shard.waiting) {
    const auto* const oldest = line.oldest();
    if (oldest != nullptr && finds_connection(shard, *oldest->call) &&
        (first == nullptr || oldest->call->started_at() < first->started_at())) {
      first = oldest->call;
    }
  }
  if (first != nullptr) {
    forget_waiting(*first);
    launch(*first);
  }
}

bool MultiTransport::goes_before(const Exchange& exchange, const Exchange& other) const {
  return paces_.goes_first(exchange.frontend(), exchange.started_at(), other.frontend(),
                           other.started_at());
}

// Gives curl what the pacer allows, the longest waiting query first.
void MultiTransport::go_on_connecting(base::Instant now) {
  // A handle that opens nothing may charge nothing: each query waiting now is looked at once.
  for (std::size_t left = waiting_count_; left > 0 && paces_.open(now); --left) {
    Exchange* first = nullptr;
    for (const Shard& shard : shards_) {
      for (const auto& line : shard.waiting) {
        const auto* const oldest = line.oldest();
        if (oldest != nullptr && (first == nullptr || goes_before(*oldest->call, *first))) {
          first = oldest->call;
        }
      }
    }
    if (first == nullptr) {
      return;
    }
    forget_waiting(*first);
    first->wait.let_in = true;
    launch(*first);
  }
}

}  // namespace tutti::target
