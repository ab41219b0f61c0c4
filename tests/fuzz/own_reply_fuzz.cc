// Replies of the two APIs that are not OpenAI's, SGLang's /generate and video generation: fed in
// one piece or byte by byte they say the same, their text is valid UTF-8, a failure always has its
// outcome, and what the one-pass road answers is answered as the full reading does.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/target/usual_event.h"
#include "tests/fuzz/reply_said.h"

namespace {

using namespace tutti;  // one file, one purpose
using fuzz::require;

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
  wire::Record r;
  std::string out = fuzz::said(body, piece, stream, "application/json", api, end, r);
  require(r.output.reasoning_first.empty() && r.output.tool_calls.empty());
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
