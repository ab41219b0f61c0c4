#include "coordinator/conduct/random_rows.h"

#include <fmt/format.h>

#include <utility>

#include "common/data/random_prompts.h"
#include "common/model/tokenizer.h"
#include "coordinator/conduct/token_rows.h"

namespace tutti::conduct {
namespace {

using base::ExitCode;
using text::JsonValue;

base::Status check(const spec::DatasetSpec& wanted, const data::RandomPrompts& params,
                   base::ApiType api) {
  if (wanted.type == spec::DatasetType::kAccuracy) {
    return base::fail(ExitCode::kInput,
                      "data set 'random' has no right answers: it is for type: performance");
  }
  if (api == base::ApiType::kSglang && !params.save_tokenized_data) {
    return base::fail(ExitCode::kInput,
                      "api_type sglang sends token ids, which data set 'random' has with "
                      "generate_params.save_tokenized_data: true only");
  }
  return {};
}

}  // namespace

base::Result<data::Dataset> random_rows(const spec::DatasetSpec& wanted, const RowChoice& choice,
                                        base::ApiType api) {
  const data::RandomPrompts& params = *choice.random;
  if (auto status = check(wanted, params, api); !status) {
    return tl::unexpected(status.error());
  }
  const auto files = read_tokenizer(params.tokenizer);
  const auto tokenizer = files ? model::Tokenizer::open(files->tokenizer_json, files->name)
                               : tl::unexpected(files.error());
  if (!tokenizer) {
    return base::fail(ExitCode::kSetup, fmt::format("generate_params.tokenizer of data set "
                                                    "'random': {}",
                                                    tokenizer.error().message));
  }
  const std::uint64_t vocab = tokenizer->vocab_size(false);
  if (vocab == 0) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("generate_params.tokenizer: {} has no tokens", params.tokenizer));
  }
  const bool send_ids = params.save_tokenized_data &&
                        (api == base::ApiType::kSglang || api == base::ApiType::kOpenAiCompletions);
  data::Dataset out;
  out.path = data::kRandomSet;
  out.format = data::kRandomSet;
  out.notes = choice.notes;
  auto sequences = data::draw_sequences(params, vocab);
  if (choice.first && *choice.first < sequences.size()) {
    sequences.resize(*choice.first);
    out.ended_by_samples = true;
  }
  std::vector<std::uint32_t> ids;
  std::size_t bytes = 0;
  for (const data::RandomSequence& sequence : sequences) {
    data::write_ids(sequence, vocab, ids);
    auto prompt = tokenizer->decode(ids);
    if (!prompt) {
      return tl::unexpected(prompt.error());
    }
    data::Row row;
    if (send_ids) {
      const auto again = tokenizer->encode(*prompt);
      if (!again) {
        return tl::unexpected(again.error());
      }
      row.cells = JsonValue::of_object({{"input_tokens", json_of(*again)}});
      bytes += again->size() * sizeof(JsonValue);
    } else {
      bytes += prompt->size();
      row.cells = JsonValue::of_object({{"prompt", JsonValue::of_string(std::move(*prompt))}});
    }
    if (bytes > data::kDatasetBytesMax) {
      return base::fail(ExitCode::kInput,
                        "the prompts of data set 'random' need more than 4 GiB of memory: take a "
                        "smaller num_sequences or input_seq_length");
    }
    out.rows.push_back(std::move(row));
  }
  out.notes.push_back(fmt::format(
      "data set 'random': {} prompts of {} to {} tokens are drawn, "
      "seed {}",
      out.rows.size(), data::shortest_of(params), params.input_seq_length, params.random_seed));
  return out;
}

}  // namespace tutti::conduct
