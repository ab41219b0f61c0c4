#include "coordinator/conduct/harmony_rows.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "common/model/harmony.h"
#include "coordinator/conduct/token_rows.h"

namespace tutti::conduct {
namespace {

using base::ExitCode;
using text::JsonValue;

const std::string& tokenizer_name(const spec::Config& config) {
  const auto& given = config.model_params.tokenizer_name;
  return given ? *given : config.model_params.name;
}

bool is_text_row(const data::Row& row) {
  const JsonValue* const ids = row.cells.find("input_tokens");
  const JsonValue* const prompt = row.cells.find("prompt");
  return (ids == nullptr || ids->is_null()) && prompt != nullptr && prompt->is_string();
}

data::Row with_tokens(const data::Row& row, JsonValue ids) {
  std::vector<JsonValue::Member> cells;
  for (const auto& member : row.cells.members()) {
    if (member.first != "prompt" && member.first != "input_tokens") {
      cells.push_back(member);
    }
  }
  cells.emplace_back("input_tokens", std::move(ids));
  return {JsonValue::of_object(std::move(cells)), row.line};
}

}  // namespace

bool wants_harmony(const spec::Config& config) {
  const base::ApiType api = config.endpoint_config.api_type;
  const bool takes_tokens =
      api == base::ApiType::kSglang || api == base::ApiType::kOpenAiCompletions;
  return takes_tokens && (model::speaks_harmony(config.model_params.name) ||
                          model::speaks_harmony(tokenizer_name(config)));
}

base::Status tell_in_harmony(const spec::Config& config, std::int64_t local_seconds,
                             data::Dataset& dataset) {
  std::optional<model::HarmonyPrompt> harmony;
  std::size_t told = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
    data::Row& row = dataset.rows[i];
    if (!is_text_row(row)) {
      continue;
    }
    if (!harmony) {
      const auto files = read_tokenizer(tokenizer_name(config));
      auto opened =
          files ? model::HarmonyPrompt::open(*files, local_seconds) : tl::unexpected(files.error());
      if (!opened) {
        return base::fail(
            ExitCode::kSetup,
            fmt::format("text prompts of a gpt-oss model are sent as token ids in Harmony's form, "
                        "which needs its tokenizer: {}. Give it as model_params.tokenizer_name, "
                        "or give input_tokens",
                        opened.error().message));
      }
      harmony.emplace(std::move(*opened));
    }
    const auto ids = harmony->ids(row.cells.find("prompt")->as_string());
    if (!ids) {
      return base::fail(ExitCode::kSetup,
                        fmt::format("{}: {}", dataset.where(i), ids.error().message));
    }
    bytes += ids->size() * sizeof(JsonValue);
    if (bytes > data::kDatasetBytesMax) {
      return base::fail(ExitCode::kSetup,
                        "the prompts' token ids need more than 4 GiB of memory; take fewer with "
                        "samples=N");
    }
    row = with_tokens(row, json_of(*ids));
    ++told;
  }
  if (told > 0) {
    dataset.notes.push_back(
        fmt::format("{} text prompts are sent as token ids in Harmony's form, with the tokenizer "
                    "of {}",
                    told, tokenizer_name(config)));
  }
  return {};
}

}  // namespace tutti::conduct
