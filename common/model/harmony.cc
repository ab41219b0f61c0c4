#include "common/model/harmony.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

#include <nlohmann/json.hpp>

namespace tutti::model {
namespace {

using Ids = std::vector<std::uint32_t>;

// A piece of the form: a marker, or text.
struct Piece {
  bool marker = false;
  std::string text;
};

std::string system_text(std::int64_t local_seconds) {
  const std::time_t at = local_seconds;
  std::tm date{};
  gmtime_r(&at, &date);
  return fmt::format(
      "You are ChatGPT, a large language model trained by OpenAI.\n"
      "Knowledge cutoff: 2024-06\n"
      "Current date: {:%Y-%m-%d}\n\n"
      "Reasoning: high\n\n"
      "# Valid channels: analysis, commentary, final. Channel must be included for every message.",
      date);
}

base::Result<Ids> written(const Tokenizer& marked, const Tokenizer& plain,
                          const std::vector<Piece>& pieces, const std::string& name) {
  Ids out;
  for (const Piece& piece : pieces) {
    if (piece.marker) {
      const std::int64_t id = marked.id_of(piece.text);
      if (id < 0) {
        return base::fail(base::ExitCode::kSetup,
                          fmt::format("{} has no token {}, so text prompts cannot be told to it in "
                                      "Harmony, the form of gpt-oss models: name the tokenizer of "
                                      "one (model_params.tokenizer_name), or give input_tokens",
                                      name, piece.text));
      }
      out.push_back(static_cast<std::uint32_t>(id));
      continue;
    }
    const auto ids = plain.encode(piece.text);
    if (!ids) {
      return tl::unexpected(ids.error());
    }
    out.insert(out.end(), ids->begin(), ids->end());
  }
  return out;
}

// The tokenizer without its added tokens, to which a marker in a text is text.
base::Result<Tokenizer> without_markers(const ModelFiles& files) {
  auto json = nlohmann::json::parse(files.tokenizer_json, nullptr, false);
  if (!json.is_object()) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: tokenizer.json holds no JSON object; fetch the model's "
                                  "files anew",
                                  files.name));
  }
  json["added_tokens"] = nlohmann::json::array();
  json["post_processor"] = nullptr;
  return Tokenizer::open(json.dump(), files.name);
}

}  // namespace

bool speaks_harmony(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames{"gpt-oss", "gpt_oss", "gptoss"};
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kNames.begin(), kNames.end(), [&lower](std::string_view known) {
    return lower.find(known) != std::string::npos;
  });
}

base::Result<HarmonyPrompt> HarmonyPrompt::open(const ModelFiles& files,
                                                std::int64_t local_seconds) {
  const auto marked = Tokenizer::open(files.tokenizer_json, files.name);
  if (!marked) {
    return tl::unexpected(marked.error());
  }
  auto plain = without_markers(files);
  if (!plain) {
    return tl::unexpected(plain.error());
  }
  HarmonyPrompt out(std::move(*plain));
  auto before = written(*marked, out.plain_,
                        {{true, "<|start|>"},
                         {false, "system"},
                         {true, "<|message|>"},
                         {false, system_text(local_seconds)},
                         {true, "<|end|>"},
                         {true, "<|start|>"},
                         {false, "user"},
                         {true, "<|message|>"}},
                        files.name);
  if (!before) {
    return tl::unexpected(before.error());
  }
  out.before_ = std::move(*before);
  auto after = written(*marked, out.plain_,
                       {{true, "<|end|>"}, {true, "<|start|>"}, {false, "assistant"}}, files.name);
  if (!after) {
    return tl::unexpected(after.error());
  }
  out.after_ = std::move(*after);
  return out;
}

base::Result<Ids> HarmonyPrompt::ids(std::string_view prompt) const {
  const auto text = plain_.encode(prompt);
  if (!text) {
    return tl::unexpected(text.error());
  }
  Ids out = before_;
  out.insert(out.end(), text->begin(), text->end());
  out.insert(out.end(), after_.begin(), after_.end());
  return out;
}

}  // namespace tutti::model
