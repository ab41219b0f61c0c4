#pragma once

// What a tokenizer made of a run's prompts and replies, beside the ledger. Plain values.

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::report {

struct RowTokens {
  std::int64_t prompt = -1;       // -1: not counted, or there is nothing to count
  std::int64_t output = -1;       // the whole reply
  std::int64_t after_first = -1;  // what followed its first chunk: TPOT's divisor
};

struct TokenCounts {
  std::vector<RowTokens> rows;  // by the ledger's order
  std::uint64_t prompts = 0;    // distinct ones counted
  std::uint64_t replies = 0;
  std::uint64_t by_agents = 0;         // of those, while they ran
  std::uint64_t pending = 0;           // queries with something that should have been counted
  std::uint64_t without_template = 0;  // replies counted by their pieces
  std::string first_error;             // of those pending
};

}  // namespace tutti::report
