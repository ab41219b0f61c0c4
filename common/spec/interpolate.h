#pragma once

// Environment references in string values: ${NAME}, $NAME, ${NAME:-default}; `$$` is one dollar.
// One pass from left to right, not recursive. Only values are touched, never keys, numbers or
// bools.

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/spec/read.h"
#include "common/spec/tree.h"

namespace tutti::spec {

// Fails, naming the variable, when one without a default is not set.
base::Result<std::string> interpolated(std::string_view text, const Environment& environment);

// Through the whole tree; one problem per string that could not be filled.
void interpolate(Tree& tree, const Environment& environment, base::Problems& problems);

}  // namespace tutti::spec
