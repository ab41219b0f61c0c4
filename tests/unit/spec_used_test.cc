// A field that is accepted does something: its member is read by code that is not the schema, or it
// is marked as without effect (which draws a warning), or refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "common/spec/schema.h"

namespace tutti::spec {
namespace {

namespace fs = std::filesystem;

// Names that are read of something: x.name or x->name. Not in the code that carries fields about
// without knowing what they are.
std::set<std::string> names_read() {
  const std::regex read(R"((?:\.|->)([a-z][a-z0-9_]*)\b)");
  std::set<std::string> out;
  for (const char* const tower : {"common", "agent", "coordinator"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(TUTTI_SOURCE_DIR) + "/" + tower)) {
      const std::string path = entry.path().string();
      const bool rules = path.find("/spec/rules") != std::string::npos;
      if (entry.path().extension() != ".cc" ||
          (path.find("/spec/") != std::string::npos && !rules)) {
        continue;
      }
      std::ifstream file(path);
      const std::string text{std::istreambuf_iterator<char>(file),
                             std::istreambuf_iterator<char>()};
      for (std::sregex_iterator at(text.begin(), text.end(), read), end; at != end; ++at) {
        out.insert((*at)[1]);
      }
    }
  }
  return out;
}

std::string leaf(const std::string& path) { return path.substr(path.rfind('.') + 1); }

TEST(SpecUsed, NoFieldIsAcceptedAndIgnored) {
  const std::set<std::string> read = names_read();
  ASSERT_GT(read.size(), 1000U);
  ASSERT_EQ(read.count("enable_cpu_affinity"), 0U) << "an inert field: the search finds too much";
  // For whoever reads the file, and in its dump.
  const std::set<std::string> told = {"version"};
  int looked_at = 0;
  for (const Schema* const schema : {&config_schema(), &dataset_schema()}) {
    for (const Row& row : schema->rows()) {
      if (row.support != Support::kFull || row.kind == FieldKind::kSection ||
          told.count(row.path) != 0) {
        continue;
      }
      ++looked_at;
      EXPECT_EQ(read.count(leaf(row.path)), 1U) << row.path << " is read by nobody";
    }
  }
  EXPECT_GT(looked_at, 80);
}

}  // namespace
}  // namespace tutti::spec
