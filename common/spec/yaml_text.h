#pragma once

// YAML 1.1 text to Tree: the one place that knows the YAML library. Anchors, aliases and merge keys
// are resolved, the last of duplicate keys wins with a warning, every node gets "file:line". Size,
// depth and node count are bounded, so an alias bomb is a problem, not a full memory. Nothing
// throws.

#include <cstddef>
#include <string_view>

#include "common/base/result.h"
#include "common/spec/tree.h"

namespace tutti::spec {

inline constexpr std::size_t kYamlDepthMax = 64;
inline constexpr std::size_t kYamlNodesMax = 100'000;

// The single document of `text`. When problems were added the tree is incomplete and not for use.
Tree tree_from_yaml(std::string_view text, std::string_view file, base::Problems& problems,
                    base::Problems& warnings);

}  // namespace tutti::spec
