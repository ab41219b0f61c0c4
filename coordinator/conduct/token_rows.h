#pragma once

// What the makers of token ids share: a tokenizer by its name, and ids as a row's cell.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/model/model_files.h"
#include "common/text/json_read.h"

namespace tutti::conduct {

// `name`: a path, or org/name at the hub, which is fetched when it is not here. Blocking.
base::Result<model::ModelFiles> read_tokenizer(const std::string& name);

text::JsonValue json_of(const std::vector<std::uint32_t>& ids);

}  // namespace tutti::conduct
