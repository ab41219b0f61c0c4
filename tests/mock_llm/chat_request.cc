#include "tests/mock_llm/chat_request.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

namespace tutti::mock_llm {

namespace dom = simdjson::dom;

struct ChatReader::Document {
  dom::parser parser;
  dom::element prompt;  // `messages` or `prompt`
  Api api = Api::kChat;
};

namespace {

std::uint32_t count_words(std::string_view text) {
  std::uint32_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    words += !blank && !inside ? 1 : 0;
    inside = !blank;
  }
  return words;
}

// Calls visit(text) for each text of a message's content: a string, or an array of parts.
template <class Visit>
void each_text(const dom::element& content, Visit visit) {
  std::string_view text;
  if (content.get(text) == simdjson::SUCCESS) {
    visit(text);
    return;
  }
  dom::array parts;
  if (content.get(parts) != simdjson::SUCCESS) {
    return;
  }
  for (const dom::element part : parts) {
    if (part["text"].get(text) == simdjson::SUCCESS || part.get(text) == simdjson::SUCCESS) {
      visit(text);
    }
  }
}

using Outcome = tl::expected<void, std::string>;

Outcome wrong(std::string_view key, std::string_view need) {
  return tl::unexpected(fmt::format("`{}` must be {}", key, need));
}

Outcome read_bool(const dom::object& object, const char* key, bool& out) {
  dom::element value;
  if (object[key].get(value) != simdjson::SUCCESS || value.is_null()) {
    return {};
  }
  return value.get(out) == simdjson::SUCCESS ? Outcome{} : wrong(key, "true or false");
}

Outcome read_count(const dom::object& object, const char* key, std::optional<std::uint64_t>& out) {
  dom::element value;
  if (out.has_value() || object[key].get(value) != simdjson::SUCCESS || value.is_null()) {
    return {};
  }
  std::uint64_t count = 0;
  if (value.get(count) != simdjson::SUCCESS) {
    return wrong(key, "a whole number, 0 or more");
  }
  out = count;
  return {};
}

Outcome read_text(const dom::object& object, const char* key, std::string_view& out) {
  dom::element value;
  if (object[key].get(value) != simdjson::SUCCESS || value.is_null()) {
    return {};
  }
  return value.get(out) == simdjson::SUCCESS ? Outcome{} : wrong(key, "a string");
}

Outcome read_stream_options(const dom::object& object, ChatRequest& out) {
  dom::element value;
  if (object["stream_options"].get(value) != simdjson::SUCCESS || value.is_null()) {
    return {};
  }
  dom::object options;
  if (value.get(options) != simdjson::SUCCESS) {
    return wrong("stream_options", "an object");
  }
  if (Outcome bad = read_bool(options, "include_usage", out.include_usage); !bad) {
    return bad;
  }
  return read_bool(options, "continuous_usage_stats", out.continuous_usage);
}

Outcome check_messages(const dom::object& object, dom::element& prompt) {
  dom::array messages;
  if (object["messages"].get(prompt) != simdjson::SUCCESS ||
      prompt.get(messages) != simdjson::SUCCESS || messages.size() == 0) {
    return wrong("messages", "an array of at least one message");
  }
  for (const dom::element message : messages) {
    std::string_view role;
    if (message["role"].get(role) != simdjson::SUCCESS) {
      return wrong("messages[].role", "a string");
    }
  }
  return {};
}

Outcome check_prompt(const dom::object& object, dom::element& prompt) {
  if (object["prompt"].get(prompt) != simdjson::SUCCESS || prompt.is_null()) {
    return wrong("prompt", "there: a string, an array of one string, or an array of token ids");
  }
  if (prompt.is_string()) {
    return {};
  }
  dom::array items;
  if (prompt.get(items) != simdjson::SUCCESS || items.size() == 0) {
    return wrong("prompt", "a string, an array of one string, or an array of token ids");
  }
  const bool numbers = std::all_of(items.begin(), items.end(),
                                   [](const dom::element& item) { return item.is_int64(); });
  if (!numbers && !(items.size() == 1 && items.at(0).is_string())) {
    return wrong("prompt", "one prompt only: this mock answers no batches");
  }
  return {};
}

// SGLang's request: token ids or a text, and its parameters in an object of their own.
Outcome check_generate(const dom::object& object, dom::element& prompt, ChatRequest& out) {
  dom::array ids;
  const bool has_ids = object["input_ids"].get(prompt) == simdjson::SUCCESS && !prompt.is_null();
  if (!has_ids && object["text"].get(prompt) != simdjson::SUCCESS) {
    return wrong("input_ids", "there (an array of token ids), or `text`");
  }
  if (has_ids && (prompt.get(ids) != simdjson::SUCCESS || ids.size() == 0 ||
                  !std::all_of(ids.begin(), ids.end(),
                               [](const dom::element& item) { return item.is_int64(); }))) {
    return wrong("input_ids", "an array of at least one token id: this mock answers no batches");
  }
  if (!has_ids && !prompt.is_string()) {
    return wrong("text", "a string: this mock answers no batches");
  }
  dom::element value;
  dom::object params;
  if (object["sampling_params"].get(value) != simdjson::SUCCESS || value.is_null()) {
    return {};
  }
  if (value.get(params) != simdjson::SUCCESS) {
    return wrong("sampling_params", "an object");
  }
  return read_count(params, "max_new_tokens", out.max_tokens);
}

Outcome check_video(const dom::object& object, dom::element& prompt, const ChatRequest& out) {
  if (object["prompt"].get(prompt) != simdjson::SUCCESS || !prompt.is_string()) {
    return wrong("prompt", "a string");
  }
  return out.stream ? wrong("stream", "false: a video comes in one piece") : Outcome{};
}

Outcome check_api(const dom::object& object, Api api, dom::element& prompt, ChatRequest& out) {
  switch (api) {
    case Api::kChat:
      return check_messages(object, prompt);
    case Api::kCompletions:
      return check_prompt(object, prompt);
    case Api::kGenerate:
      return check_generate(object, prompt, out);
    case Api::kVideos:
      break;
  }
  return check_video(object, prompt, out);
}

Outcome read_fields(const dom::object& object, ChatRequest& out) {
  std::optional<std::uint64_t> choices;
  for (Outcome bad :
       {read_bool(object, "stream", out.stream),
        read_count(object, "max_completion_tokens", out.max_tokens),
        read_count(object, "max_tokens", out.max_tokens), read_text(object, "model", out.model),
        read_text(object, "tutti_fault", out.fault), read_stream_options(object, out),
        read_count(object, "n", choices)}) {
    if (!bad) {
      return bad;
    }
  }
  if (choices.value_or(1) != 1) {
    return wrong("n", "1: this mock gives one choice");
  }
  return {};
}

}  // namespace

ChatReader::ChatReader() : document_(std::make_unique<Document>()) {}
ChatReader::~ChatReader() = default;

tl::expected<ChatRequest, std::string> ChatReader::read(std::string_view body, Api api) {
  if (body.empty()) {  // may be a null pointer, which simdjson must not see
    return tl::unexpected(std::string("the body is not JSON: it is empty"));
  }
  dom::object object;
  dom::element root;
  document_->prompt = dom::element{};
  document_->api = api;
  const auto broken = document_->parser.parse(body.data(), body.size(), true).get(root);
  if (broken != simdjson::SUCCESS) {
    return tl::unexpected(fmt::format("the body is not JSON: {}", simdjson::error_message(broken)));
  }
  if (root.get(object) != simdjson::SUCCESS) {
    return tl::unexpected(std::string("the body is not a JSON object"));
  }
  ChatRequest out;
  if (Outcome bad = read_fields(object, out); !bad) {
    return tl::unexpected(bad.error());
  }
  if (Outcome bad = check_api(object, api, document_->prompt, out); !bad) {
    return tl::unexpected(bad.error());
  }
  return out;
}

std::uint32_t ChatReader::prompt_words() const {
  std::uint32_t words = 0;
  const auto count = [&](std::string_view text) { words += count_words(text); };
  dom::array items;
  if (document_->api != Api::kChat) {
    if (document_->prompt.get(items) == simdjson::SUCCESS && !items.at(0).is_string()) {
      return static_cast<std::uint32_t>(items.size());
    }
    each_text(document_->prompt, count);
    return words;
  }
  if (document_->prompt.get(items) == simdjson::SUCCESS) {
    for (const dom::element message : items) {
      dom::element content;
      if (message["content"].get(content) == simdjson::SUCCESS) {
        each_text(content, count);
      }
    }
  }
  return words;
}

std::string ChatReader::echo_text() const {
  std::string out;
  const auto join = [&](std::string_view text) {
    if (!out.empty()) {
      out += ' ';
    }
    out += text;
  };
  if (document_->api != Api::kChat) {
    each_text(document_->prompt, join);
    return out;
  }
  dom::array messages;
  dom::element last;
  bool found = false;
  if (document_->prompt.get(messages) == simdjson::SUCCESS) {
    for (const dom::element message : messages) {
      std::string_view role;
      dom::element content;
      if (message["role"].get(role) == simdjson::SUCCESS && role == "user" &&
          message["content"].get(content) == simdjson::SUCCESS) {
        last = content;
        found = true;
      }
    }
  }
  if (found) {
    each_text(last, join);
  }
  return out;
}

}  // namespace tutti::mock_llm
