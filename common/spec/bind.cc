#include "common/spec/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/spec/coerce.h"
#include "common/spec/dataset_text.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

struct Field {
  const Row& row;
  void* root;
  std::string path;  // as messages call it
};

template <class T>
T& member(const Field& field) {
  return *static_cast<T*>(address_in(field.root, field.row));
}

// Text of these sections is taken as it stands, everywhere else its ends are trimmed.
bool keeps_spaces(std::string_view path) {
  static constexpr std::string_view kSections[] = {"accuracy_config", "agentic_inference",
                                                   "settings.profiling", "audit"};
  return std::any_of(std::begin(kSections), std::end(kSections),
                     [path](std::string_view section) { return path.starts_with(section); });
}

bool is_within(const Row& row, double value) {
  const bool low = row.least_is_open ? value > row.least : value >= row.least;
  const bool high = row.most_is_open ? value < row.most : value <= row.most;
  return low && high && (row.is_zero_allowed || value != 0);
}

// Puts a coerced number into its member when it is within bounds.
template <class Target, class T>
void put_number(const Field& field, const Tree& tree, const Coerced<T>& value, Findings& findings) {
  if (!value) {
    findings.wrong(field.path, tree, value.error());
  } else if (!std::isfinite(static_cast<double>(*value))) {
    findings.wrong(field.path, tree,
                   field.row.is_nullable ? "must be finite; null sets none" : "must be finite");
  } else if (!is_within(field.row, static_cast<double>(*value))) {
    findings.wrong(field.path, tree, fmt::format("must be {}", bounds_text(field.row)));
  } else {
    member<Target>(field) = *value;
  }
}

void put_seed(const Field& field, const Tree& tree, Findings& findings) {
  const auto number = to_whole(tree);
  if (!number) {
    findings.wrong(field.path, tree, number.error());
  } else if (number->too_large) {
    findings.wrong(field.path, tree, "must be between 0 and 18446744073709551615");
  } else if (number->negative && field.path == "settings.warmup.warmup_random_seed") {
    // Warm-up seeds its generators with this number and its successors, so the sign would matter.
    findings.wrong(field.path, tree, "must be between 0 and 18446744073709551615");
  } else {
    // The reference's generators are seeded with the magnitude: -7 and 7 draw the same.
    member<std::uint64_t>(field) = number->magnitude;
  }
}

void put_whole(const Field& field, const Tree& tree, Findings& findings) {
  const auto number = to_whole(tree);
  if (!number) {
    findings.wrong(field.path, tree, number.error());
  } else if (number->too_large) {
    findings.wrong(field.path, tree, "is too large; 64 bits are the limit");
  } else {
    member<std::optional<WholeNumber>>(field) = *number;
  }
}

template <class Target>
void put_text(const Field& field, const Tree& tree, Findings& findings) {
  const auto text = to_text(tree);
  if (!text) {
    findings.wrong(field.path, tree, text.error());
    return;
  }
  member<Target>(field) = keeps_spaces(field.row.path) ? *text : std::string(trimmed(*text));
}

void put_list(const Field& field, const Tree& tree, Findings& findings) {
  if (!tree.is_list()) {
    findings.wrong(field.path, tree, "must be a list, one item per line starting with '-'");
    return;
  }
  std::vector<std::string> values;
  for (std::size_t i = 0; i < tree.items.size(); ++i) {
    const auto text = to_text(tree.items[i]);
    if (text) {
      values.push_back(keeps_spaces(field.row.path) ? *text : std::string(trimmed(*text)));
    } else {
      findings.wrong(fmt::format("{}.{}", field.path, i), tree.items[i], text.error());
    }
  }
  member<std::vector<std::string>>(field) = std::move(values);
}

void put_numbers(const Field& field, const Tree& tree, Findings& findings) {
  if (!tree.is_list()) {
    findings.wrong(field.path, tree, "must be a list of numbers, as in [7, 2, 1]");
    return;
  }
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < tree.items.size(); ++i) {
    if (const auto number = to_int(tree.items[i])) {
      values.push_back(*number);
    } else {
      findings.wrong(fmt::format("{}.{}", field.path, i), tree.items[i], number.error());
    }
  }
  member<std::vector<std::int64_t>>(field) = std::move(values);
}

void put_map(const Field& field, const Tree& tree, Findings& findings) {
  if (!tree.is_map()) {
    findings.wrong(field.path, tree, "must be a mapping of text to text");
    return;
  }
  StringMap values;
  for (const Tree::Entry& entry : tree.entries) {
    const auto text = to_text(entry.value);
    if (text) {
      values.emplace_back(trimmed(entry.key), trimmed(*text));
    } else {
      findings.wrong(fmt::format("{}.{}", field.path, entry.key), entry.value, text.error());
    }
  }
  member<StringMap>(field) = std::move(values);
}

// `on` and `off` without quotes are bools in YAML 1.1; an enum that has those words takes them.
std::string enum_word(const Row& row, const Tree& tree) {
  if (tree.kind == Tree::Kind::kBool) {
    const std::string word = tree.boolean ? "on" : "off";
    const bool has_word = std::find(row.names.begin(), row.names.end(), word) != row.names.end();
    return has_word ? word : tree.text;
  }
  return tree.kind == Tree::Kind::kString ? tree.text : std::string{};
}

void put_enum(const Field& field, const Tree& tree, Findings& findings) {
  const Row& row = field.row;
  const std::string word = enum_word(row, tree);
  const auto found = std::find(row.names.begin(), row.names.end(), word);
  if (found != row.names.end() && !word.empty()) {
    member<std::uint8_t>(field) = static_cast<std::uint8_t>(found - row.names.begin());
    return;
  }
  if (std::find(row.later.begin(), row.later.end(), word) != row.later.end()) {
    findings.wrong(field.path, tree, fmt::format("is not supported yet; {}", row.instead));
    return;
  }
  std::vector<std::string> names = row.names;
  std::erase(names, "");
  const std::string meant = nearest(word, names);
  findings.wrong(
      field.path, tree,
      fmt::format("must be {}{}{}", names.size() == 1 ? "" : "one of ", joined(names, ", "),
                  meant.empty() || meant == word ? "" : fmt::format("; did you mean {}?", meant)));
}

void put_null(const Field& field, Findings& findings, const Tree& tree) {
  if (!field.row.is_nullable) {
    findings.wrong(field.path, tree,
                   fmt::format("must not be null; remove the key to get the default, or give {}",
                               type_text(field.row)));
    return;
  }
  switch (field.row.kind) {
    case FieldKind::kIntOrNull:
    case FieldKind::kDuration:
      member<std::optional<std::int64_t>>(field).reset();
      break;
    case FieldKind::kFloatOrNull:
      member<std::optional<double>>(field).reset();
      break;
    default:
      break;  // every other nullable member is null by default
  }
}

void put_tree(const Field& field, const Tree& tree, Findings& findings) {
  if (tree.is_map()) {
    member<Tree>(field) = tree;
  } else {
    findings.wrong(field.path, tree, "must be a mapping");
  }
}

void put_value(const Field& field, const Tree& tree, Findings& findings) {
  switch (field.row.kind) {
    case FieldKind::kBool: {
      const auto value = to_bool(tree);
      if (value) {
        member<bool>(field) = *value;
      } else {
        findings.wrong(field.path, tree, value.error());
      }
      return;
    }
    case FieldKind::kInt:
      return put_number<std::int64_t>(field, tree, to_int(tree), findings);
    case FieldKind::kIntOrNull:
      return put_number<std::optional<std::int64_t>>(field, tree, to_int(tree), findings);
    case FieldKind::kDuration:
      return put_number<std::optional<std::int64_t>>(field, tree, to_duration_ms(tree), findings);
    case FieldKind::kSeed:
      return put_seed(field, tree, findings);
    case FieldKind::kWholeOrNull:
      return put_whole(field, tree, findings);
    case FieldKind::kFloat:
      return put_number<double>(field, tree, to_float(tree), findings);
    case FieldKind::kFloatOrNull:
      return put_number<std::optional<double>>(field, tree, to_float(tree), findings);
    case FieldKind::kText:
      return put_text<std::string>(field, tree, findings);
    case FieldKind::kTextOrNull:
      return put_text<std::optional<std::string>>(field, tree, findings);
    case FieldKind::kTextList:
      return put_list(field, tree, findings);
    case FieldKind::kIntList:
      return put_numbers(field, tree, findings);
    case FieldKind::kTextMap:
      return put_map(field, tree, findings);
    case FieldKind::kTree:
      return put_tree(field, tree, findings);
    case FieldKind::kEnum:
      return put_enum(field, tree, findings);
    case FieldKind::kSection:
    case FieldKind::kDatasets:
    case FieldKind::kIgnored:
      break;
  }
}

const void* default_root(const Schema& schema) {
  static const Config kConfig{};
  static const DatasetSpec kDataset{};
  return &schema == &dataset_schema() ? static_cast<const void*>(&kDataset) : &kConfig;
}

void judge_support(const Schema& schema, const Field& field, const Tree& tree, Findings& findings) {
  const Row& row = field.row;
  if (row.support == Support::kFull ||
      (row.has_address() &&
       same_value(value_in(field.root, row), value_in(default_root(schema), row)))) {
    return;
  }
  if (row.support == Support::kRefused) {
    findings.wrong(field.path, tree, fmt::format("cannot be used: {}", row.instead));
  } else {
    findings.warn(field.path, tree, fmt::format("has no effect: {}", row.instead));
  }
}

void bind_datasets(Config& config, const Tree& tree, Findings& findings) {
  if (!tree.is_list()) {
    findings.wrong("datasets", tree, "must be a list of data sets");
    return;
  }
  for (std::size_t i = 0; i < tree.items.size(); ++i) {
    const std::string path = fmt::format("datasets.{}", i);
    const Tree& item = tree.items[i];
    Tree from_text;
    if (item.kind == Tree::Kind::kString) {
      const std::size_t before = findings.problems.size();
      from_text = dataset_from_text(item.text, item.where, path, findings);
      if (findings.problems.size() > before) {
        config.datasets.emplace_back();
        continue;
      }
    } else if (!item.is_map()) {
      findings.wrong(path, item, "must be a mapping or a text like perf:data.jsonl,samples=100");
      config.datasets.emplace_back();
      continue;
    }
    const Tree& mapping = item.is_map() ? item : from_text;
    config.datasets.emplace_back();
    bind({dataset_schema(), &config.datasets.back(), "", path}, mapping, findings);
  }
}

std::string unknown_key_remedy(const Schema& schema, const std::string& section,
                               const std::string& key) {
  std::vector<std::string> siblings;
  for (const Row* row : schema.children(section)) {
    siblings.emplace_back(leaf_of(row->path));
    const auto& flags = row->flags;
    if (std::find(flags.begin(), flags.end(), kebab(key)) != flags.end()) {
      return fmt::format("unknown key; did you mean {}?", leaf_of(row->path));
    }
  }
  const std::string meant = nearest(key, siblings);
  if (!meant.empty()) {
    return fmt::format("unknown key; did you mean {}?", meant);
  }
  for (const Row& row : schema.rows()) {
    if (leaf_of(row.path) == key) {
      return fmt::format("unknown key here; did you mean {}?", row.path);
    }
  }
  return fmt::format("unknown key; this section knows {}", joined(siblings, ", "));
}

void bind_section(const Binding& outer, const Row& row, const std::string& path, const Tree& tree,
                  Findings& findings) {
  if (tree.is_null() && row.is_nullable) {
    return;
  }
  if (!tree.is_map()) {
    findings.wrong(path, tree,
                   tree.is_null() ? "must be a mapping; remove the key to get the defaults"
                                  : "must be a mapping");
    return;
  }
  if (row.has_address()) {
    *static_cast<bool*>(address_in(outer.root, row)) = true;
  }
  if (row.support == Support::kRefused) {
    findings.wrong_at(tree.where, path, fmt::format("cannot be used: {}", row.instead));
    return;
  }
  bind({outer.schema, outer.root, row.path, path}, tree, findings);
}

}  // namespace

void bind(const Binding& binding, const Tree& tree, Findings& findings) {
  const std::string prefix = binding.section.empty() ? "" : binding.section + ".";
  const std::string shown_prefix = binding.shown_as.empty() ? "" : binding.shown_as + ".";
  for (const Tree::Entry& entry : tree.entries) {
    const std::string path = shown_prefix + entry.key;
    const Row* row = entry.key.find('.') == std::string::npos
                         ? binding.schema.find(prefix + entry.key)
                         : nullptr;
    if (row == nullptr) {
      findings.wrong_at(entry.where.empty() ? entry.value.where : entry.where, path,
                        unknown_key_remedy(binding.schema, binding.section, entry.key));
    } else if (row->kind == FieldKind::kSection) {
      bind_section(binding, *row, path, entry.value, findings);
    } else if (row->kind == FieldKind::kDatasets) {
      bind_datasets(*static_cast<Config*>(binding.root), entry.value, findings);
    } else {
      const Field field{*row, binding.root, path};
      const std::size_t before = findings.problems.size();
      if (entry.value.is_null()) {
        put_null(field, findings, entry.value);
      } else {
        put_value(field, entry.value, findings);
      }
      if (findings.problems.size() == before) {
        judge_support(binding.schema, field, entry.value, findings);
      }
    }
  }
  for (const Row* row : binding.schema.children(binding.section)) {
    const std::string leaf(leaf_of(row->path));
    if (row->is_required && tree.find(leaf) == nullptr) {
      findings.wrong_at(tree.where, shown_prefix + leaf, "is required");
    }
  }
}

void bind_config(const Tree& tree, Config& config, Findings& findings) {
  bind({config_schema(), &config, "", ""}, tree, findings);
}

}  // namespace tutti::spec
