#pragma once

// Types of plain YAML 1.1 scalars, as the reference's loader sees them: `on` is a bool, `010` is 8,
// `1:30` is 90, `1e5` is a string, `1.0e+5` a float. Pure; see tests/unit/spec_yaml_test.cc for the
// vectors.

#include <string_view>

#include "common/spec/tree.h"

namespace tutti::spec {

Tree plain_scalar(std::string_view text);

// True when a plain scalar of this text would come back as something other than this string.
bool is_typed_when_plain(std::string_view text);

}  // namespace tutti::spec
