#pragma once

// From a YAML text or file to a Config. Everything wrong is reported at once: syntax, unset
// variables, unknown keys, types, bounds, cross-field rules and things tutti cannot do yet, each
// with file:line, dotted field, value and remedy. Nothing throws. Pure apart from reading the named
// file.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "common/base/result.h"
#include "common/spec/config.h"

namespace tutti::spec {

struct Loaded {
  Config config;
  base::Problems warnings;  // deprecated names, settings without effect, duplicate keys
};

struct Rejected {
  base::ExitCode code = base::ExitCode::kInput;
  base::Problems problems;  // never empty
  base::Problems warnings;
};

using Reading = tl::expected<Loaded, Rejected>;

// Value of an environment variable, nullopt when it is not set. Mains pass process_environment.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

inline constexpr std::size_t kConfigBytesMax = 4U << 20U;

// `file` is only what the problems call the text. Values of `overlay`, a mapping, replace the
// file's.
Reading read_config_file(const std::string& path, const Environment& environment,
                         const Tree& overlay = {});
Reading read_config_text(std::string_view text, std::string_view file,
                         const Environment& environment, const Tree& overlay = {});

// The mode of a run whose command line names none.
RunMode default_mode(const Config& config);

// "run.yaml:14: settings.load_pattern.target_concurrency: "-3" must be > 0"
std::string to_text(const base::Problem& problem);
// One line per problem, in the order found, each starting with two spaces.
std::string to_text(const base::Problems& problems);

}  // namespace tutti::spec
