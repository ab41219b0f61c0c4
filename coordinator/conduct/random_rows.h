#pragma once

// The rows of the predefined data set `random`: the drawn token ids as the tokenizer of
// generate_params writes them, and where token ids are sent, as it reads that text again (which
// need not be the drawn ids). May fetch the tokenizer from the hub. Blocking; called once per run.

#include "common/base/result.h"
#include "common/base/vocabulary.h"
#include "common/data/dataset.h"
#include "common/spec/config.h"
#include "coordinator/conduct/row_choice.h"

namespace tutti::conduct {

// `choice.random` is there.
base::Result<data::Dataset> random_rows(const spec::DatasetSpec& wanted, const RowChoice& choice,
                                        base::ApiType api);

}  // namespace tutti::conduct
