// Three promises. One: a chunk that the template road answers is answered as the full reading does
// (the input is two chunks around a 0xFF byte; the first is learnt, the second looked up), and so
// is a whole reply that has the form of the one before. Two: so is every document that the one-pass
// road answers. Three: a reply fed in one piece or byte by byte says the same, and its text is
// valid UTF-8.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/target/known_form.h"
#include "agent/target/usual_event.h"
#include "tests/fuzz/reply_said.h"

namespace {

using namespace tutti;  // one file, one purpose
using fuzz::require;

void check_template(std::string_view first, std::string_view second, base::ApiType api) {
  target::EventTemplate known;
  known.learn(first, target::read_event_fully(first, api, target::EventShape::kChunk), api);
  target::TextKind kind{};
  std::string_view text;
  if (!known.match(second, kind, text)) {
    return;
  }
  const std::string fast(text);
  const target::EventFacts facts =
      target::read_event_fully(second, api, target::EventShape::kChunk);
  const bool is_content = kind == target::TextKind::kContent;
  require(facts.valid && !facts.is_error && facts.tool_calls == nullptr && !facts.has_usage);
  require((is_content ? facts.content : facts.reasoning) == fast);
  require((is_content ? facts.reasoning : facts.content).empty() && facts.finish_reason.empty());
}

void require_same(const target::EventFacts& fast, const target::EventFacts& full) {
  require(full.valid && full.has_choice && !full.is_error && full.error_message.empty());
  require(full.tool_calls == nullptr && full.tool_calls_json.empty() && full.error_code == 0);
  require(fast.content == full.content && fast.reasoning == full.reasoning);
  require(fast.finish_reason == full.finish_reason);
  require(fast.two_reasonings == full.two_reasonings && fast.has_usage == full.has_usage);
  require(fast.prompt_tokens == full.prompt_tokens);
  require(fast.completion_tokens == full.completion_tokens);
  require(fast.reasoning_tokens == full.reasoning_tokens);
}

void check_usual(std::string_view json, base::ApiType api, target::EventShape shape) {
  target::EventFacts usual;
  if (target::read_usual_event(json, api, shape, usual)) {
    require_same(usual, target::read_event_fully(json, api, shape));
  }
}

void check_form(std::string_view first, std::string_view second, base::ApiType api) {
  target::KnownForm form;
  target::EventFacts facts;
  target::read_whole_reply(first, api, &form);
  if (form.read(second, api, facts)) {
    require_same(facts, target::read_event_fully(second, api, target::EventShape::kWhole));
  }
}

std::string said(std::string_view body, std::size_t piece, bool stream, base::ApiType api,
                 target::EndKind end) {
  wire::Record r;
  return fuzz::said(body, piece, stream, "", api, end, r);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const auto api =
      (data[0] & 1) != 0 ? base::ApiType::kOpenAiCompletions : base::ApiType::kOpenAiChat;
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view bytes(copy.data(), copy.size());
  const std::size_t cut = bytes.find('\xFF');
  if (cut != std::string_view::npos) {
    check_template(bytes.substr(0, cut), bytes.substr(cut + 1), api);
    check_form(bytes.substr(0, cut), bytes.substr(cut + 1), api);
  }
  check_form(bytes, bytes, api);
  check_usual(bytes, api, target::EventShape::kChunk);
  check_usual(bytes, api, target::EventShape::kWhole);
  const bool stream = (data[0] & 2) != 0;
  const auto end = (data[0] & 4) != 0 ? target::EndKind::kReset : target::EndKind::kComplete;
  require(said(bytes, bytes.size() + 1, stream, api, end) == said(bytes, 1, stream, api, end));
  return 0;
}
