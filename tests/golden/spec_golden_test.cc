// Texts people read: all mistakes of a bad file at once, the help pages, the reference page. Set
// TUTTI_UPDATE_GOLDEN=1 to write them anew, then read the difference before committing it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "common/spec/dump.h"
#include "common/spec/flags.h"
#include "common/spec/read.h"

namespace tutti::spec {
namespace {

const std::string kRoot = TUTTI_SOURCE_DIR;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_golden(const std::string& path, const std::string& text) {
  const char* update = std::getenv("TUTTI_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::ofstream(path, std::ios::binary) << text;
  }
  EXPECT_EQ(content_of(path), text) << path;
}

std::optional<std::string> no_environment(const std::string& /*name*/) { return std::nullopt; }

TEST(SpecGolden, AllMistakesOfAFileAreToldAtOnce) {
  const std::string yaml = content_of(kRoot + "/tests/golden/spec_errors.yaml");
  ASSERT_FALSE(yaml.empty());
  const Reading reading = read_config_text(yaml, "spec_errors.yaml", no_environment);
  ASSERT_FALSE(reading);
  expect_golden(kRoot + "/tests/golden/spec_errors.txt",
                "Problems:\n" + to_text(reading.error().problems) + "Warnings:\n" +
                    to_text(reading.error().warnings));
}

TEST(SpecGolden, HelpOfBenchmark) {
  expect_golden(kRoot + "/tests/golden/spec_help_online.txt", benchmark_help(TestType::kOnline));
  expect_golden(kRoot + "/tests/golden/spec_help_from_config.txt", from_config_help());
}

TEST(SpecGolden, ConcurrencyTemplate) {
  expect_golden(kRoot + "/tests/golden/spec_template_concurrency.yaml",
                template_yaml("concurrency").value());
}

TEST(SpecGolden, CommittedReferencePagesAreUpToDate) {
  expect_golden(kRoot + "/docs/config.md", config_reference_markdown());
  expect_golden(kRoot + "/docs/coming-from-inference-endpoint.md", coming_from_markdown());
}

}  // namespace
}  // namespace tutti::spec
