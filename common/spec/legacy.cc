#include "common/spec/legacy.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "common/spec/coerce.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

// The mapping at `path`, made if it is not there; null when something else stands in the way.
Tree* section_at(Tree& root, std::string_view path, const std::string& where) {
  Tree* node = &root;
  for (const std::string& part : split(path, '.')) {
    Tree* below = node->find(part);
    if (below == nullptr) {
      Tree map = Tree::map();
      map.where = where;
      below = &node->set(part, std::move(map));
    }
    if (!below->is_map()) {
      return nullptr;
    }
    node = below;
  }
  return node;
}

bool is_sized_poisson(const Tree& root) {
  const Tree* type = root.find_path("settings.load_pattern.type");
  const Tree* qps = root.find_path("settings.load_pattern.target_qps");
  return type != nullptr && type->text == "poisson" && qps != nullptr && !qps->is_null();
}

void take_old(Tree& root, const OldName& name, Findings& findings) {
  const std::string_view parent = parent_of(name.old_path);
  Tree* holder = &root;
  for (const std::string& part : split(parent, '.')) {
    holder = part.empty() ? holder : holder->find(part);
    if (holder == nullptr) {
      return;
    }
  }
  const Tree* old = holder->find(leaf_of(name.old_path));
  if (old == nullptr) {
    return;
  }
  Tree value = *old;
  holder->erase(leaf_of(name.old_path));
  const auto number = name.rule == OldName::Rule::kCopy ? Coerced<double>(1.0) : to_float(value);
  if (number && *number == 0.0) {
    const std::string where = value.where;
    value = Tree{};
    value.where = where;
  }
  if (root.find_path(name.new_path) != nullptr) {
    findings.warn_at(value.where, name.old_path,
                     fmt::format("is an old name of {}, which is set too and wins", name.new_path));
    return;
  }
  if (name.rule == OldName::Rule::kOnlyPoisson && !is_sized_poisson(root)) {
    findings.warn_at(value.where, name.old_path,
                     fmt::format("is an old name of {} and has no effect any more without poisson "
                                 "and target_qps: the data set is issued once; n_samples_to_issue "
                                 "asks for more",
                                 name.new_path));
    return;
  }
  findings.warn_at(value.where, name.old_path,
                   fmt::format("is an old name; write {}", name.new_path));
  Tree* section = section_at(root, parent_of(name.new_path), value.where);
  if (section != nullptr) {
    section->set(leaf_of(name.new_path), std::move(value));
  }
}

}  // namespace

const std::vector<OldName>& old_names() {
  using Rule = OldName::Rule;
  static const std::vector<OldName> kNames{
      {"settings.runtime.min_duration_ms",
       "settings.runtime.min_issue_duration_ms",
       Rule::kOnlyPoisson,
       {"duration"}},
      {"settings.runtime.max_duration_ms",
       "settings.runtime.max_issue_duration_ms",
       Rule::kZeroIsNull,
       {}},
      {"timeout", "settings.timeouts.run_timeout_s", Rule::kCopy, {}},
      {"settings.drain.warmup_timeout_s",
       "settings.timeouts.warmup_drain_timeout_s",
       Rule::kCopy,
       {}},
      {"settings.drain.performance_timeout_s",
       "settings.timeouts.performance_drain_timeout_s",
       Rule::kCopy,
       {}},
      {"settings.drain.accuracy_timeout_s",
       "settings.timeouts.accuracy_drain_timeout_s",
       Rule::kCopy,
       {}},
      {"settings.drain.metrics_drain_timeout_s",
       "settings.timeouts.metrics_drain_timeout_s",
       Rule::kZeroIsNull,
       {}},
      {"settings.drain.metrics_tokenizer_workers",
       "settings.metrics_tokenizer_workers",
       Rule::kCopy,
       {}},
      {"settings.service_ready_timeout_s",
       "settings.timeouts.service_ready_timeout_s",
       Rule::kCopy,
       {}},
  };
  return kNames;
}

void rename_old(Tree& tree, Findings& findings) {
  for (const OldName& name : old_names()) {
    take_old(tree, name, findings);
  }
  // `drain` held nothing else; what is left in it is unknown and is told as such.
  if (Tree* settings = tree.find("settings"); settings != nullptr) {
    const Tree* drain = settings->find("drain");
    if (drain != nullptr && drain->is_map() && drain->entries.empty()) {
      settings->erase("drain");
    }
  }
}

}  // namespace tutti::spec
