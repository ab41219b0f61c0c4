#pragma once

// ChatTemplate: the Jinja text that makes one prompt of a conversation, rendered as the
// `transformers` library does (trimmed blocks, Python's ways of writing values, tools, special
// tokens as variables). Immutable; may be rendered from many threads at once.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/text/json_read.h"

struct TuttiTemplate;

namespace tutti::model {

// The local clock's seconds since 1970 at that moment, as templates that write the date want them.
std::int64_t local_seconds(std::int64_t unix_seconds);

struct Conversation {
  const text::JsonValue* messages = nullptr;     // array
  const text::JsonValue* tools = nullptr;        // array, or null: none
  const text::JsonValue* tool_choice = nullptr;  // or null
  const text::JsonValue* kwargs = nullptr;       // object of further variables, or null
  bool generation_prompt = false;                // ends where the model is to go on
};

class ChatTemplate {
 public:
  // `specials`: bos_token, eos_token … by name, which templates may write.
  static base::Result<ChatTemplate> open(std::string_view source,
                                         std::vector<text::JsonValue::Member> specials,
                                         std::string_view name);

  // The prompt. `local_seconds`: seconds since 1970 of the local clock, for templates that write
  // the date. An error is the template's own, or says what of Jinja it uses that we don't know.
  base::Result<std::string> render(const Conversation& talk, std::int64_t local_seconds) const;

 private:
  struct Close {
    void operator()(TuttiTemplate* chat) const;
  };
  ChatTemplate(TuttiTemplate* chat, std::vector<text::JsonValue::Member> specials)
      : template_(chat), specials_(std::move(specials)) {}

  std::unique_ptr<TuttiTemplate, Close> template_;
  std::vector<text::JsonValue::Member> specials_;
};

}  // namespace tutti::model
