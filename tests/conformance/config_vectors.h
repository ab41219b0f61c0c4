#pragma once

// The vectors of tests/conformance/config/*.txt: what a config file, a command line or one value of
// either must come to. A file is a list of groups, `@@ SECTION KIND`, each with cases. Kinds with a
// table have one case a line, `ID | in | out`; the others have blocks that end at an empty line:
// `[ID]`, the input, then expectations `=> WORD TEXT`. README in that folder says what the words
// mean. Test code only; a broken file fails by exception.

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tutti::conformance {

struct ConfigCase {
  std::string section;  // of the behaviour's description: "1.10"
  std::string kind;     // "config", "flags", …
  std::string id;       // "CV2"
  std::string input;
  std::string output;                                        // tables only
  std::vector<std::pair<std::string, std::string>> expects;  // blocks only: word and text
  std::string place;                                         // file:line
};

// All cases of all files, in order. Ids are unique within a section.
std::vector<ConfigCase> load_config_cases(const std::string& folder);

// Cases per section, in order of the section's number.
std::vector<std::pair<std::string, int>> count_by_section(const std::vector<ConfigCase>& cases);

}  // namespace tutti::conformance
