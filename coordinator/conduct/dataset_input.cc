#include "coordinator/conduct/dataset_input.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/log.h"
#include "common/spec/read.h"
#include "coordinator/conduct/harmony_rows.h"
#include "coordinator/conduct/random_rows.h"
#include "coordinator/conduct/row_choice.h"

namespace tutti::conduct {

base::Result<data::Dataset> read_dataset(const spec::Config& config,
                                         const spec::DatasetSpec& wanted,
                                         std::optional<std::string> truth_column) {
  const base::ApiType api = config.endpoint_config.api_type;
  auto chosen = choose_rows(wanted);
  if (!chosen) {
    return tl::unexpected(chosen.error());
  }
  if (chosen->random) {
    return random_rows(wanted, *chosen, api);
  }
  // SGLang has no column of text prompts; completions have, and are named like it otherwise.
  chosen->file.api = wants_harmony(config) ? base::ApiType::kOpenAiCompletions : api;
  chosen->file.truth_column = std::move(truth_column);
  chosen->file.progress = [&wanted](std::size_t rows) {
    base::log_info("dataset", fmt::format("{}: {} rows read so far", wanted.name, rows));
  };
  auto loaded = data::load_dataset(chosen->file);
  if (!loaded) {
    return base::fail(base::ExitCode::kSetup,
                      "Failed to load dataset:\n" + spec::to_text(loaded.error()));
  }
  pick_rows(*chosen, *loaded);
  return std::move(*loaded);
}

base::Result<AccuracyInput> read_accuracy_set(const spec::Config& config,
                                              const accuracy::Scored& scored) {
  const spec::DatasetSpec& wanted = config.datasets[scored.dataset];
  auto dataset = read_dataset(config, wanted, scored.method.truth_column);
  if (!dataset) {
    return tl::unexpected(dataset.error());
  }
  AccuracyInput out;
  out.name = wanted.name;
  out.dataset = std::move(*dataset);
  out.method = scored.method;
  out.repeats = static_cast<std::uint64_t>(wanted.accuracy_config.num_repeats);
  return out;
}

}  // namespace tutti::conduct
