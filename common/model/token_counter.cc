#include "common/model/token_counter.h"

#include <utility>
#include <vector>

#include "common/model/model_config.h"

namespace tutti::model {
namespace {

using text::JsonValue;

constexpr std::int64_t kNoDate = 0;  // a date cancels out of a difference

JsonValue message(const char* role, JsonValue content) {
  return JsonValue::of_object(
      {{"role", JsonValue::of_string(role)}, {"content", std::move(content)}});
}

// Arguments come as text; templates want what it says, where that is an object.
JsonValue with_read_arguments(JsonValue calls) {
  std::vector<JsonValue> items = calls.items();
  for (JsonValue& call : items) {
    for (auto& [key, function] : call.members()) {
      if (key != "function") {
        continue;
      }
      for (auto& [name, arguments] : function.members()) {
        if (name == "arguments" && arguments.is_string()) {
          auto read = text::read_json(arguments.as_string());
          if (read && read->is_object()) {
            arguments = std::move(*read);
          }
        }
      }
    }
  }
  return JsonValue::of_array(std::move(items));
}

}  // namespace

base::Result<TokenCounter> TokenCounter::open(const ModelFiles& files) {
  auto tokenizer = Tokenizer::open(files.tokenizer_json, files.name);
  if (!tokenizer) {
    return tl::unexpected(tokenizer.error());
  }
  auto config = read_model_config(files);
  if (!config) {
    return tl::unexpected(config.error());
  }
  std::optional<ChatTemplate> chat;
  if (!config->chat_template.empty()) {
    auto opened =
        ChatTemplate::open(config->chat_template, std::move(config->specials), files.name);
    if (!opened) {
      return tl::unexpected(opened.error());
    }
    chat = std::move(*opened);
  }
  TokenCounter counter(std::move(*tokenizer), std::move(chat));
  if (counter.has_template()) {
    if (auto empty = counter.of_message(message("assistant", JsonValue::of_string("")))) {
      counter.of_empty_ = *empty;
    }
  }
  return counter;
}

base::Result<std::string> TokenCounter::render(const Conversation& talk,
                                               std::int64_t local_seconds) const {
  if (!template_) {
    return base::fail(base::ExitCode::kSetup,
                      "the model has no chat template, so that the tokens of messages cannot be "
                      "counted; use a tokenizer folder that has one");
  }
  return template_->render(talk, local_seconds);
}

base::Result<std::uint64_t> TokenCounter::prompt(const Conversation& talk,
                                                 std::int64_t local_seconds) const {
  const auto rendered = render(talk, local_seconds);
  return rendered ? tokenizer_.count(*rendered) : tl::unexpected(rendered.error());
}

base::Result<std::uint64_t> TokenCounter::of_message(JsonValue answer) const {
  std::vector<JsonValue> messages;
  messages.push_back(message("user", JsonValue::of_string("")));
  messages.push_back(std::move(answer));
  const JsonValue all = JsonValue::of_array(std::move(messages));
  Conversation talk;
  talk.messages = &all;
  return prompt(talk, kNoDate);
}

base::Result<ReplyCount> TokenCounter::reply(const ReplyText& reply) const {
  if (reply.plain()) {
    const auto tokens = text(reply.content);
    return tokens ? base::Result<ReplyCount>(ReplyCount{*tokens, false})
                  : tl::unexpected(tokens.error());
  }
  JsonValue answer = message("assistant", JsonValue::of_string(std::string(reply.content)));
  if (!reply.reasoning.empty()) {
    answer.members().emplace_back("reasoning_content",
                                  JsonValue::of_string(std::string(reply.reasoning)));
  }
  if (!reply.tool_calls.empty()) {
    auto calls = text::read_json(reply.tool_calls);
    if (calls && calls->is_array()) {
      answer.members().emplace_back("tool_calls", with_read_arguments(std::move(*calls)));
    }
  }
  if (of_empty_) {
    if (const auto whole = of_message(std::move(answer))) {
      return ReplyCount{*whole > *of_empty_ ? *whole - *of_empty_ : 0, false};
    }
  }
  std::string pieces;
  for (const std::string_view piece : {reply.content, reply.reasoning, reply.tool_calls}) {
    if (!piece.empty()) {
      pieces.append(pieces.empty() ? "" : "\n").append(piece);
    }
  }
  const auto tokens = text(pieces);
  return tokens ? base::Result<ReplyCount>(ReplyCount{*tokens, true})
                : tl::unexpected(tokens.error());
}

}  // namespace tutti::model
