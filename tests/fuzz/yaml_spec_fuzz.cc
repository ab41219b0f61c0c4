// Any bytes as a config file, and (when they start with "--") as a command line, one argument per
// line: a Config or problems, never an exception, a crash or an empty refusal. What is accepted is
// dumped, and the dump must read back as the tree it was made from.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/spec/dump.h"
#include "common/spec/flags.h"
#include "common/spec/read.h"
#include "common/spec/redact.h"
#include "common/spec/words.h"
#include "common/spec/yaml_text.h"

namespace {

std::optional<std::string> environment(const std::string& name) {
  return name.size() == 1 ? std::optional<std::string>("x") : std::nullopt;
}

void check_dump(const tutti::spec::Config& config) {
  const std::string yaml = tutti::spec::config_yaml(config);
  tutti::base::Problems problems;
  tutti::base::Problems warnings;
  const tutti::spec::Tree again = tutti::spec::tree_from_yaml(yaml, "dump", problems, warnings);
  TUTTI_CHECK(problems.empty());
  TUTTI_CHECK(same_value(again, redacted(config_tree(config))));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("--")) {
    const auto order = tutti::spec::order_from_flags(tutti::spec::TestType::kOnline,
                                                     tutti::spec::split(text, '\n'));
    TUTTI_CHECK(order || !order.error().problems.empty());
    if (order) {
      check_dump(order->config);
    }
    return 0;
  }
  const auto reading = tutti::spec::read_config_text(text, "fuzz.yaml", environment);
  TUTTI_CHECK(reading || !reading.error().problems.empty());
  if (reading) {
    check_dump(reading->config);
  }
  return 0;
}
