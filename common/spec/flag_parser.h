#pragma once

// Arguments to a document: names are looked up in flag_names, values stay texts (typed later by the
// same code that types YAML), every value remembers its flag. Grammar only; knows no files.

#include <optional>
#include <string>
#include <vector>

#include "common/spec/findings.h"

namespace tutti::spec {

// Flags that are not fields of the file.
struct CommandFlags {
  std::optional<std::string> mode;
  std::optional<std::string> config_path;
  std::optional<bool> accuracy_only;
  std::vector<std::string> datasets;
  bool json_values = false;  // values of free-form keys are JSON
};

struct FlagGrammar {
  bool takes_fields = true;   // every field; else only those of `distributed`, report_dir, timeout
  bool takes_config = false;  // --config, -c
  bool takes_datasets = true;
};

struct ParsedFlags {
  CommandFlags command;
  Tree document = Tree::map();
};

ParsedFlags parse_flags(const FlagGrammar& grammar, const std::vector<std::string>& args,
                        Findings& findings);

}  // namespace tutti::spec
