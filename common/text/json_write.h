#pragma once

// Compact JSON, byte for byte as the reference client's encoder writes it: no spaces, raw UTF-8,
// only
// `"`, `\` and control characters escaped, doubles in Python's repr form (0.7, 1.0, 1e+16, 1e-05),
// NaN and infinities as null, broken UTF-8 as U+FFFD. JsonWriter places the commas; the caller
// keeps braces balanced. Single-threaded values.

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::text {

// Appends `text` without surrounding quotes.
void append_json_escaped(std::string& out, std::string_view text);
// Appends `"text"`.
void append_json_string(std::string& out, std::string_view text);
void append_json_double(std::string& out, double value);
void append_json_int(std::string& out, std::int64_t value);
void append_json_uint(std::string& out, std::uint64_t value);

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view value);
  JsonWriter& number(double value);
  JsonWriter& integer(std::int64_t value);
  JsonWriter& unsigned_integer(std::uint64_t value);
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  // `json` is one valid JSON value, copied as it is.
  JsonWriter& raw(std::string_view json);

 private:
  JsonWriter& open(char c);
  JsonWriter& close(char c);
  void separate();

  std::string& out_;
  bool need_comma_ = false;
};

}  // namespace tutti::text
