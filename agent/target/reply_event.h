#pragma once

// One JSON document of a reply, chunk or whole, turned into facts. read_event_fully (simdjson DOM,
// one parser per thread) is the oracle; read_event asks it only for what read_usual_event leaves.
// EventTemplate is faster still: consecutive chunks of a stream differ only in their text, so once
// a chunk was read, the next one that has the same bytes around its text is known without parsing,
// exactly. Owned by one thread.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/vocabulary.h"

namespace tutti::target {

enum class TextKind : std::uint8_t { kContent, kReasoning };

struct ToolDelta {
  std::int64_t index = 0;
  std::string_view id;
  std::string_view type;
  std::string_view name;
  std::string_view arguments;
};

enum class EventShape : std::uint8_t {
  kChunk,  // one event of a stream: choices[0].delta (chat), choices[0].text, or SGLang's frame
  kWhole   // a non-streamed reply: choices[0].message (chat), choices[0].text, or a document
};

// Views live as long as the document, and until the next reading on the same thread.
struct EventFacts {
  bool valid = false;  // a JSON object whose known members have their known types
  bool has_choice = false;
  bool is_error = false;  // an `error` member, or `object: "error"`
  bool has_usage = false;
  bool two_reasonings = false;  // both spellings bear text; the first of the two below was taken
  std::int32_t error_code = 0;  // 400…599, or 0: none that is usable
  std::int32_t prompt_tokens = -1;
  std::int32_t completion_tokens = -1;
  std::int32_t reasoning_tokens = -1;
  std::string_view content;    // SGLang: all text so far; video: where the server put it
  std::string_view reasoning;  // `reasoning_content`, else `reasoning`
  std::string_view finish_reason;
  std::string_view error_message;    // of the `error` member, else the document's own `message`
  std::string_view tool_calls_json;  // kWhole: the array as sent, compact
  const std::vector<ToolDelta>* tool_calls = nullptr;  // kChunk: not empty, or null
};

EventFacts read_event(std::string_view json, base::ApiType api, EventShape shape);
EventFacts read_event_fully(std::string_view json, base::ApiType api, EventShape shape);

class KnownForm;
// read_event of a whole reply, sooner where it has the form of the one before; `form` may be null.
EventFacts read_whole_reply(std::string_view json, base::ApiType api, KnownForm* form);

// A chunk's bytes before and after its text, without line ends. Empty until learnt.
class EventTemplate {
 public:
  // True: `json` equals the learnt chunk but for its text, which is valid and now in `text`
  // (a view into `json`, or into this object when it had escapes).
  bool match(std::string_view json, TextKind& kind, std::string_view& text);
  // Offers a chunk that read_event called valid. Only a chunk whose one fact is one text is learnt.
  void learn(std::string_view json, const EventFacts& facts, base::ApiType api);
  void reset();
  void fetch_lines() const;

 private:
  bool decode(std::string_view raw, std::string_view& text);

  std::string prefix_;
  std::string suffix_;
  std::string decoded_;
  TextKind kind_ = TextKind::kContent;
  std::uint8_t misses_ = 0;  // learnings since the last match: chunks that never repeat are let be
};

// Streamed tool calls put together by their index. Text is appended, names overwritten.
class ToolCallMerge {
 public:
  // False: more calls or bytes than the limits allow.
  bool add(const std::vector<ToolDelta>& calls);
  bool empty() const { return used_ == 0; }
  // JSON array sorted by index, members in the order type, function{arguments, name}, id.
  void write(std::string& out) const;
  void reset();

 private:
  struct Call {
    std::int64_t index = 0;
    std::string id;
    std::string type;
    std::string name;
    std::string arguments;
  };
  std::vector<Call> calls_;  // the first used_ are alive; the rest keep their buffers
  std::size_t used_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace tutti::target
