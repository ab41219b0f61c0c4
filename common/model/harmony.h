#pragma once

// HarmonyPrompt: the token ids that gpt-oss models are asked with where an API takes no messages:
// OpenAI's Harmony form of a system message (reasoning effort high, a date) and one user message,
// up to the assistant's turn, as openai_harmony renders it. Markers are ids; what looks like one in
// a prompt is text. Immutable; any thread. Vectors: tests/conformance/harmony.json.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/model/model_files.h"
#include "common/model/tokenizer.h"

namespace tutti::model {

// Whether a model (or a path of one) is called so that its text prompts are told in Harmony.
bool speaks_harmony(std::string_view name);

class HarmonyPrompt {
 public:
  // `files` of a gpt-oss model. `local_seconds`: since 1970 on the local clock; its date is told.
  static base::Result<HarmonyPrompt> open(const ModelFiles& files, std::int64_t local_seconds);

  base::Result<std::vector<std::uint32_t>> ids(std::string_view prompt) const;

 private:
  explicit HarmonyPrompt(Tokenizer plain) : plain_(std::move(plain)) {}

  Tokenizer plain_;  // knows no markers
  std::vector<std::uint32_t> before_;
  std::vector<std::uint32_t> after_;
};

}  // namespace tutti::model
