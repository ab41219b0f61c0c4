#pragma once

// Values as Python's json module reads and writes them, to the byte: numbers in Python's form, big
// integers whole, lone surrogates kept, everything beyond ASCII escaped, ", " and ": " between.
// Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::accuracy {

struct PyEntry;

struct PyValue {
  enum class Kind : std::uint8_t {
    kNone,
    kTrue,
    kFalse,
    kInt,    // `text`: its decimal digits
    kFloat,  // `text`: as JSON
    kText,
    kList,  // and tuples
    kDict,
    kForeign,  // bytes, sets, complex numbers, …: json cannot write it
  };

  Kind kind = Kind::kNone;
  std::u32string text;
  std::vector<PyValue> items;    // kList
  std::vector<PyEntry> entries;  // kDict; keys in order of first appearance

  static PyValue of(Kind kind, std::u32string text = {});
  // dict[key] = value. False: the key cannot be one.
  bool set(PyValue key, PyValue value);
  const PyValue* find(std::u32string_view key) const;
};

// No std::pair: clang 14 wants to know all of PyValue before it makes one.
struct PyEntry {
  PyValue key;
  PyValue value;
};

// json.loads; nothing: it would raise.
std::optional<PyValue> json_loads(std::u32string_view text);

// json.dumps; nothing: it would raise.
std::optional<std::string> json_dumps(const PyValue& value);

// repr of a float, but for "Infinity" and "NaN".
std::string float_text(double value);

}  // namespace tutti::accuracy
