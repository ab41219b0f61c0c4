#include "common/spec/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/base/check.h"
#include "common/spec/redact.h"
#include "common/spec/schema_rows.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

template <class T>
const T& member(const void* root, const Row& row) {
  return *static_cast<const T*>(address_in(root, row));
}

template <class T, class Make>
Tree tree_or_null(const std::optional<T>& value, Make make) {
  return value ? make(*value) : Tree{};
}

Tree whole_tree(const WholeNumber& number) {
  Tree tree = Tree::of_int(0);
  tree.whole = number;
  tree.text = number.text();
  return tree;
}

Tree list_tree(const std::vector<std::string>& values) {
  Tree tree = Tree::list();
  for (const std::string& value : values) {
    tree.items.push_back(Tree::of_string(value));
  }
  return tree;
}

Tree map_tree(const StringMap& values) {
  Tree tree = Tree::map();
  for (const auto& [key, value] : values) {
    tree.set(key, Tree::of_string(value));
  }
  return tree;
}

std::string number_text(double value) {
  return std::abs(value) < 1e15 && std::floor(value) == value
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{}", value);
}

}  // namespace

bool Row::is_secret() const { return is_secret_key(leaf_of(path)); }

Row& Row::about(std::string text) {
  help = std::move(text);
  return *this;
}
Row& Row::flag(std::string name) {
  flags.push_back(std::move(name));
  return *this;
}
Row& Row::at_least(double value) {
  least = value;
  return *this;
}
Row& Row::above(double value) {
  least = value;
  least_is_open = true;
  return *this;
}
Row& Row::at_most(double value) {
  most = value;
  return *this;
}
Row& Row::below(double value) {
  most = value;
  most_is_open = true;
  return *this;
}
Row& Row::not_zero() {
  is_zero_allowed = false;
  return *this;
}
Row& Row::nullable() {
  is_nullable = true;
  return *this;
}
Row& Row::required() {
  is_required = true;
  return *this;
}
Row& Row::hidden() {
  is_hidden = true;
  return *this;
}
Row& Row::one_of(std::vector<std::string> values) {
  names = std::move(values);
  is_nullable = !names.empty() && names[0].empty();
  return *this;
}
Row& Row::not_yet(std::vector<std::string> values, std::string what_to_do) {
  later = std::move(values);
  instead = std::move(what_to_do);
  return *this;
}
Row& Row::commas() {
  splits_commas = true;
  return *this;
}
Row& Row::duration() {
  kind = FieldKind::kDuration;
  return *this;
}
Row& Row::inert(std::string why) {
  support = Support::kInert;
  instead = std::move(why);
  return *this;
}
Row& Row::refused(std::string what_to_do) {
  support = Support::kRefused;
  instead = std::move(what_to_do);
  return *this;
}

const Row* Schema::find(std::string_view path) const {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [path](const Row& row) { return row.path == path; });
  return found == rows_.end() ? nullptr : &*found;
}

std::vector<const Row*> Schema::children(std::string_view section_path) const {
  std::vector<const Row*> result;
  for (const Row& row : rows_) {
    if (parent_of(row.path) == section_path) {
      result.push_back(&row);
    }
  }
  return result;
}

void* address_in(void* root, const Row& row) {
  TUTTI_CHECK(row.has_address());
  return static_cast<char*>(root) + row.offset;
}

const void* address_in(const void* root, const Row& row) {
  TUTTI_CHECK(row.has_address());
  return static_cast<const char*>(root) + row.offset;
}

Tree value_in(const void* root, const Row& row) {
  switch (row.kind) {
    case FieldKind::kBool:
      return Tree::of_bool(member<bool>(root, row));
    case FieldKind::kInt:
      return Tree::of_int(member<std::int64_t>(root, row));
    case FieldKind::kIntOrNull:
    case FieldKind::kDuration:
      return tree_or_null(member<std::optional<std::int64_t>>(root, row), Tree::of_int);
    case FieldKind::kSeed:
      return whole_tree({member<std::uint64_t>(root, row), false, false});
    case FieldKind::kWholeOrNull:
      return tree_or_null(member<std::optional<WholeNumber>>(root, row), whole_tree);
    case FieldKind::kFloat:
      return Tree::of_float(member<double>(root, row));
    case FieldKind::kFloatOrNull:
      return tree_or_null(member<std::optional<double>>(root, row), Tree::of_float);
    case FieldKind::kText:
      return Tree::of_string(member<std::string>(root, row));
    case FieldKind::kTextOrNull:
      return tree_or_null(member<std::optional<std::string>>(root, row), Tree::of_string);
    case FieldKind::kTextList: {
      const auto& list = member<std::vector<std::string>>(root, row);
      return row.is_nullable && list.empty() ? Tree{} : list_tree(list);
    }
    case FieldKind::kIntList: {
      Tree list = Tree::list();
      for (const std::int64_t number : member<std::vector<std::int64_t>>(root, row)) {
        list.items.push_back(Tree::of_int(number));
      }
      return list;
    }
    case FieldKind::kTextMap: {
      const auto& map = member<StringMap>(root, row);
      return map.empty() ? Tree{} : map_tree(map);
    }
    case FieldKind::kTree:
      return member<Tree>(root, row);
    case FieldKind::kEnum: {
      const std::string& name = row.names.at(member<std::uint8_t>(root, row));
      return name.empty() ? Tree{} : Tree::of_string(name);
    }
    case FieldKind::kSection:
    case FieldKind::kDatasets:
    case FieldKind::kIgnored:
      break;
  }
  return {};
}

std::string bounds_text(const Row& row) {
  const bool has_least = row.least != -Row::kInfinity;
  const bool has_most = row.most != Row::kInfinity;
  std::string text;
  if (has_least && has_most) {
    text = fmt::format("{} {} and {} {}", row.least_is_open ? ">" : ">=", number_text(row.least),
                       row.most_is_open ? "<" : "<=", number_text(row.most));
  } else if (has_least) {
    text = fmt::format("{} {}", row.least_is_open ? ">" : ">=", number_text(row.least));
  } else if (has_most) {
    text = fmt::format("{} {}", row.most_is_open ? "<" : "<=", number_text(row.most));
  }
  return row.is_zero_allowed ? text : text + " and not 0";
}

std::string type_text(const Row& row) {
  const std::string null = row.is_nullable ? " or null" : "";
  switch (row.kind) {
    case FieldKind::kSection:
      return "mapping" + null;
    case FieldKind::kDatasets:
      return "list";
    case FieldKind::kBool:
      return "bool";
    case FieldKind::kInt:
    case FieldKind::kIntOrNull:
    case FieldKind::kWholeOrNull:
      return "int" + null;
    case FieldKind::kDuration:
      return "int (ms) or duration" + null;
    case FieldKind::kSeed:
      return "int (64 bits, unsigned)";
    case FieldKind::kFloat:
    case FieldKind::kFloatOrNull:
      return "float" + null;
    case FieldKind::kText:
    case FieldKind::kTextOrNull:
      return "text" + null;
    case FieldKind::kTextList:
      return "list of text" + null;
    case FieldKind::kIntList:
      return "list of int" + null;
    case FieldKind::kTextMap:
      return "mapping of text to text" + null;
    case FieldKind::kTree:
      return "free mapping" + null;
    case FieldKind::kEnum: {
      std::vector<std::string> names = row.names;
      std::erase(names, "");
      return "one of " + joined(names, ", ") + null;
    }
    case FieldKind::kIgnored:
      break;
  }
  return "anything";
}

std::string default_text(const Schema& schema, const Row& row) {
  static const Config kConfig{};
  static const DatasetSpec kDataset{};
  const void* root = &schema == &config_schema() ? static_cast<const void*>(&kConfig) : &kDataset;
  if (row.is_required) {
    return "required";
  }
  if (!row.has_address() || row.kind == FieldKind::kSection || row.kind == FieldKind::kDatasets) {
    return "";
  }
  const Tree value = value_in(root, row);
  switch (value.kind) {
    case Tree::Kind::kNull:
      return "null";
    case Tree::Kind::kString:
      return value.text.empty() ? "''" : value.text;
    case Tree::Kind::kFloat:
      return number_text(value.real);
    case Tree::Kind::kList:
    case Tree::Kind::kMap:
      return to_json(value);
    default:
      return value.text;
  }
}

}  // namespace tutti::spec
