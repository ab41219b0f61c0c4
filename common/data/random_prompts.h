#pragma once

// The predefined data set `random`: runs of consecutive token ids whose lengths and starts are
// drawn as the reference client draws them with numpy. Only numbers here; whoever has the tokenizer
// makes prompts of them. Pure functions; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/text/json_read.h"

namespace tutti::data {

// generate_params.
struct RandomPrompts {
  std::uint64_t num_sequences = 1024;
  std::uint64_t input_seq_length = 1024;  // tokens, the most one may have
  double range_ratio = 1.0;               // the fewest, as a share of that; rounded down
  std::uint64_t random_seed = 42;
  bool save_tokenized_data = false;
  std::string tokenizer;  // a path, or org/name at the hub
};

inline constexpr std::uint64_t kRandomLengthMax = 1U << 24U;

// All that is wrong in one error.
base::Result<RandomPrompts> read_random_prompts(const text::JsonValue& params);

// ⌊length · ratio⌋ as Python's int() gives it.
std::uint64_t shortest_of(const RandomPrompts& wanted);

struct RandomSequence {
  std::uint64_t length = 0;
  std::uint64_t start = 0;
};

// default_rng(random_seed): all lengths from [shortest, input_seq_length], then all starts from
// [0, vocab).
std::vector<RandomSequence> draw_sequences(const RandomPrompts& wanted, std::uint64_t vocab);

// (start + j) mod vocab for j = 0 … length − 1, into `out`.
void write_ids(const RandomSequence& sequence, std::uint64_t vocab,
               std::vector<std::uint32_t>& out);

}  // namespace tutti::data
