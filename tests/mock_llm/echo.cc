// Text on its way into an answer's JSON.

#include <algorithm>

#include "tests/mock_llm/draw.h"
#include "tests/mock_llm/reply.h"

namespace tutti::mock_llm {

void append_json_escaped(std::string& out, std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15U];
    } else {
      out += c;
    }
  }
}

EchoWords split_echo(std::string_view text) {
  EchoWords words;
  std::size_t at = 0;
  while (true) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string_view::npos || words.ends.size() == kCountMax) {
      return words;
    }
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    append_json_escaped(words.escaped, text.substr(at, end - at));
    words.ends.push_back(static_cast<std::uint32_t>(words.escaped.size()));
    at = end;
  }
}

}  // namespace tutti::mock_llm
