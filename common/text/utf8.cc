#include "common/text/utf8.h"

namespace tutti::text {
namespace {

using Byte = unsigned char;

Byte byte_at(std::string_view s, std::size_t i) { return static_cast<Byte>(s[i]); }

// What follows a lead byte: how many bytes, and the allowed range of the first of them (Unicode
// table 3-7; it keeps out overlong forms, surrogates and values above U+10FFFF).
struct Lead {
  std::size_t more = 0;
  Byte low = 0x80;
  Byte high = 0xBF;
};

bool read_lead(Byte b, Lead& lead) {
  if (b < 0xC2 || b > 0xF4) {
    return false;
  }
  lead.more = b < 0xE0 ? 1 : b < 0xF0 ? 2 : 3;
  lead.low = b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
  lead.high = b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
  return true;
}

struct Step {
  std::size_t length = 1;  // of the code point, or of the broken part to replace
  bool good = true;
};

Step step_at(std::string_view s, std::size_t i) {
  const Byte first = byte_at(s, i);
  if (first < 0x80) {
    return {1, true};
  }
  Lead lead;
  if (!read_lead(first, lead)) {
    return {1, false};
  }
  for (std::size_t k = 1; k <= lead.more; ++k) {
    if (i + k >= s.size()) {
      return {k, false};
    }
    const Byte b = byte_at(s, i + k);
    const bool fits = k == 1 ? (b >= lead.low && b <= lead.high) : (b >= 0x80 && b <= 0xBF);
    if (!fits) {
      return {k, false};
    }
  }
  return {lead.more + 1, true};
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const Step step = step_at(bytes, i);
    if (!step.good) {
      return false;
    }
    i += step.length;
  }
  return true;
}

void append_utf8(std::string& out, std::string_view bytes) {
  std::size_t clean_from = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const Step step = step_at(bytes, i);
    if (!step.good) {
      out.append(bytes.substr(clean_from, i - clean_from));
      out.append("\xEF\xBF\xBD");
      clean_from = i + step.length;
    }
    i += step.length;
  }
  out.append(bytes.substr(clean_from));
}

std::string_view clip_utf8(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) {
    return text;
  }
  std::size_t cut = bytes_max;
  // Walk back over continuation bytes, at most the three a code point can have.
  for (int i = 0; i < 3 && cut > 0 && (byte_at(text, cut) & 0xC0) == 0x80; ++i) {
    --cut;
  }
  return text.substr(0, cut);
}

}  // namespace tutti::text
