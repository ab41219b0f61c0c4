#pragma once

// Tree: a parsed document before (or without) a schema: null, bool, int, float, string, date, list,
// mapping with ordered string keys. Every node knows where it was written ("run.yaml:14",
// "--salt"). YAML files and command lines both become a Tree, so one schema reads both; the
// free-form fields of Config (chat_template_kwargs, extras, …) stay Trees. A plain value, owned by
// whoever holds it.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti::spec {

// A whole number as written: seeds need all of uint64 and requests may carry negative ones.
struct WholeNumber {
  std::uint64_t magnitude = 0;
  bool negative = false;
  bool too_large = false;  // beyond 64 bits: magnitude is meaningless

  static WholeNumber of(std::int64_t value);
  std::string text() const;
  double to_double() const;
  friend bool operator==(const WholeNumber&, const WholeNumber&) = default;
};

struct Tree {
  enum class Kind : std::uint8_t { kNull, kBool, kInt, kFloat, kString, kDate, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  bool boolean = false;
  WholeNumber whole{};
  double real = 0;
  std::string text;            // kString: the value; other scalars: as written
  std::vector<Tree> items;     // kList
  std::vector<Entry> entries;  // kMap, in order of writing, keys unique
  std::string where;           // "file:line", "--flag", or empty for a value we made ourselves

  static Tree of_bool(bool value);
  static Tree of_int(std::int64_t value);
  static Tree of_float(double value);
  static Tree of_string(std::string value);
  static Tree list();
  static Tree map();

  bool is_null() const { return kind == Kind::kNull; }
  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }

  // The entry's value, or null when this is not a mapping or has no such key.
  const Tree* find(std::string_view key) const;
  Tree* find(std::string_view key);
  // Value of a dotted path through mappings and, by number, lists ("datasets.0.path"); null if
  // none.
  const Tree* find_path(std::string_view dotted) const;
  // Adds or replaces; a replaced key keeps its place.
  Tree& set(std::string_view key, Tree value);
  bool erase(std::string_view key);
};

struct Tree::Entry {
  std::string key;
  Tree value;
  std::string where;  // of the key
};

// Compares values, not places.
bool same_value(const Tree& a, const Tree& b);

// Mappings of both sides are merged key by key, everything else of `over` replaces (null included).
Tree merged(const Tree& base, const Tree& over);

// Compact JSON (", " and ": " absent); dates and non-finite floats become strings. Non-ASCII is
// kept.
std::string to_json(const Tree& tree);

}  // namespace tutti::spec
