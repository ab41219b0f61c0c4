#pragma once

// Names earlier versions of the reference client used. A document that still has them is rewritten
// to today's names before it is bound, with one deprecation warning per name. docs/config.md lists
// them.

#include <string_view>
#include <vector>

#include "common/spec/findings.h"

namespace tutti::spec {

struct OldName {
  enum class Rule {
    kCopy,
    kZeroIsNull,  // 0 used to mean "none"
    kOnlyPoisson  // as kZeroIsNull, and dropped unless the run is Poisson with a rate
  };
  std::string_view old_path;
  std::string_view new_path;
  Rule rule;
  std::vector<std::string_view> flags;  // short names the old field had and the new one has not
};

const std::vector<OldName>& old_names();

void rename_old(Tree& tree, Findings& findings);

}  // namespace tutti::spec
