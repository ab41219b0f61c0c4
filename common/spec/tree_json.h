#pragma once

// JSON in, for section flags and free-form keys on the command line (`--runtime '{"a": 1}'`). The
// way out is to_json in tree.h. Depth is bounded; nothing throws.

#include <string_view>

#include "common/base/result.h"
#include "common/spec/tree.h"

namespace tutti::spec {

// Every node gets `where`. Fails with the parser's own position in the text, never with the text.
base::Result<Tree> tree_from_json(std::string_view text, std::string_view where);

}  // namespace tutti::spec
