// Replies of the two APIs that are not OpenAI's, SGLang's /generate and video generation: fed in
// one piece or byte by byte they say the same, their text is valid UTF-8, a failure always has its
// outcome, and what the one-pass road answers is answered as the full reading does.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/target/reply.h"
#include "agent/target/usual_event.h"
#include "common/text/utf8.h"

namespace {

using namespace tutti;  // one file, one purpose

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

void check_usual(std::string_view json, base::ApiType api, target::EventShape shape) {
  target::EventFacts usual;
  if (!target::read_usual_event(json, api, shape, usual)) {
    return;
  }
  const target::EventFacts full = target::read_event_fully(json, api, shape);
  require(full.valid && full.has_choice && !full.is_error);
  require(usual.content == full.content && usual.finish_reason == full.finish_reason);
  require(usual.prompt_tokens == full.prompt_tokens);
  require(usual.completion_tokens == full.completion_tokens);
}

std::string said(std::string_view body, std::size_t piece, bool stream, base::ApiType api,
                 target::EndKind end) {
  target::Reply reply(api);
  wire::Record r;
  reply.start(stream, true);
  reply.on_header(200, stream ? "text/event-stream" : "application/json");
  for (std::size_t at = 0; at < body.size(); at += piece) {
    reply.on_body(body.substr(at, piece), base::Instant{1});
  }
  reply.on_end(end, base::Instant{2}, r);
  std::string out;
  for (const std::string* text : {&r.output.content_first, &r.output.content_rest,
                                  &r.output.reasoning_first, &r.error_message, &r.finish_text}) {
    require(text::is_utf8(*text));
    out += *text + '\x1f';
  }
  require(r.output.reasoning_first.empty() && r.output.tool_calls.empty());
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const auto api = (data[0] & 1) != 0 ? base::ApiType::kVideogen : base::ApiType::kSglang;
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view bytes(copy.data(), copy.size());
  check_usual(bytes, api, target::EventShape::kChunk);
  check_usual(bytes, api, target::EventShape::kWhole);
  const bool stream = (data[0] & 2) != 0;
  const auto end = (data[0] & 4) != 0 ? target::EndKind::kReset : target::EndKind::kComplete;
  require(said(bytes, bytes.size() + 1, stream, api, end) == said(bytes, 1, stream, api, end));
  return 0;
}
