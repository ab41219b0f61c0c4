#pragma once

// TokenCount: what a tokenizer made of one reply, counted by the agent that had it. Rides on record
// batches, beside the records and not in them: a record never waits for its count. ReplyCounting:
// what an agent needs to count. Plain values.

#include <cstdint>
#include <string>

#include "common/base/time.h"
#include "common/base/vocabulary.h"

namespace tutti::wire {

struct TokenCount {
  std::uint16_t phase = 0;
  base::Seq seq = 0;
  std::int32_t output = -1;       // tokens of the whole reply
  std::int32_t after_first = -1;  // of what followed its first chunk; -1: that cannot be told
  bool without_template = false;  // counted by its pieces: the chat template cannot write it

  friend bool operator==(const TokenCount&, const TokenCount&) = default;
};

struct ReplyCounting {
  std::string model_hash;  // of model::pack(), as model::content_hash() has it; empty: do not count
  std::uint64_t model_bytes = 0;
  base::Duration drain_max{};  // how long Drained may wait for the last counts

  bool wanted() const { return !model_hash.empty(); }
  friend bool operator==(const ReplyCounting&, const ReplyCounting&) = default;
};

}  // namespace tutti::wire
