#pragma once

// What a fuzzed reply says of itself, as one text: its checked texts and its numbers. Shared by the
// fuzzers of replies. Aborts when a text is no UTF-8 or the record contradicts itself.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/target/reply.h"
#include "common/text/utf8.h"

namespace tutti::fuzz {

inline void require(bool good) {
  if (!good) {
    std::abort();
  }
}

// `body` is fed in pieces of so many bytes; `document` is the content type of what is no stream.
inline std::string said(std::string_view body, std::size_t piece, bool stream,
                        std::string_view document, base::ApiType api, target::EndKind end,
                        wire::Record& r) {
  target::Reply reply(api);
  reply.start(stream, true);
  reply.on_header(200, stream ? "text/event-stream" : document);
  for (std::size_t at = 0; at < body.size(); at += piece) {
    reply.on_body(body.substr(at, piece), base::Instant{1});
  }
  reply.on_end(end, base::Instant{2}, r);
  std::string out;
  for (const std::string* text :
       {&r.output.content_first, &r.output.content_rest, &r.output.reasoning_first,
        &r.output.reasoning_rest, &r.output.tool_calls, &r.error_message, &r.finish_text}) {
    require(text::is_utf8(*text));
    out += *text + '\x1f';
  }
  require((r.failure == wire::Failure::kNone) == (r.outcome == wire::Outcome::kOk));
  require((r.content_events > 0) == r.first_token_at.is_set());
  for (const std::int64_t n :
       {std::int64_t{r.content_events}, std::int64_t{r.malformed_events},
        static_cast<std::int64_t>(r.failure), static_cast<std::int64_t>(r.finish_reason),
        std::int64_t{r.http_status}, std::int64_t{r.prompt_tokens},
        std::int64_t{r.completion_tokens}, static_cast<std::int64_t>(r.chunk_at.size())}) {
    out += std::to_string(n) + ' ';
  }
  return out;
}

}  // namespace tutti::fuzz
