#include "coordinator/accuracy/python_node.h"

#include <cstddef>

namespace tutti::accuracy {

std::u32string in(const Node& node, int wanted) {
  return node.level < wanted ? U"(" + node.source + U")" : node.source;
}

std::u32string quoted(std::u32string_view text) {
  const bool doubled =
      text.find(U'\'') != std::u32string_view::npos && text.find(U'"') == std::u32string_view::npos;
  const char32_t quote = doubled ? U'"' : U'\'';
  std::u32string out(1, quote);
  for (const char32_t c : text) {
    constexpr std::u32string_view kHex = U"0123456789abcdef";
    constexpr std::u32string_view kNamed = U"\n\r\t\\";
    constexpr std::u32string_view kNames = U"nrt\\";
    const std::size_t named = kNamed.find(c);
    if (named != std::u32string_view::npos || c == quote) {
      out += U'\\';
      out += c == quote ? c : kNames[named];
    } else if (c < U' ' || (c >= 0x7FU && c < 0xA1U) || c == 0xADU) {
      out += U"\\x";
      out += kHex[c >> 4U];
      out += kHex[c & 15U];
    } else {
      out += c;
    }
  }
  out += quote;
  return out;
}

}  // namespace tutti::accuracy
