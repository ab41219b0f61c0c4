#pragma once

// TokenCounter: tokens of prompts and replies, as the reference client counts them
// (runtime-metrics 12.3): plain text without special tokens; a conversation by its chat template,
// everything counted; a reply that reasons or calls tools by what the template makes of it.
// Immutable; counts may be asked for from many threads at once. Needs a build with cargo.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/model/chat_template.h"
#include "common/model/model_files.h"
#include "common/model/tokenizer.h"

namespace tutti::model {

struct ReplyText {
  std::string_view content;
  std::string_view reasoning;
  std::string_view tool_calls;  // JSON array, or empty

  bool plain() const { return reasoning.empty() && tool_calls.empty(); }
};

struct ReplyCount {
  std::uint64_t tokens = 0;
  // The template could not write such a reply, so that its pieces were counted as plain text.
  bool without_template = false;
};

class TokenCounter {
 public:
  static base::Result<TokenCounter> open(const ModelFiles& files);

  bool has_template() const { return template_.has_value(); }
  const Tokenizer& tokenizer() const { return tokenizer_; }

  base::Result<std::uint64_t> text(std::string_view text) const { return tokenizer_.count(text); }
  // What a server would make of the conversation.
  base::Result<std::string> render(const Conversation& talk, std::int64_t local_seconds) const;
  // Its tokens.
  base::Result<std::uint64_t> prompt(const Conversation& talk, std::int64_t local_seconds) const;
  // Of a plain reply its text; else what the assistant's message adds to a conversation over an
  // empty one:  max(0, T[user "", message] − T[user "", assistant ""])
  base::Result<ReplyCount> reply(const ReplyText& reply) const;

 private:
  TokenCounter(Tokenizer tokenizer, std::optional<ChatTemplate> chat)
      : tokenizer_(std::move(tokenizer)), template_(std::move(chat)) {}
  base::Result<std::uint64_t> of_message(text::JsonValue message) const;

  Tokenizer tokenizer_;
  std::optional<ChatTemplate> template_;
  std::optional<std::uint64_t> of_empty_;  // T[user "", assistant ""]; none: no template can
};

}  // namespace tutti::model
