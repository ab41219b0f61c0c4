#pragma once

// The way back from a Config to text: the resolved, redacted config.yaml of a run folder, and the
// templates of `init`. Same table, same order as the reader; a dump loads again to the same Config
// (apart from what was redacted). Pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/config.h"

namespace tutti::spec {

// Schema order; fields that are null are left out; secrets and URL credentials are redacted;
// `distributed` appears only when something in it differs from the default.
std::string config_yaml(const Config& config);
// The same before redaction: never print it.
Tree config_tree(const Config& config);

// What `init KIND` writes, or nullopt for an unknown kind.
std::optional<std::string> template_yaml(std::string_view kind);
// "concurrency", "eval", "offline", "online", "submission"
const std::vector<std::string>& template_kinds();

// docs/config.md.
std::string config_reference_markdown();

// docs/coming-from-inference-endpoint.md.
std::string coming_from_markdown();

}  // namespace tutti::spec
