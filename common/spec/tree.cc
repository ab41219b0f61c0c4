#include "common/spec/tree.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tutti::spec {

WholeNumber WholeNumber::of(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return {value < 0 ? ~bits + 1 : bits, value < 0, false};
}

std::string WholeNumber::text() const {
  return (negative && magnitude != 0 ? "-" : "") + std::to_string(magnitude);
}

double WholeNumber::to_double() const {
  const auto size = static_cast<double>(magnitude);
  return negative ? -size : size;
}

Tree Tree::of_bool(bool value) {
  Tree tree;
  tree.kind = Kind::kBool;
  tree.boolean = value;
  tree.text = value ? "true" : "false";
  return tree;
}

Tree Tree::of_int(std::int64_t value) {
  Tree tree;
  tree.kind = Kind::kInt;
  tree.whole = WholeNumber::of(value);
  tree.text = tree.whole.text();
  return tree;
}

Tree Tree::of_float(double value) {
  Tree tree;
  tree.kind = Kind::kFloat;
  tree.real = value;
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  tree.text.assign(buffer, end);
  return tree;
}

Tree Tree::of_string(std::string value) {
  Tree tree;
  tree.kind = Kind::kString;
  tree.text = std::move(value);
  return tree;
}

Tree Tree::list() {
  Tree tree;
  tree.kind = Kind::kList;
  return tree;
}

Tree Tree::map() {
  Tree tree;
  tree.kind = Kind::kMap;
  return tree;
}

const Tree* Tree::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) {
      return &entry.value;
    }
  }
  return nullptr;
}

Tree* Tree::find(std::string_view key) {
  for (Entry& entry : entries) {
    if (entry.key == key) {
      return &entry.value;
    }
  }
  return nullptr;
}

const Tree* Tree::find_path(std::string_view dotted) const {
  const Tree* node = this;
  while (node != nullptr && !dotted.empty()) {
    const std::size_t dot = dotted.find('.');
    const std::string_view part = dotted.substr(0, dot);
    dotted = dot == std::string_view::npos ? std::string_view{} : dotted.substr(dot + 1);
    if (!node->is_list()) {
      node = node->find(part);
      continue;
    }
    std::size_t index = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = parsed.ec == std::errc{} && parsed.ptr == part.data() + part.size();
    node = is_index && index < node->items.size() ? &node->items[index] : nullptr;
  }
  return node;
}

Tree& Tree::set(std::string_view key, Tree value) {
  if (Tree* old = find(key); old != nullptr) {
    *old = std::move(value);
    return *old;
  }
  entries.push_back({std::string(key), std::move(value), {}});
  return entries.back().value;
}

bool Tree::erase(std::string_view key) {
  return std::erase_if(entries, [key](const Entry& entry) { return entry.key == key; }) > 0;
}

bool same_value(const Tree& a, const Tree& b) {
  if (a.kind != b.kind) {
    return false;
  }
  switch (a.kind) {
    case Tree::Kind::kNull:
      return true;
    case Tree::Kind::kBool:
      return a.boolean == b.boolean;
    case Tree::Kind::kInt:
      return a.whole == b.whole;
    case Tree::Kind::kFloat:
      return a.real == b.real || (std::isnan(a.real) && std::isnan(b.real));
    case Tree::Kind::kString:
    case Tree::Kind::kDate:
      return a.text == b.text;
    case Tree::Kind::kList:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_value);
    case Tree::Kind::kMap:
      break;
  }
  return a.entries.size() == b.entries.size() &&
         std::all_of(a.entries.begin(), a.entries.end(), [&b](const Tree::Entry& entry) {
           const Tree* other = b.find(entry.key);
           return other != nullptr && same_value(entry.value, *other);
         });
}

Tree merged(const Tree& base, const Tree& over) {
  if (!base.is_map() || !over.is_map()) {
    return over;
  }
  Tree result = base;
  for (const Tree::Entry& entry : over.entries) {
    const Tree* below = result.find(entry.key);
    result.set(entry.key, below == nullptr ? entry.value : merged(*below, entry.value));
  }
  return result;
}

}  // namespace tutti::spec
