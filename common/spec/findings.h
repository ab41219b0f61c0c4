#pragma once

// Findings: the problems and warnings of one reading, collected so that all are told at once.
// Values are shortened and secrets never enter. Owned by the reading function.

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/spec/tree.h"

namespace tutti::spec {

class Findings {
 public:
  base::Problems problems;
  base::Problems warnings;

  // About the value of `field`, as `tree` has it.
  void wrong(std::string_view field, const Tree& tree, std::string remedy);
  // About something that is not one value: a rule, a missing field.
  void wrong_at(std::string where, std::string_view field, std::string remedy);
  void warn(std::string_view field, const Tree& tree, std::string remedy);
  void warn_at(std::string where, std::string_view field, std::string remedy);

  // No problem so far concerns this field or anything below it or above it.
  bool is_clean(std::string_view field) const;
};

// A value as messages show it: one line, at most 80 bytes, "<redacted>" when `field` names a
// secret.
std::string shown(std::string_view field, const Tree& tree);

// Where `field` was written, or the nearest thing around it that was.
std::string place_of(const Tree& root, std::string_view field);

}  // namespace tutti::spec
