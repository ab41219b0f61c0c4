#pragma once

// What no single field can tell: derived values (names, streaming, per-data-set parameters, pinned
// seeds) and rules between fields. Runs after bind; a rule whose fields already have a problem
// keeps silent, so every message is a cause and not an echo.

#include <string>
#include <string_view>

#include "common/spec/config.h"
#include "common/spec/findings.h"

namespace tutti::spec {

// `tree` is the document `config` was bound from; messages take their places from it.
void apply_rules(const Tree& tree, Config& config, Findings& findings);

// Steps of apply_rules with a file of their own.
void apply_overrides(const Tree& tree, Config& config, Findings& findings);  // per data set
void pin_seeds(const Tree& tree, Config& config, Findings& findings);        // by rule set
void check_distributed(const Tree& tree, Config& config, Findings& findings);
void check_frontends(const Tree& tree, const Config& config, Findings& findings);  // of the above
void check_reach(const Tree& tree, Config& config, Findings& findings);            // of the above
void check_conversations(const Tree& tree, const Config& config, Findings& findings);
// Why a header of the user's cannot have this name; empty: it can.
std::string header_name_problem(const std::string& name);

// Name of a data set without one: the last part of its path without the last suffix.
std::string stem_of(std::string_view path);

}  // namespace tutti::spec
