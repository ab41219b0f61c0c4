#include "common/spec/flag_names.h"

#include <algorithm>
#include <array>

#include "common/spec/legacy.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kSettings = "settings.";
// The reference drops these sections' names from the flags of their fields.
constexpr std::array<std::string_view, 3> kFlattened{"settings.load_pattern", "settings.warmup",
                                                     "settings.profiling"};

std::string without_settings(std::string_view path) {
  return std::string(path.starts_with(kSettings) ? path.substr(kSettings.size()) : path);
}

// "a.b.leaf" is refused by "a.b.no-leaf".
std::string negated(std::string_view name) {
  const std::string_view parent = parent_of(name);
  return (parent.empty() ? "" : std::string(parent) + ".") + "no-" + std::string(leaf_of(name));
}

struct Names {
  std::map<std::string, FlagTarget> targets;
  std::map<std::string, const Row*> sections;
  std::vector<std::string> all;

  void add(const std::string& name, FlagTarget target) {
    if (targets.emplace(name, std::move(target)).second) {
      all.push_back(name);
    }
  }
};

void add_row(Names& names, const Row& row) {
  std::vector<std::string> spellings{flag_name(row), kebab(without_settings(row.path)),
                                     kebab(row.path)};
  spellings.insert(spellings.end(), row.flags.begin(), row.flags.end());
  for (const std::string& spelling : spellings) {
    names.add(spelling, {&row, row.path, {}, false, false});
    if (row.kind == FieldKind::kBool) {
      names.add(negated(spelling), {&row, row.path, {}, true, false});
    }
  }
}

Names built() {
  Names names;
  for (const Row& row : config_schema().rows()) {
    if (row.kind == FieldKind::kSection) {
      names.sections.emplace(kebab(without_settings(row.path)), &row);
      names.sections.emplace(kebab(row.path), &row);
    } else if (row.kind != FieldKind::kDatasets && row.kind != FieldKind::kIgnored) {
      add_row(names, row);
    }
  }
  for (const OldName& old : old_names()) {
    std::vector<std::string> spellings{kebab(without_settings(old.old_path)), kebab(old.old_path)};
    spellings.insert(spellings.end(), old.flags.begin(), old.flags.end());
    for (const std::string& spelling : spellings) {
      names.add(spelling, {nullptr, std::string(old.old_path), {}, false, true});
    }
  }
  const Row* drain = config_schema().find("settings.warmup.drain");
  names.add("drain", {drain, drain->path, {}, false, true});
  return names;
}

const Names& names() {
  static const Names kNames = built();
  return kNames;
}

}  // namespace

std::optional<FlagTarget> flag_target(std::string_view name) {
  const auto found = names().targets.find(kebab(name));
  if (found != names().targets.end()) {
    return found->second;
  }
  // A key inside a free mapping: the longest part before a dot that names one.
  for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = name.rfind('.', dot - 1)) {
    const auto tree = names().targets.find(kebab(name.substr(0, dot)));
    const bool is_free = tree != names().targets.end() && tree->second.row != nullptr &&
                         tree->second.row->kind == FieldKind::kTree;
    if (is_free && dot + 1 < name.size()) {
      FlagTarget target = tree->second;
      target.sub_key = name.substr(dot + 1);
      return target;
    }
  }
  return std::nullopt;
}

const Row* flag_section(std::string_view name) {
  const auto found = names().sections.find(kebab(name));
  return found == names().sections.end() ? nullptr : found->second;
}

std::string flag_name(const Row& row) {
  if (row.path == "settings.load_pattern.type") {
    return "load-pattern";
  }
  if (row.path == "settings.warmup.drain") {
    return "warmup-drain";
  }
  const std::string_view parent = parent_of(row.path);
  const bool is_flat = std::find(kFlattened.begin(), kFlattened.end(), parent) != kFlattened.end();
  return kebab(is_flat ? std::string(leaf_of(row.path)) : without_settings(row.path));
}

std::vector<std::string> flag_aliases(const Row& row) {
  std::vector<std::string> aliases = row.flags;
  std::erase(aliases, flag_name(row));
  return aliases;
}

const std::vector<std::string>& all_flag_names() { return names().all; }

}  // namespace tutti::spec
