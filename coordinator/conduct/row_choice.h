#pragma once

// Which rows a data set of the config means: a file, a predefined set of the reference client
// by its name, or the one that is drawn (`random`). A file that exists wins unless the predefined
// name was written by the user; what was chosen goes to the notes. Looks for files, reads none.

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/data/dataset.h"
#include "common/data/predefined.h"
#include "common/data/random_prompts.h"
#include "common/spec/config.h"

namespace tutti::conduct {

struct RowChoice {
  data::DatasetRequest file;  // without api and truth_column
  std::optional<data::RowPick> pick;
  std::optional<data::RandomPrompts> random;  // no file at all
  std::optional<std::uint64_t> first;         // of those picked or drawn
  std::vector<std::string> notes;
};

base::Result<RowChoice> choose_rows(const spec::DatasetSpec& wanted);

// Leaves the chosen rows in `dataset`, in their order; adds the notes to its.
void pick_rows(const RowChoice& choice, data::Dataset& dataset);

}  // namespace tutti::conduct
