#include "coordinator/accuracy/python_value.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace tutti::accuracy {
namespace {

using Kind = PyValue::Kind;

constexpr int kDepthMax = 200;

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }

class Loader {
 public:
  explicit Loader(std::u32string_view text) : text_(text) {}

  std::optional<PyValue> load() {
    PyValue out;
    skip_space();
    if (!value(out, 0)) {
      return std::nullopt;
    }
    skip_space();
    return at_ == text_.size() ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  char32_t now() const { return at_ < text_.size() ? text_[at_] : U'\0'; }

  bool take(std::u32string_view word) {
    if (text_.substr(at_, word.size()) != word) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  void skip_space() {
    while (now() == U' ' || now() == U'\t' || now() == U'\n' || now() == U'\r') {
      ++at_;
    }
  }

  bool value(PyValue& out, int depth) {
    if (depth > kDepthMax) {
      return false;
    }
    if (now() == U'"') {
      out.kind = Kind::kText;
      return string(out.text);
    }
    if (now() == U'[') {
      return list(out, depth);
    }
    if (now() == U'{') {
      return dict(out, depth);
    }
    static const std::array<std::pair<std::u32string_view, PyValue>, 6> kWords{
        {{U"null", PyValue::of(Kind::kNone)},
         {U"true", PyValue::of(Kind::kTrue)},
         {U"false", PyValue::of(Kind::kFalse)},
         {U"NaN", PyValue::of(Kind::kFloat, U"NaN")},
         {U"Infinity", PyValue::of(Kind::kFloat, U"Infinity")},
         {U"-Infinity", PyValue::of(Kind::kFloat, U"-Infinity")}}};
    for (const auto& [word, meaning] : kWords) {
      if (take(word)) {
        out = meaning;
        return true;
      }
    }
    return number(out);
  }

  void digits(std::string& out) {
    for (; is_digit(now()); ++at_) {
      out += static_cast<char>(now());
    }
  }

  bool number(PyValue& out) {
    std::string written = take(U"-") ? "-" : "";
    const std::size_t sign = written.size();
    if (now() == U'0') {
      written += '0';
      ++at_;
    } else {
      digits(written);
    }
    if (written.size() == sign) {
      return false;
    }
    const std::size_t whole = written.size();
    if (now() == U'.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) {
      ++at_;
      written += '.';
      digits(written);
    }
    exponent(written);
    if (written.size() == whole) {
      out = PyValue::of(Kind::kInt,
                        written == "-0" ? U"0" : std::u32string(written.begin(), written.end()));
      return true;
    }
    const std::string text = float_text(std::strtod(written.c_str(), nullptr));
    out = PyValue::of(Kind::kFloat, std::u32string(text.begin(), text.end()));
    return true;
  }

  void exponent(std::string& written) {
    if (now() != U'e' && now() != U'E') {
      return;
    }
    const std::size_t sign =
        at_ + 1 < text_.size() && (text_[at_ + 1] == U'+' || text_[at_ + 1] == U'-');
    if (at_ + 1 + sign >= text_.size() || !is_digit(text_[at_ + 1 + sign])) {
      return;
    }
    written += 'e';
    if (sign == 1) {
      written += static_cast<char>(text_[at_ + 1]);
    }
    at_ += 1 + sign;
    digits(written);
  }

  bool string(std::u32string& out) {
    for (++at_; at_ < text_.size(); ++at_) {
      const char32_t c = text_[at_];
      if (c == U'"') {
        ++at_;
        return true;
      }
      if (c < U' ') {
        return false;
      }
      if (c != U'\\') {
        out += c;
      } else if (!escape(out)) {
        return false;
      }
    }
    return false;
  }

  // At the backslash; afterwards at the last character.
  bool escape(std::u32string& out) {
    constexpr std::u32string_view kNames = U"\"\\/bfnrt";
    constexpr std::u32string_view kMeanings = U"\"\\/\b\f\n\r\t";
    ++at_;
    if (const std::size_t known = kNames.find(now()); at_ < text_.size() && known != kNone) {
      out += kMeanings[known];
      return true;
    }
    char32_t unit = 0;
    if (now() != U'u' || !hex4(at_ + 1, unit)) {
      return false;
    }
    at_ += 4;
    char32_t low = 0;
    const bool high = unit >= 0xD800U && unit < 0xDC00U;
    if (high && text_.substr(at_ + 1, 2) == U"\\u" && hex4(at_ + 3, low) && low >= 0xDC00U &&
        low < 0xE000U) {
      unit = 0x10000U + ((unit - 0xD800U) << 10U) + (low - 0xDC00U);
      at_ += 6;
    }
    out += unit;
    return true;
  }

  bool hex4(std::size_t from, char32_t& out) const {
    out = 0;
    for (std::size_t i = from; i < from + 4; ++i) {
      const std::size_t digit = i < text_.size() ? kHex.find(text_[i]) : kNone;
      if (digit == kNone) {
        return false;
      }
      out = out * 16 + static_cast<char32_t>(digit < 16 ? digit : digit - 6);
    }
    return true;
  }

  bool list(PyValue& out, int depth) {
    out.kind = Kind::kList;
    ++at_;
    skip_space();
    if (take(U"]")) {
      return true;
    }
    while (true) {
      skip_space();
      if (!value(out.items.emplace_back(), depth + 1)) {
        return false;
      }
      skip_space();
      if (take(U"]")) {
        return true;
      }
      if (!take(U",")) {
        return false;
      }
    }
  }

  bool dict(PyValue& out, int depth) {
    out.kind = Kind::kDict;
    ++at_;
    skip_space();
    if (take(U"}")) {
      return true;
    }
    while (true) {
      PyValue key = PyValue::of(Kind::kText);
      PyValue item;
      skip_space();
      if (now() != U'"' || !string(key.text)) {
        return false;
      }
      skip_space();
      if (!take(U":")) {
        return false;
      }
      skip_space();
      if (!value(item, depth + 1)) {
        return false;
      }
      out.set(std::move(key), std::move(item));
      skip_space();
      if (take(U"}")) {
        return true;
      }
      if (!take(U",")) {
        return false;
      }
    }
  }

  static constexpr std::size_t kNone = std::u32string_view::npos;
  static constexpr std::u32string_view kHex = U"0123456789abcdefABCDEF";

  std::u32string_view text_;
  std::size_t at_ = 0;
};

void dump_text(std::u32string_view text, std::string& out) {
  out += '"';
  for (const char32_t c : text) {
    constexpr std::u32string_view kNamed = U"\"\\\n\r\t\f\b";
    constexpr std::string_view kNames = "\"\\nrtfb";
    const std::size_t named = kNamed.find(c);
    if (named != std::u32string_view::npos) {
      out += '\\';
      out += kNames[named];
    } else if (c >= U' ' && c <= U'~') {
      out += static_cast<char>(c);
    } else if (c < 0x10000U) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
    } else {
      const auto beyond = static_cast<std::uint32_t>(c - 0x10000U);
      out +=
          fmt::format("\\u{:04x}\\u{:04x}", 0xD800U + (beyond >> 10U), 0xDC00U + (beyond & 0x3FFU));
    }
  }
  out += '"';
}

bool dump(const PyValue& value, std::string& out);

// json writes keys that are numbers or constants as texts of them.
bool dump_key(const PyValue& key, std::string& out) {
  if (key.kind == Kind::kText) {
    dump_text(key.text, out);
    return true;
  }
  out += '"';
  const bool good = dump(key, out);
  out += '"';
  return good;
}

bool dump(const PyValue& value, std::string& out) {
  switch (value.kind) {
    case Kind::kNone:
      out += "null";
      return true;
    case Kind::kTrue:
      out += "true";
      return true;
    case Kind::kFalse:
      out += "false";
      return true;
    case Kind::kInt:
    case Kind::kFloat:
      out.append(value.text.begin(), value.text.end());
      return true;
    case Kind::kText:
      dump_text(value.text, out);
      return true;
    case Kind::kForeign:
      return false;
    case Kind::kList:
      out += '[';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        out += i == 0 ? "" : ", ";
        if (!dump(value.items[i], out)) {
          return false;
        }
      }
      out += ']';
      return true;
    case Kind::kDict:
      break;
  }
  out += '{';
  for (std::size_t i = 0; i < value.entries.size(); ++i) {
    out += i == 0 ? "" : ", ";
    if (!dump_key(value.entries[i].key, out)) {
      return false;
    }
    out += ": ";
    if (!dump(value.entries[i].value, out)) {
      return false;
    }
  }
  out += '}';
  return true;
}

// As keys 1, 1.0 and True are one. Empty: no number.
std::u32string number_written(const PyValue& key) {
  const bool is_float = key.kind == Kind::kFloat;
  if (key.kind == Kind::kTrue || key.kind == Kind::kFalse) {
    return key.kind == Kind::kTrue ? U"1" : U"0";
  }
  if (is_float && key.text.size() > 2 && key.text.substr(key.text.size() - 2) == U".0") {
    return key.text == U"-0.0" ? U"0" : key.text.substr(0, key.text.size() - 2);
  }
  return is_float || key.kind == Kind::kInt ? key.text : std::u32string();
}

}  // namespace

PyValue PyValue::of(Kind kind, std::u32string text) {
  PyValue out;
  out.kind = kind;
  out.text = std::move(text);
  return out;
}

bool PyValue::set(PyValue key, PyValue value) {
  if (key.kind == Kind::kList || key.kind == Kind::kDict) {
    return false;
  }
  const auto written = number_written(key);
  for (auto& [known, old] : entries) {
    const bool same = written.empty() ? known.kind == key.kind && known.text == key.text
                                      : number_written(known) == written;
    if (same) {
      old = std::move(value);
      return true;
    }
  }
  entries.push_back({std::move(key), std::move(value)});
  return true;
}

const PyValue* PyValue::find(std::u32string_view key) const {
  for (const auto& [known, value] : entries) {
    if (known.kind == Kind::kText && known.text == key) {
      return &value;
    }
  }
  return nullptr;
}

std::optional<PyValue> json_loads(std::u32string_view text) { return Loader(text).load(); }

std::optional<std::string> json_dumps(const PyValue& value) {
  std::string out;
  return dump(value, out) ? std::optional(std::move(out)) : std::nullopt;
}

std::string float_text(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-Infinity" : "Infinity";
  }
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view written(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = written.find('e');
  std::string digits(1, written[0]);
  digits += e > 2 ? written.substr(2, e - 2) : "";
  const int exponent = std::atoi(std::string(written.substr(e + 1)).c_str());
  const std::string sign = std::signbit(value) ? "-" : "";
  // Python writes 1e16 and more, and less than 1e-4, with an exponent.
  if (exponent < -4 || exponent >= 16) {
    const std::string rest = digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], rest, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  }
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace tutti::accuracy
