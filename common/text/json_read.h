#pragma once

// A JSON value for cold paths (data sets, tool calls, tests): keeps member order, keeps signed,
// unsigned and floating numbers apart as they were written. simdjson parses behind it. Of repeated
// keys the first place and the last value count, as in Python. Errors name line, column and byte
// offset. Plain values; no thread owns them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"

namespace tutti::text {

class JsonWriter;

enum class JsonKind : std::uint8_t {
  kNull,
  kBool,
  kInt,     // fits int64
  kUint,    // above int64, fits uint64
  kDouble,  // written with a fraction or an exponent
  kString,
  kArray,
  kObject
};

class JsonValue {
 public:
  using Member = std::pair<std::string, JsonValue>;

  JsonValue() = default;
  static JsonValue of_bool(bool value);
  static JsonValue of_int(std::int64_t value);
  static JsonValue of_uint(std::uint64_t value);  // kInt when it fits
  static JsonValue of_double(double value);
  static JsonValue of_string(std::string value);
  static JsonValue of_array(std::vector<JsonValue> items);
  static JsonValue of_object(std::vector<Member> members);

  JsonKind kind() const { return kind_; }
  bool is_null() const { return kind_ == JsonKind::kNull; }
  bool is_string() const { return kind_ == JsonKind::kString; }
  bool is_array() const { return kind_ == JsonKind::kArray; }
  bool is_object() const { return kind_ == JsonKind::kObject; }
  bool is_integer() const { return kind_ == JsonKind::kInt || kind_ == JsonKind::kUint; }
  bool is_number() const { return is_integer() || kind_ == JsonKind::kDouble; }

  // Each asks for its own kind (checked); as_double takes any number.
  bool as_bool() const;
  std::int64_t as_int() const;
  std::uint64_t as_uint() const;  // kUint, or a kInt that is not negative
  double as_double() const;
  const std::string& as_string() const;
  const std::vector<JsonValue>& items() const { return items_; }
  const std::vector<Member>& members() const { return members_; }
  std::vector<Member>& members() { return members_; }

  // Null pointer when this is no object or has no such member.
  const JsonValue* find(std::string_view key) const;

  void write(JsonWriter& writer) const;
  std::string to_json() const;  // compact
  // "object", "string", "integer" …, for error messages.
  std::string_view kind_name() const;

  friend bool operator==(const JsonValue& a, const JsonValue& b);

 private:
  JsonKind kind_ = JsonKind::kNull;
  bool bool_ = false;
  std::int64_t int_ = 0;
  std::uint64_t uint_ = 0;
  double double_ = 0;
  std::string string_;
  std::vector<JsonValue> items_;
  std::vector<Member> members_;
};

struct JsonLimits {
  std::size_t bytes_max = std::size_t{1} << 30;
  std::size_t depth_max = 64;
};

struct JsonError {
  std::size_t offset = 0;  // byte where reading stopped making sense
  std::size_t line = 1;    // counted from 1
  std::size_t column = 1;  // bytes, counted from 1
  std::string reason;

  std::string to_text() const;  // "line 3, column 7: reason"
};

// One document; a BOM at the start is skipped.
tl::expected<JsonValue, JsonError> read_json(std::string_view text, const JsonLimits& limits = {});

// One document; when it is an array its items go to `each` one by one (false ends early) and the
// result is an empty array; any other document is returned whole.
tl::expected<JsonValue, JsonError> read_json_items(
    std::string_view text, const JsonLimits& limits,
    const std::function<bool(std::size_t index, JsonValue&& item)>& each);

}  // namespace tutti::text
