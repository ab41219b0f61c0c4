#pragma once

// Which names on a command line mean which field: dotted paths with and without `settings.`,
// flattened names, aliases, `no-` forms of bools, and the old names. '_' and '-' are the same.
// Derived from the schema once.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/schema.h"

namespace tutti::spec {

struct FlagTarget {
  const Row* row = nullptr;  // null for an old name: its value is taken as it is
  std::string path;          // where the value goes in the document
  std::string sub_key;       // key inside a free mapping, as typed
  bool is_negated = false;   // --no-x
  bool is_deprecated = false;
};

// What a name without its dashes means; nullopt when nothing.
std::optional<FlagTarget> flag_target(std::string_view name);
// The section a name means when its value is a JSON mapping.
const Row* flag_section(std::string_view name);

// The name shown first, and the aliases after it; without dashes.
std::string flag_name(const Row& row);
std::vector<std::string> flag_aliases(const Row& row);
// Every name, for a did-you-mean.
const std::vector<std::string>& all_flag_names();

}  // namespace tutti::spec
