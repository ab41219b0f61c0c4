#pragma once

// Command lines of `benchmark offline|online|from-config`, read by the same schema table as the
// YAML. A flag is the field's dotted path in kebab case, with or without `settings.`, its flattened
// name, or an alias; docs/config.md lists them. Everything wrong with a command line is reported at
// once. Global flags (-v, --version, --help) are taken out first, wherever they stand.

#include <optional>
#include <string>
#include <vector>

#include "common/spec/read.h"

namespace tutti::spec {

struct GlobalFlags {
  int verbosity = 0;  // ≥ 2: debug lines
  bool help = false;
  bool version = false;
};

// Removes -v, -vv…, --verbose, -h, --help and --version from `args`.
GlobalFlags take_global_flags(std::vector<std::string>& args);

// A benchmark that was asked for: what to run and in which mode.
struct Order {
  Config config;
  RunMode mode = RunMode::kPerf;
  base::Problems warnings;
};
using Ordering = tl::expected<Order, Rejected>;

// `args`: what follows `benchmark offline` / `benchmark online`. `type` is the word itself.
// Rejected with kInput when only --dataset values are wrong, else with kUsage.
Ordering order_from_flags(TestType type, const std::vector<std::string>& args);

// `args`: what follows `benchmark from-config`: --config/-c (required), --timeout, --mode,
// --accuracy-only, --report-dir, and every flag of `distributed`.
Ordering order_from_config(const std::vector<std::string>& args, const Environment& environment);

// Texts of --help: usage, then the flags by group with type, default and meaning.
std::string benchmark_help(TestType type);
std::string from_config_help();

}  // namespace tutti::spec
