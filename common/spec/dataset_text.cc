#include "common/spec/dataset_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::size_t kKeyDepthMax = 16;

struct Line {
  std::string_view where;
  std::string_view field;
};

Tree text_at(std::string_view value, std::string_view where) {
  Tree tree = Tree::of_string(std::string(value));
  tree.where = where;
  return tree;
}

// Adds `key=value`, making mappings on the way; false when a part of the key already is a text.
bool add_option(Tree& dataset, const std::vector<std::string>& parts, Tree value,
                std::string_view where) {
  Tree* node = &dataset;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    Tree* below = node->find(parts[i]);
    if (below == nullptr) {
      Tree map = Tree::map();
      map.where = where;
      below = &node->set(parts[i], std::move(map));
    }
    if (!below->is_map()) {
      return false;
    }
    node = below;
  }
  node->set(parts.back(), std::move(value));
  return true;
}

void check_parser(const Tree& dataset, const Line& line, Findings& findings) {
  const Tree* parser = dataset.find("parser");
  if (parser == nullptr || !parser->is_map()) {
    return;
  }
  std::vector<std::string> unknown;
  for (const Tree::Entry& entry : parser->entries) {
    if (entry.key != "prompt" && entry.key != "system") {
      unknown.push_back(fmt::format("'{}'", entry.key));
    }
  }
  std::sort(unknown.begin(), unknown.end());
  if (!unknown.empty()) {
    findings.wrong_at(std::string(line.where), fmt::format("{}.parser", line.field),
                      fmt::format("Unknown parser remap target(s): {{{}}}; valid ['prompt', "
                                  "'system']; a YAML file may name others",
                                  joined(unknown, ", ")));
  }
}

}  // namespace

Tree dataset_from_text(std::string_view text, std::string_view where, std::string_view field,
                       Findings& findings) {
  const Line line{where, field};
  const std::vector<std::string> parts = split(text, ',');
  Tree dataset = Tree::map();
  dataset.where = where;

  std::string_view path = parts[0];
  const std::string_view prefix = path.substr(0, std::min(path.find(':'), path.size()));
  if (prefix.size() < path.size() && (prefix == "perf" || prefix == "acc")) {
    path.remove_prefix(prefix.size() + 1);
  } else {
    path = parts[0];
  }
  const bool is_accuracy = path.size() < parts[0].size() && prefix == "acc";
  dataset.set("path", text_at(path, where));
  dataset.set("type", text_at(is_accuracy ? "accuracy" : "performance", where));

  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& option = parts[i];
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) {
      const bool colon = option.find(':') != std::string::npos;
      findings.wrong_at(
          std::string(where), field,
          fmt::format("Invalid option '{}'. Format: key=value (PATH,key=value,...; "
                      "dotted keys nest){}",
                      shown(option.substr(0, option.find(':')), text_at(option, where)),
                      colon ? "; did you mean '=' instead of ':'?" : ""));
      continue;
    }
    const std::string key = option.substr(0, equals);
    const std::vector<std::string> keys = split(key, '.');
    if (keys.size() > kKeyDepthMax) {
      findings.wrong_at(std::string(where), field,
                        fmt::format("nested deeper than {} keys", kKeyDepthMax));
    } else if (!add_option(dataset, keys, text_at(option.substr(equals + 1), where), where)) {
      findings.wrong_at(
          std::string(where), field,
          fmt::format("Conflicting option '{}': a part of it already has a value", key));
    }
  }
  check_parser(dataset, line, findings);
  return dataset;
}

}  // namespace tutti::spec
