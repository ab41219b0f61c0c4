#include "common/data/request_body.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/data/video_request.h"
#include "common/text/json_write.h"

namespace tutti::data {
namespace {

using text::JsonValue;
using text::JsonWriter;

// The cell, unless it is absent or null: both are not sent.
const JsonValue* cell_of(const JsonValue& cells, std::string_view name) {
  const JsonValue* const cell = cells.find(name);
  return cell == nullptr || cell->is_null() ? nullptr : cell;
}

void copy_cell(JsonWriter& json, const JsonValue& cells, std::string_view name) {
  if (const JsonValue* const cell = cell_of(cells, name); cell != nullptr) {
    json.key(name);
    cell->write(json);
  }
}

void write(JsonWriter& json, double value) { json.number(value); }
void write(JsonWriter& json, std::int64_t value) { json.integer(value); }
void write(JsonWriter& json, const JsonValue& value) { value.write(json); }

// The row's own value, else the config's, if there is one.
template <class Value>
void write_first(JsonWriter& json, const JsonValue& cells, std::string_view name,
                 const std::optional<Value>& value) {
  if (const JsonValue* const cell = cell_of(cells, name); cell != nullptr) {
    json.key(name);
    cell->write(json);
  } else if (value) {
    json.key(name);
    write(json, *value);
  }
}

void write_message(JsonWriter& json, const JsonValue& message) {
  json.begin_object();
  for (const char* const name :
       {"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content"}) {
    copy_cell(json, message, name);
  }
  json.end_object();
}

// The messages array. Returns where a salt would go, relative to `out`.
std::int32_t write_messages(JsonWriter& json, const JsonValue& cells, const std::string& out) {
  std::int32_t splice = kNoSplice;
  json.begin_array();
  if (const JsonValue* const messages = cell_of(cells, "messages"); messages != nullptr) {
    for (const JsonValue& message : messages->items()) {
      write_message(json, message);
    }
  } else {
    if (const JsonValue* const system = cell_of(cells, "system"); system != nullptr) {
      json.begin_object().key("role").string("system").key("content");
      system->write(json);
      json.end_object();
    }
    json.begin_object().key("role").string("user");
    if (const JsonValue* const prompt = cell_of(cells, "prompt"); prompt != nullptr) {
      json.key("content");
      if (prompt->is_string()) {
        splice = static_cast<std::int32_t>(out.size()) + 1;
      }
      prompt->write(json);
    }
    copy_cell(json, cells, "name");
    json.end_object();
  }
  json.end_array();
  return splice;
}

void write_stream(JsonWriter& json, const BodyParams& params, bool write_false) {
  if (params.stream || write_false) {
    json.key("stream").boolean(params.stream);
  }
  if (params.stream && params.include_usage) {
    json.key("stream_options").begin_object().key("include_usage").boolean(true).end_object();
  }
}

void render_chat(const JsonValue& cells, const BodyParams& params, RenderedBody& out) {
  JsonWriter json(out.bytes);
  json.begin_object();
  write_first(json, cells, "model", std::optional(JsonValue::of_string(params.model)));
  json.key("messages");
  const auto messages_at = static_cast<std::int32_t>(out.bytes.size());
  out.splice = write_messages(json, cells, out.bytes);
  if (params.splice_system) {
    out.splice = messages_at + 1 + static_cast<std::int32_t>(kSystemMessageHead.size());
    TUTTI_CHECK(out.bytes.compare(static_cast<std::size_t>(messages_at) + 1,
                                  kSystemMessageHead.size(), kSystemMessageHead) == 0);
  }
  write_first(json, cells, "temperature", params.temperature);
  write_first(json, cells, "max_completion_tokens", std::optional(params.max_tokens));
  write_stream(json, params, params.write_stream_false);
  write_first(json, cells, "seed", params.seed);
  write_first(json, cells, "top_p", params.top_p);
  write_first(json, cells, "top_k", params.top_k);
  write_first(json, cells, "repetition_penalty", params.repetition_penalty);
  copy_cell(json, cells, "n");
  copy_cell(json, cells, "stop");
  write_first(json, cells, "presence_penalty", params.presence_penalty);
  write_first(json, cells, "frequency_penalty", params.frequency_penalty);
  copy_cell(json, cells, "logit_bias");
  copy_cell(json, cells, "user");
  copy_cell(json, cells, "chat_template");
  const bool kwargs = params.chat_template_kwargs && !params.chat_template_kwargs->is_null();
  write_first(json, cells, "chat_template_kwargs",
              kwargs ? params.chat_template_kwargs : std::nullopt);
  copy_cell(json, cells, "tools");
  copy_cell(json, cells, "tool_choice");
  json.end_object();
}

void render_completions(const JsonValue& cells, const BodyParams& params, RenderedBody& out) {
  JsonWriter json(out.bytes);
  json.begin_object().key("model").string(params.model).key("prompt");
  if (const JsonValue* const tokens = cell_of(cells, "input_tokens"); tokens != nullptr) {
    tokens->write(json);
  } else {
    const JsonValue* const prompt = cell_of(cells, "prompt");
    TUTTI_CHECK(prompt != nullptr && prompt->is_string());
    out.splice = static_cast<std::int32_t>(out.bytes.size()) + 1;
    prompt->write(json);
  }
  write_first(json, cells, "temperature", params.temperature);
  json.key("max_tokens").integer(params.max_tokens);
  json.key("min_tokens").integer(params.min_tokens);
  json.key("skip_special_tokens").boolean(params.skip_special_tokens);
  write_stream(json, params, true);
  write_first(json, cells, "top_p", params.top_p);
  write_first(json, cells, "top_k", params.top_k);
  write_first(json, cells, "repetition_penalty", params.repetition_penalty);
  copy_cell(json, cells, "n");
  copy_cell(json, cells, "stop");
  write_first(json, cells, "presence_penalty", params.presence_penalty);
  write_first(json, cells, "frequency_penalty", params.frequency_penalty);
  json.end_object();
}

// Where the config is silent SGLang is told the reference client's own defaults; −1 is its word for
// "all tokens", and is not sent.
void render_sglang(const JsonValue& cells, const BodyParams& params, RenderedBody& out) {
  constexpr std::int64_t kEveryToken = -1;
  const JsonValue* const tokens = cell_of(cells, "input_tokens");
  TUTTI_CHECK(tokens != nullptr);
  JsonWriter json(out.bytes);
  json.begin_object().key("input_ids");
  tokens->write(json);
  json.key("sampling_params").begin_object();
  json.key("max_new_tokens").integer(params.max_tokens);
  json.key("temperature").number(params.temperature.value_or(1.0));
  if (params.top_k.value_or(kEveryToken) != kEveryToken) {
    json.key("top_k").integer(*params.top_k);
  }
  json.key("top_p").number(params.top_p.value_or(1.0));
  json.end_object().key("stream").boolean(params.stream).end_object();
}

}  // namespace

void render_body(const Row& row, const BodyParams& params, RenderedBody& out) {
  out.bytes.clear();
  out.splice = kNoSplice;
  switch (params.api) {
    case base::ApiType::kOpenAiChat:
      render_chat(row.cells, params, out);
      return;
    case base::ApiType::kOpenAiCompletions:
      render_completions(row.cells, params, out);
      return;
    case base::ApiType::kSglang:
      render_sglang(row.cells, params, out);
      return;
    case base::ApiType::kVideogen:
      render_video(row.cells, out.bytes);
      return;
  }
}

std::string note_of_unsent(const BodyParams& params) {
  std::vector<std::string_view> names;
  const auto name_if = [&names](bool set, std::string_view name) {
    if (set) {
      names.push_back(name);
    }
  };
  const bool chat = params.api == base::ApiType::kOpenAiChat;
  const bool sglang = params.api == base::ApiType::kSglang;
  const bool video = params.api == base::ApiType::kVideogen;
  name_if(params.temperature.has_value() && video, "temperature");
  name_if(params.seed.has_value() && !chat, "seed");
  name_if(params.top_p.has_value() && video, "top_p");
  name_if(params.top_k.has_value() && video, "top_k");
  name_if(params.repetition_penalty.has_value() && (sglang || video), "repetition_penalty");
  name_if(params.presence_penalty.has_value() && (sglang || video), "presence_penalty");
  name_if(params.frequency_penalty.has_value() && (sglang || video), "frequency_penalty");
  name_if(params.chat_template_kwargs.has_value() && !chat, "chat_template_kwargs");
  return names.empty() ? std::string()
                       : fmt::format("this api_type has no place for model_params {}: not sent",
                                     fmt::join(names, ", "));
}

Prompt prompt_of(const Row& row) {
  Prompt prompt;
  const JsonValue* const text = cell_of(row.cells, "prompt");
  if (const JsonValue* const ids = cell_of(row.cells, "input_tokens"); ids != nullptr) {
    prompt.kind = PromptKind::kTokenIds;
    prompt.text = ids->to_json();
  } else if (cell_of(row.cells, "messages") != nullptr || (text != nullptr && !text->is_string())) {
    prompt.kind = PromptKind::kMessages;
    JsonWriter json(prompt.text);
    write_messages(json, row.cells, prompt.text);
  } else if (text != nullptr) {
    prompt.kind = PromptKind::kText;
    prompt.text = text->as_string();
  }
  return prompt;
}

const char* why_not_saltable(const Row& row) {
  const JsonValue* const prompt = row.cells.find("prompt");
  if (!row.cells.is_object()) {
    return "the sample is not an object";
  }
  if (row.cells.find("input_tokens") != nullptr) {
    return "the prompt is given as token ids (input_tokens)";
  }
  if (row.cells.find("messages") != nullptr) {
    return "the prompt is given as messages";
  }
  if (prompt == nullptr) {
    return "there is no prompt";
  }
  if (prompt->is_array()) {
    return "the prompt is a list of content parts";
  }
  return prompt->is_string() ? nullptr : "the prompt is not text";
}

base::Status check_saltable(const Dataset& dataset) {
  constexpr std::size_t kShownMax = 3;
  std::string shown;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
    const char* const reason = why_not_saltable(dataset.rows[i]);
    if (reason != nullptr && ++bad <= kShownMax) {
      shown +=
          fmt::format("{}{}: sample {} ({})", bad == 1 ? "" : ", ", reason, i, dataset.where(i));
    }
  }
  if (bad == 0) {
    return {};
  }
  if (bad > kShownMax) {
    shown += fmt::format(" and {} more", bad - kShownMax);
  }
  return base::fail(base::ExitCode::kInput,
                    fmt::format("warm-up salt needs text prompts; {}; disable the salt "
                                "(--no-warmup-salt, or warmup.salt: false) or use a data set with "
                                "text prompts",
                                shown));
}

}  // namespace tutti::data
