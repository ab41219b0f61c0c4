#include "common/spec/dump.h"

#include "common/spec/redact.h"
#include "common/spec/schema.h"
#include "common/spec/words.h"
#include "common/spec/yaml_writer.h"

namespace tutti::spec {
namespace {

// Free mappings as they are, without their null entries.
Tree without_nulls(const Tree& tree) {
  Tree result = tree;
  std::erase_if(result.entries, [](const Tree::Entry& entry) { return entry.value.is_null(); });
  for (Tree::Entry& entry : result.entries) {
    entry.value = without_nulls(entry.value);
  }
  for (Tree& item : result.items) {
    item = without_nulls(item);
  }
  return result;
}

bool is_present(const void* root, const Row& section) {
  return !section.has_address() || *static_cast<const bool*>(address_in(root, section));
}

Tree section_tree(const Schema& schema, const void* root, std::string_view section) {
  Tree tree = Tree::map();
  for (const Row* row : schema.children(section)) {
    const std::string_view leaf = leaf_of(row->path);
    if (row->kind == FieldKind::kSection) {
      if (is_present(root, *row)) {
        tree.set(leaf, section_tree(schema, root, row->path));
      }
    } else if (row->kind == FieldKind::kDatasets) {
      Tree list = Tree::list();
      for (const DatasetSpec& dataset :
           *static_cast<const std::vector<DatasetSpec>*>(address_in(root, *row))) {
        list.items.push_back(section_tree(dataset_schema(), &dataset, ""));
      }
      tree.set(leaf, std::move(list));
    } else if (row->has_address()) {
      Tree value = without_nulls(value_in(root, *row));
      if (!value.is_null()) {
        tree.set(leaf, std::move(value));
      }
    }
  }
  return tree;
}

}  // namespace

Tree config_tree(const Config& config) {
  Tree tree = section_tree(config_schema(), &config, "");
  if (config.settings.load_pattern.type != Pattern::kPoisson) {
    tree.find("settings")->find("load_pattern")->erase("use_legacy_loadgen_qps_metrics");
  }
  static const Config kDefault{};
  static const Tree kDefaultBlock = section_tree(config_schema(), &kDefault, "distributed");
  if (same_value(*tree.find("distributed"), kDefaultBlock)) {
    tree.erase("distributed");
  }
  return tree;
}

std::string config_yaml(const Config& config) { return to_yaml(redacted(config_tree(config))); }

}  // namespace tutti::spec
