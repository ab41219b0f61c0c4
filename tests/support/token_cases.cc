#include "tests/support/token_cases.h"

#include <fmt/format.h>

#include <cstdint>
#include <ctime>

namespace tutti::test {
namespace {

std::string text_of(const text::JsonValue& from, std::string_view key) {
  const text::JsonValue* const found = from.find(key);
  return found == nullptr ? "" : found->is_string() ? found->as_string() : found->to_json();
}

std::string check_prompt(const model::TokenCounter& counter, const text::JsonValue& one) {
  model::Conversation talk;
  talk.messages = one.find("messages");
  talk.tools = one.find("tools")->is_null() ? nullptr : one.find("tools");
  talk.generation_prompt = one.find("generation")->as_bool();
  const auto prompt = counter.render(talk, model::local_seconds(std::time(nullptr)));
  if (const auto* fails = one.find("fails")) {
    return prompt ? fmt::format("a prompt, where there is the error {}", fails->as_string()) : "";
  }
  if (!prompt) {
    return prompt.error().message;
  }
  return *prompt == one.find("prompt")->as_string() ? "" : "rendered otherwise: " + *prompt;
}

base::Result<std::uint64_t> count(const model::TokenCounter& counter, const text::JsonValue& one) {
  if (const auto* text = one.find("text")) {
    return counter.text(text->as_string());
  }
  if (const auto* prompt = one.find("prompt")) {
    return counter.text(prompt->as_string());
  }
  const text::JsonValue& reply = *one.find("reply");
  const std::string content = text_of(reply, "content");
  const std::string reasoning = text_of(reply, "reasoning_content");
  const std::string calls = text_of(reply, "tool_calls");
  const auto counted = counter.reply({content, reasoning, calls});
  return counted ? base::Result<std::uint64_t>(counted->tokens) : tl::unexpected(counted.error());
}

}  // namespace

std::string check_token_case(const model::TokenCounter& counter, const text::JsonValue& one) {
  if (one.find("messages") != nullptr) {
    const std::string problem = check_prompt(counter, one);
    if (!problem.empty() || one.find("fails") != nullptr) {
      return problem;
    }
  }
  const auto wanted = static_cast<std::uint64_t>(one.find("tokens")->as_int());
  const auto got = count(counter, one);
  if (!got) {
    return got.error().message;
  }
  return *got == wanted ? "" : fmt::format("{} tokens, not {}", *got, wanted);
}

}  // namespace tutti::test
