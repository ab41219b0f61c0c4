#include "common/text/json_write.h"

#include <array>
#include <charconv>
#include <cmath>

#include "common/text/utf8.h"

namespace tutti::text {
namespace {

void append_escape(std::string& out, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
  }
}

template <class Int>
void append_integer(std::string& out, Int value) {
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  std::size_t plain_from = 0;
  bool ascii = true;
  // First pass over plain ASCII runs; broken UTF-8 is rare, so it is looked for only when needed.
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) {
      ascii = false;
      break;
    }
  }
  std::string repaired;
  if (!ascii && !is_utf8(text)) {
    append_utf8(repaired, text);
    text = repaired;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == '"' || c == '\\') {
      out.append(text.substr(plain_from, i - plain_from));
      append_escape(out, c);
      plain_from = i + 1;
    }
  }
  out.append(text.substr(plain_from));
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

// repr(float): the shortest digits that read back equal; plain notation when the decimal exponent
// is in [-4, 16), else d.ddde±XX.
void append_json_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 40> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific)
          .ptr;
  std::string_view all(text.data(), static_cast<std::size_t>(end - text.data()));
  if (all.front() == '-') {
    out += '-';
    all.remove_prefix(1);
  }
  const std::size_t e = all.find('e');
  std::string_view exponent_text = all.substr(e + 1);
  if (exponent_text.front() == '+') {
    exponent_text.remove_prefix(1);
  }
  int exponent = 0;
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  std::string digits(1, all.front());
  if (e > 2) {
    digits.append(all.substr(2, e - 2));
  }
  if (exponent < -4 || exponent >= 16) {
    out.append(all.substr(0, e));
    out += exponent < 0 ? "e-" : "e+";
    const int magnitude = exponent < 0 ? -exponent : exponent;
    if (magnitude < 10) {
      out += '0';
    }
    append_integer(out, magnitude);
  } else if (exponent < 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-exponent - 1), '0');
    out += digits;
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole) {
      digits.append(whole - digits.size(), '0');
      digits += '0';
    }
    out.append(digits, 0, whole);
    out += '.';
    out.append(digits, whole, std::string::npos);
  }
}

void append_json_int(std::string& out, std::int64_t value) { append_integer(out, value); }
void append_json_uint(std::string& out, std::uint64_t value) { append_integer(out, value); }

void JsonWriter::separate() {
  if (need_comma_) {
    out_ += ',';
  }
  need_comma_ = true;
}

JsonWriter& JsonWriter::open(char c) {
  separate();
  out_ += c;
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char c) {
  out_ += c;
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view value) {
  separate();
  append_json_string(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  separate();
  append_json_double(out_, value);
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t value) {
  separate();
  append_json_int(out_, value);
  return *this;
}

JsonWriter& JsonWriter::unsigned_integer(std::uint64_t value) {
  separate();
  append_json_uint(out_, value);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_.append(json);
  return *this;
}

}  // namespace tutti::text
