#include "common/model/chat_template.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "common/rust/abi.h"
#include "common/rust/rust_bytes.h"
#include "common/text/json_write.h"

namespace tutti::model {
namespace {

void write_or_null(text::JsonWriter& out, const text::JsonValue* value) {
  if (value == nullptr) {
    out.null();
  } else {
    value->write(out);
  }
}

bool names(const std::vector<text::JsonValue::Member>& members, std::string_view name) {
  for (const auto& [key, value] : members) {
    if (key == name) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::int64_t local_seconds(std::int64_t unix_seconds) {
  const std::time_t at = unix_seconds;
  std::tm local{};
  localtime_r(&at, &local);
  return unix_seconds + local.tm_gmtoff;
}

void ChatTemplate::Close::operator()(TuttiTemplate* chat) const { tutti_template_close(chat); }

base::Result<ChatTemplate> ChatTemplate::open(std::string_view source,
                                              std::vector<text::JsonValue::Member> specials,
                                              std::string_view name) {
  rust::RustBytes error;
  TuttiTemplate* const chat = tutti_template_open(source.data(), source.size(), error.out());
  if (chat == nullptr) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: no chat template: {}", name, error.text()));
  }
  return ChatTemplate(chat, std::move(specials));
}

base::Result<std::string> ChatTemplate::render(const Conversation& talk,
                                               std::int64_t local_seconds) const {
  std::string context;
  text::JsonWriter out(context);
  out.begin_object();
  static const std::vector<text::JsonValue::Member> kNone;
  const auto& kwargs = talk.kwargs != nullptr ? talk.kwargs->members() : kNone;
  for (const auto& [key, value] : specials_) {
    if (!names(kwargs, key)) {
      out.key(key);
      value.write(out);
    }
  }
  for (const auto& [key, value] : kwargs) {
    if (key != "messages" && key != "tools" && key != "add_generation_prompt") {
      out.key(key);
      value.write(out);
    }
  }
  out.key("messages");
  write_or_null(out, talk.messages);
  out.key("tools");
  write_or_null(out, talk.tools);
  if (!names(kwargs, "documents")) {
    out.key("documents").null();
  }
  if (talk.tool_choice != nullptr && !names(kwargs, "tool_choice")) {
    out.key("tool_choice");
    talk.tool_choice->write(out);
  }
  out.key("add_generation_prompt").boolean(talk.generation_prompt);
  out.end_object();

  rust::RustBytes prompt;
  rust::RustBytes error;
  if (!tutti_template_render(template_.get(), context.data(), context.size(), local_seconds,
                             prompt.out(), error.out())) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("the chat template failed: {}", error.text()));
  }
  return std::string(prompt.text());
}

}  // namespace tutti::model
