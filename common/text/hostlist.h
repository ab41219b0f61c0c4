#pragma once

// Slurm host lists ("gpu[01-03,7],login1") to names, for places without scontrol (containers).
// A list is names parted by commas, each with any number of [numbers and ranges]; the right-most
// group varies fastest; a number keeps the width it was written with when it begins with 0, a range
// that of its first number. Blanks and empty items are skipped. Pure; any thread.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace tutti::text {

inline constexpr std::size_t kHostsMax = 65'536;

// The names in the order of the list, doubles kept. kInput when a bracket is open, empty or not
// numbers, when a range runs backwards, when an item has more than 8 groups or 255 characters of
// text, or when there would be more than kHostsMax names.
base::Result<std::vector<std::string>> expand_hostlist(std::string_view list);

}  // namespace tutti::text
