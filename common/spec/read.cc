#include "common/spec/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "common/spec/bind.h"
#include "common/spec/interpolate.h"
#include "common/spec/legacy.h"
#include "common/spec/rules.h"
#include "common/spec/yaml_text.h"

namespace tutti::spec {
namespace {

// The line of "file:line", 0 for any other place.
long line_of(std::string_view where, std::string_view file) {
  if (!where.starts_with(file) || where.size() <= file.size() + 1 || where[file.size()] != ':') {
    return 0;
  }
  return std::strtol(std::string(where.substr(file.size() + 1)).c_str(), nullptr, 10);
}

// As a reader goes through the file: flags first, then by line.
void sort_by_line(base::Problems& problems, std::string_view file) {
  std::stable_sort(problems.begin(), problems.end(),
                   [file](const base::Problem& a, const base::Problem& b) {
                     return line_of(a.where, file) < line_of(b.where, file);
                   });
}

tl::unexpected<Rejected> rejected(Findings findings) {
  return tl::unexpected<Rejected>(
      Rejected{base::ExitCode::kInput, std::move(findings.problems), std::move(findings.warnings)});
}

std::string_view kind_name(Tree::Kind kind) {
  switch (kind) {
    case Tree::Kind::kNull:
      return "NoneType";
    case Tree::Kind::kBool:
      return "bool";
    case Tree::Kind::kInt:
      return "int";
    case Tree::Kind::kFloat:
      return "float";
    case Tree::Kind::kString:
      return "str";
    case Tree::Kind::kDate:
      return "date";
    case Tree::Kind::kList:
      return "list";
    case Tree::Kind::kMap:
      break;
  }
  return "dict";
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Reading read_config_text(std::string_view text, std::string_view file,
                         const Environment& environment, const Tree& overlay) {
  Findings findings;
  if (text.size() > kConfigBytesMax) {
    findings.wrong_at(
        std::string(file), {},
        fmt::format("is larger than {} bytes; is it a config file?", kConfigBytesMax));
    return rejected(std::move(findings));
  }
  Tree tree = tree_from_yaml(text, file, findings.problems, findings.warnings);
  if (findings.problems.empty() && !tree.is_map()) {
    findings.wrong_at(tree.where, {},
                      fmt::format("Expected YAML mapping, got {}", kind_name(tree.kind)));
  }
  if (!findings.problems.empty()) {
    return rejected(std::move(findings));
  }
  Loaded loaded;
  interpolate(tree, environment, findings.problems);
  rename_old(tree, findings);
  if (overlay.is_map()) {
    const std::string where = tree.where;
    tree = merged(tree, overlay);
    tree.where = where;
  }
  bind_config(tree, loaded.config, findings);
  apply_rules(tree, loaded.config, findings);
  sort_by_line(findings.problems, file);
  sort_by_line(findings.warnings, file);
  if (!findings.problems.empty()) {
    return rejected(std::move(findings));
  }
  loaded.warnings = std::move(findings.warnings);
  return loaded;
}

Reading read_config_file(const std::string& path, const Environment& environment,
                         const Tree& overlay) {
  Findings findings;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file) {
    findings.wrong_at(path, {},
                      errno == ENOENT ? fmt::format("Config file not found: {}", path)
                                      : fmt::format("cannot be read: {}", std::strerror(errno)));
    return rejected(std::move(findings));
  }
  std::string content;
  content.resize(kConfigBytesMax + 1);
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (file.bad() || (file.fail() && !file.eof())) {
    findings.wrong_at(path, {}, "cannot be read; is it a directory?");
    return rejected(std::move(findings));
  }
  content.resize(static_cast<std::size_t>(file.gcount()));
  return read_config_text(content, path, environment, overlay);
}

RunMode default_mode(const Config& config) {
  return config.type == TestType::kSubmission ? RunMode::kBoth : RunMode::kPerf;
}

std::string to_text(const base::Problem& problem) {
  std::string text;
  if (!problem.where.empty()) {
    text += problem.where + ": ";
  }
  if (!problem.field.empty()) {
    text += problem.field + ": ";
  }
  if (!problem.value.empty()) {
    text += fmt::format("\"{}\" ", problem.value);
  }
  return text + problem.remedy;
}

std::string to_text(const base::Problems& problems) {
  std::string text;
  for (const base::Problem& problem : problems) {
    text += fmt::format("  {}\n", to_text(problem));
  }
  return text;
}

}  // namespace tutti::spec
