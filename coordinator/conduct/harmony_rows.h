#pragma once

// Text prompts of gpt-oss models for the APIs that take token ids (completions, SGLang): each is
// put into its Harmony form, as the reference client does it. Whether that is to be done hangs on
// the model's name, as a text prompt is a good completions request for any other. May fetch the
// tokenizer from the hub. Blocking; called once per data set.

#include <cstdint>

#include "common/base/result.h"
#include "common/data/dataset.h"
#include "common/spec/config.h"

namespace tutti::conduct {

bool wants_harmony(const spec::Config& config);

// Rows with a text prompt and no token ids have input_tokens instead of it afterwards.
// `local_seconds`: since 1970 on the local clock; the prompts tell its date.
base::Status tell_in_harmony(const spec::Config& config, std::int64_t local_seconds,
                             data::Dataset& dataset);

}  // namespace tutti::conduct
