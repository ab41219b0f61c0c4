#include "coordinator/accuracy/unicode.h"

#include <cstddef>

#include "common/text/utf8.h"

namespace tutti::accuracy {
namespace {

// Of valid UTF-8: how many bytes follow the first.
std::size_t bytes_after(unsigned char first) {
  return first < 0x80U ? 0 : first < 0xE0U ? 1 : first < 0xF0U ? 2 : 3;
}

void append(std::string& out, char32_t c) {
  const auto byte = [&out](char32_t value) { out += static_cast<char>(value); };
  if (c < 0x80U) {
    byte(c);
  } else if (c < 0x800U) {
    byte(0xC0U | (c >> 6U));
    byte(0x80U | (c & 0x3FU));
  } else if (c < 0x10000U) {
    byte(0xE0U | (c >> 12U));
    byte(0x80U | ((c >> 6U) & 0x3FU));
    byte(0x80U | (c & 0x3FU));
  } else {
    byte(0xF0U | (c >> 18U));
    byte(0x80U | ((c >> 12U) & 0x3FU));
    byte(0x80U | ((c >> 6U) & 0x3FU));
    byte(0x80U | (c & 0x3FU));
  }
}

}  // namespace

std::u32string decoded(std::string_view utf8) {
  std::string whole;
  text::append_utf8(whole, utf8);
  std::u32string out;
  out.reserve(whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto first = static_cast<unsigned char>(whole[i]);
    const std::size_t more = bytes_after(first);
    constexpr unsigned char kMasks[] = {0x7FU, 0x1FU, 0x0FU, 0x07U};
    char32_t c = first & kMasks[more];
    for (std::size_t k = 0; k < more; ++k) {
      c = (c << 6U) | (static_cast<unsigned char>(whole[++i]) & 0x3FU);
    }
    out += c;
  }
  return out;
}

std::string encoded(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    append(out, c);
  }
  return out;
}

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::u32string_view trimmed(std::u32string_view text) {
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::string trimmed(std::string_view utf8) { return encoded(trimmed(decoded(utf8))); }

}  // namespace tutti::accuracy
