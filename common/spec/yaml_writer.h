#pragma once

// Tree to YAML in the style of the reference's files: block, two spaces, list dashes at the parent
// key's column, quotes only where a YAML 1.1 reader would see another type. Lines are never folded.

#include <string>
#include <string_view>

#include "common/spec/tree.h"

namespace tutti::spec {

std::string to_yaml(const Tree& tree);

// One scalar as it would stand in a file.
std::string yaml_scalar(const Tree& tree);

// Shortest digits that read back to the same double, always with a dot: 30.0, 1.0e-05, .inf.
std::string yaml_float(double value);

}  // namespace tutti::spec
