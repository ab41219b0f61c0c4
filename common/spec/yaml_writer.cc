#include "common/spec/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "common/spec/yaml_scalar.h"

namespace tutti::spec {
namespace {

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

bool is_plain(std::string_view text) {
  if (text.empty() || is_typed_when_plain(text) || text.front() == ' ' || text.back() == ' ' ||
      text.starts_with("---") || text.starts_with("...")) {
    return false;
  }
  const bool lone_mark =
      (text[0] == '-' || text[0] == '?' || text[0] == ':') && (text.size() == 1 || text[1] == ' ');
  return !lone_mark &&
         std::string_view("#,[]{}&*!|>'\"%@`").find(text[0]) == std::string_view::npos &&
         text.find(": ") == std::string_view::npos && !text.ends_with(':') &&
         text.find(" #") == std::string_view::npos;
}

// Decodes one UTF-8 sequence at `at` and moves past it; what is not UTF-8 becomes U+FFFD.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  constexpr std::uint32_t kReplacement = 0xFFFD;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint32_t first = byte(at++);
  if (first < 0x80) {
    return first;
  }
  const int more = first >= 0xF0 && first < 0xF8 ? 3 : first >= 0xE0 ? 2 : first >= 0xC2 ? 1 : 0;
  if (more == 0 || first >= 0xF8) {
    return kReplacement;
  }
  std::uint32_t point = first & (0x3FU >> static_cast<unsigned>(more));
  const std::size_t start = at;
  for (int i = 0; i < more; ++i) {
    if (at >= text.size() || (byte(at) & 0xC0U) != 0x80U) {
      at = start;
      return kReplacement;
    }
    point = (point << 6U) | (byte(at++) & 0x3FU);
  }
  return point;
}

std::string double_quoted(std::string_view text) {
  std::string result = "\"";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::uint32_t point = next_code_point(text, at);
    if (point == '"' || point == '\\') {
      result += '\\';
      result += static_cast<char>(point);
    } else if (point == '\n') {
      result += "\\n";
    } else if (point == '\t') {
      result += "\\t";
    } else if (point >= 0x20 && point < 0x7F) {
      result += static_cast<char>(point);
    } else if (point <= 0xFF) {
      result += fmt::format("\\x{:02X}", point);
    } else if (point <= 0xFFFF) {
      result += fmt::format("\\u{:04X}", point);
    } else {
      result += fmt::format("\\U{:08X}", point);
    }
  }
  return result + "\"";
}

std::string quoted_if_needed(std::string_view text) {
  if (!is_printable_ascii(text)) {
    return double_quoted(text);
  }
  if (is_plain(text)) {
    return std::string(text);
  }
  std::string result = "'";
  for (const char c : text) {
    result += c == '\'' ? "''" : std::string(1, c);
  }
  return result + "'";
}

bool is_inline(const Tree& tree) {
  return (tree.is_map() && tree.entries.empty()) || (tree.is_list() && tree.items.empty()) ||
         (!tree.is_map() && !tree.is_list());
}

void write(const Tree& tree, std::size_t indent, std::string& out);

// What follows "key:" or "-".
void write_value(const Tree& value, std::size_t indent, std::string& out) {
  if (is_inline(value)) {
    out += " " + yaml_scalar(value) + "\n";
    return;
  }
  out += "\n";
  write(value, value.is_list() ? indent : indent + 2, out);
}

// Readers bound the length of a key that stands before its colon on one line.
constexpr std::size_t kShortKeyMax = 128;

void write(const Tree& tree, std::size_t indent, std::string& out) {
  const std::string spaces(indent, ' ');
  for (const Tree::Entry& entry : tree.entries) {
    const std::string key = quoted_if_needed(entry.key);
    if (key.size() <= kShortKeyMax) {
      out += spaces + key + ":";
      write_value(entry.value, indent, out);
    } else {
      out += spaces + "? " + key + "\n" + spaces + ":";
      write_value(entry.value, indent + 2, out);
    }
  }
  for (const Tree& item : tree.items) {
    if (is_inline(item)) {
      out += spaces + "- " + yaml_scalar(item) + "\n";
      continue;
    }
    // The item's first line goes on the dash's line: its indentation is two, like "- ".
    std::string inner;
    write(item, indent + 2, inner);
    out += spaces + "- " + inner.substr(indent + 2);
  }
}

}  // namespace

std::string yaml_float(double value) {
  if (std::isnan(value)) {
    return ".nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-.inf" : ".inf";
  }
  const double size = std::abs(value);
  char buffer[400];
  const bool is_fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = is_fixed ? std::chars_format::fixed : std::chars_format::scientific;
  char* const end = std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr;
  std::string text(&buffer[0], end);
  if (text.find('.') == std::string::npos) {
    const std::size_t exponent = text.find('e');
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

std::string yaml_scalar(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kNull:
      return "null";
    case Tree::Kind::kBool:
      return tree.boolean ? "true" : "false";
    case Tree::Kind::kInt:
      return tree.whole.too_large ? tree.text : tree.whole.text();
    case Tree::Kind::kFloat:
      return yaml_float(tree.real);
    case Tree::Kind::kDate:
      return tree.text;
    case Tree::Kind::kString:
      return quoted_if_needed(tree.text);
    case Tree::Kind::kList:
      return "[]";
    case Tree::Kind::kMap:
      break;
  }
  return "{}";
}

std::string to_yaml(const Tree& tree) {
  if (is_inline(tree)) {
    return yaml_scalar(tree) + "\n";
  }
  std::string out;
  write(tree, 0, out);
  return out;
}

}  // namespace tutti::spec
