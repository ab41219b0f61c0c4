#pragma once

// Tree to structs, driven by the schema: unknown keys, types, enums, bounds, support. Every mistake
// is found in one pass; members with a mistake keep their default. Cross-field rules come after
// (rules.h).

#include <string_view>

#include "common/spec/findings.h"
#include "common/spec/schema.h"

namespace tutti::spec {

// Reads the mapping `tree` as the section `section` ("" is the whole table) into `root`, the struct
// the schema is rooted at. `shown_as` is the section's path in messages.
struct Binding {
  const Schema& schema;
  void* root;
  std::string section;
  std::string shown_as;
};
void bind(const Binding& binding, const Tree& tree, Findings& findings);

// The whole document.
void bind_config(const Tree& tree, Config& config, Findings& findings);

}  // namespace tutti::spec
