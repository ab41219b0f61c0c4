#pragma once

// Request bodies, rendered once per row before a run: the reference client's key order and JSON
// form, byte for byte, plus two additions that only appear when asked for: `stream_options` (usage
// in streams) and text prompts for completions. SGLang takes token ids only; a video request is the
// row itself, with a default for each field it does not say. A body may carry a splice point, where
// a warm-up salt
// `[16 hex digits] ` is put in front of the prompt. Pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/vocabulary.h"
#include "common/data/dataset.h"
#include "common/text/json_read.h"

namespace tutti::data {

// Values of the config; absent ones are not sent.
struct BodyParams {
  base::ApiType api = base::ApiType::kOpenAiChat;
  std::string model = "no-model-name";
  bool stream = false;
  // Chat says nothing when not streaming (as the reference does for files); true adds
  // "stream":false.
  bool write_stream_false = false;
  bool include_usage = false;      // only with stream
  std::int64_t max_tokens = 1024;  // chat: max_completion_tokens
  std::int64_t min_tokens = 1;     // completions only, like skip_special_tokens
  bool skip_special_tokens = true;
  std::optional<double> temperature;
  std::optional<text::JsonValue> seed;  // a whole number, up to 64 bits unsigned; chat only
  std::optional<double> top_p;
  std::optional<std::int64_t> top_k;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<text::JsonValue> chat_template_kwargs;  // object; chat only
  // The splice point lies at the start of the system prompt that `messages` begins with; chat only.
  bool splice_system = false;
};

inline constexpr std::int32_t kNoSplice = -1;
// What a system message begins with; its text follows.
inline constexpr std::string_view kSystemMessageHead = R"({"role":"system","content":")";
inline constexpr std::size_t kBodyBytesMax = std::size_t{256} << 20;

struct RenderedBody {
  std::string bytes;
  std::int32_t splice = kNoSplice;  // offset just inside the opening quote of the user's prompt
};

// Renders into `out`, reusing its buffer. The row must come from load_dataset for the same api, or
// from a ConversationSet. What a row says of model, limits and sampling goes before the params.
void render_body(const Row& row, const BodyParams& params, RenderedBody& out);

// Empty, or a line naming the values of the config that have no place in this API's body.
std::string note_of_unsent(const BodyParams& params);

// Why a row cannot be salted, or nullptr. Presence of a key counts even when its value is null.
const char* why_not_saltable(const Row& row);

// Ok, or an error that names the first bad rows (the first reason in the reference's words), for
// warm-up with salt. Index = position in `dataset.rows`.
base::Status check_saltable(const Dataset& dataset);

}  // namespace tutti::data
