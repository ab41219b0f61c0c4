#pragma once

// What is counted of a reply: the whole, and what followed its first chunk (runtime-metrics 12.3).
// Of a reply that reasons the latter is the reasoning after its first chunk and all of the content,
// else the content after its first chunk. Tool calls are counted whole in both, as they follow the
// text; where there is no text their first chunk cannot be told from the rest, and TPOT has no
// divisor. Pure; any thread. Agents and coordinator count by this one rule.

#include <cstdint>
#include <string_view>

#include "common/base/result.h"
#include "common/model/token_counter.h"

namespace tutti::model {

struct ReplyChunks {
  std::string_view content_first;
  std::string_view content_rest;
  std::string_view reasoning_first;
  std::string_view reasoning_rest;
  std::string_view tool_calls;  // JSON array, or empty

  bool empty() const {
    return content_first.empty() && content_rest.empty() && reasoning_first.empty() &&
           reasoning_rest.empty() && tool_calls.empty();
  }
};

struct ReplyTokens {
  std::int64_t output = -1;       // -1: the reply is empty
  std::int64_t after_first = -1;  // -1: cannot be told
  bool without_template = false;  // the whole was counted by its pieces
};

base::Result<ReplyTokens> count_reply(const TokenCounter& counter, const ReplyChunks& reply);

}  // namespace tutti::model
