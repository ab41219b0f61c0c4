#include "common/spec/tree_json.h"

#include <fmt/format.h>

#include <cmath>

#include <nlohmann/json.hpp>

namespace tutti::spec {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kJsonDepthMax = 64;

Json json_of(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kNull:
      return nullptr;
    case Tree::Kind::kBool:
      return tree.boolean;
    case Tree::Kind::kInt:
      if (tree.whole.negative && tree.whole.magnitude <= 1ULL << 63U) {
        return static_cast<std::int64_t>(~tree.whole.magnitude + 1);
      }
      return tree.whole.negative ? Json(tree.whole.to_double()) : Json(tree.whole.magnitude);
    case Tree::Kind::kFloat:
      return std::isfinite(tree.real) ? Json(tree.real) : Json(tree.text);
    case Tree::Kind::kString:
    case Tree::Kind::kDate:
      return tree.text;
    case Tree::Kind::kList: {
      Json list = Json::array();
      for (const Tree& item : tree.items) {
        list.push_back(json_of(item));
      }
      return list;
    }
    case Tree::Kind::kMap:
      break;
  }
  Json map = Json::object();
  for (const Tree::Entry& entry : tree.entries) {
    map[entry.key] = json_of(entry.value);
  }
  return map;
}

Tree scalar_of(const Json& json) {
  if (json.is_boolean()) {
    return Tree::of_bool(json.get<bool>());
  }
  if (json.is_number_unsigned()) {
    Tree tree = Tree::of_int(0);
    tree.whole = {json.get<std::uint64_t>(), false, false};
    tree.text = tree.whole.text();
    return tree;
  }
  if (json.is_number_integer()) {
    return Tree::of_int(json.get<std::int64_t>());
  }
  if (json.is_number()) {
    return Tree::of_float(json.get<double>());
  }
  return json.is_string() ? Tree::of_string(json.get<std::string>()) : Tree{};
}

Tree tree_of(const Json& json, std::string_view where) {
  Tree tree;
  if (json.is_array()) {
    tree = Tree::list();
    for (const Json& item : json) {
      tree.items.push_back(tree_of(item, where));
    }
  } else if (json.is_object()) {
    tree = Tree::map();
    for (auto it = json.begin(); it != json.end(); ++it) {
      tree.set(it.key(), tree_of(it.value(), where));
      tree.entries.back().where = where;
    }
  } else {
    tree = scalar_of(json);
  }
  tree.where = where;
  return tree;
}

// The parser recurses no deeper than brackets are nested, so counting them first bounds it.
bool too_deep(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : 0;
    if (depth > kJsonDepthMax) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string to_json(const Tree& tree) {
  return json_of(tree).dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Result<Tree> tree_from_json(std::string_view text, std::string_view where) {
  if (too_deep(text)) {
    return base::fail(base::ExitCode::kUsage,
                      fmt::format("holds more than {} brackets", kJsonDepthMax));
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return base::fail(base::ExitCode::kUsage, "is not valid JSON");
  }
  return tree_of(json, where);
}

}  // namespace tutti::spec
