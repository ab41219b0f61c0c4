#pragma once

// Which column of a file is which cell of a request: renames of the config, the well-known other
// names of a prompt, and the columns an API can use. Internal to this folder. Pure.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/base/vocabulary.h"
#include "common/text/json_read.h"

namespace tutti::data {

using Renames = std::vector<std::pair<std::string, std::string>>;  // target, source

struct ColumnPlan {
  std::vector<std::pair<std::string, std::string>> kept;  // column in the file, name in the row
  std::vector<std::string> notes;
  base::Problems problems;
};

// True: the column may matter, keep its cells until the plan is made.
bool may_matter(std::string_view column, const Renames& parser, base::ApiType api);

// `columns`: all of the file, in order of first appearance.
ColumnPlan plan_columns(const std::vector<std::string>& columns, const Renames& parser,
                        base::ApiType api, const std::string& path);

// A cell as the request needs it. CSV cells are text: those that must be JSON are read here. Empty
// return: good (and `cell` may have changed); else what is wrong and what would be right.
std::string check_cell(std::string_view name, text::JsonValue& cell, bool from_csv,
                       base::ApiType api);

}  // namespace tutti::data
