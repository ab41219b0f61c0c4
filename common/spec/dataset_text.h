#pragma once

// A data set in one line, as --dataset and text items of `datasets` write it:
// [perf|acc:]PATH[,KEY=VALUE]*. The result is the mapping that would mean the same; its values are
// texts, to be typed by the schema.

#include <string_view>

#include "common/spec/findings.h"

namespace tutti::spec {

// `where` and `field` are what problems call it.
Tree dataset_from_text(std::string_view text, std::string_view where, std::string_view field,
                       Findings& findings);

}  // namespace tutti::spec
