#include "coordinator/accuracy/python_tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

using Kind = PyValue::Kind;

constexpr std::size_t kNone = std::u32string_view::npos;

constexpr std::u32string_view kPairs = U"** // << >> <= >= == != ";
constexpr std::u32string_view kSigns = U"()[]{},:.=+-*/%@&|^~<>";

// The value of a digit in any base up to 16, or -1.
int digit_of(char32_t c) {
  if (c >= U'0' && c <= U'9') {
    return static_cast<int>(c - U'0');
  }
  const char32_t lower = c | 0x20U;
  return lower >= U'a' && lower <= U'f' ? static_cast<int>(lower - U'a') + 10 : -1;
}

// Digits of any base as decimal ones.
std::u32string decimal(std::u32string_view digits, int base) {
  std::vector<int> out{0};  // from the least significant
  for (const char32_t c : digits) {
    int carry = digit_of(c);
    for (int& place : out) {
      carry += place * base;
      place = carry % 10;
      carry /= 10;
    }
    for (; carry > 0; carry /= 10) {
      out.push_back(carry % 10);
    }
  }
  std::u32string text;
  for (std::size_t i = out.size(); i-- > 0;) {
    text += static_cast<char32_t>(U'0' + static_cast<char32_t>(out[i]));
  }
  return text;
}

class Reader {
 public:
  explicit Reader(std::u32string_view source) : source_(source) {}

  std::optional<std::vector<PyToken>> read() {
    while (skip_space()) {
      if (at_ >= source_.size()) {
        out_.push_back({PyToken::Kind::kEnd, {}, {}});
        return std::move(out_);
      }
      if (!token()) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  char32_t peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : U'\0';
  }
  static bool starts_name(char32_t c) { return c == U'_' || (is_word(c) && !is_decimal(c)); }

  // False: a comment that hides the closing parenthesis, or a stray backslash.
  bool skip_space() {
    while (at_ < source_.size()) {
      const char32_t c = peek();
      if (c == U'#') {
        at_ = source_.find(U'\n', at_);
        if (at_ == kNone) {
          return false;
        }
      } else if (c == U'\\') {
        if (peek(1) != U'\n') {
          return false;
        }
        at_ += 2;
      } else if (c != U' ' && c != U'\t' && c != U'\n' && c != U'\r' && c != U'\f') {
        return true;
      } else {
        ++at_;
      }
    }
    return true;
  }

  bool token() {
    const char32_t c = peek();
    if (digit(c) || (c == U'.' && digit(peek(1)))) {
      return number();
    }
    if (c == U'\'' || c == U'"') {
      return string({});
    }
    if (starts_name(c)) {
      return name();
    }
    if (c == U'.' && peek(1) == U'.' && peek(2) == U'.') {
      add(PyToken::Kind::kNumber, at_ + 3, PyValue::of(Kind::kForeign));
      return true;
    }
    const std::u32string_view two = source_.substr(at_, 2);
    const bool pair = two.size() == 2 && two[1] != U' ' && kPairs.find(two) != kNone;
    if (!pair && kSigns.find(c) == kNone) {
      return false;
    }
    add(PyToken::Kind::kSign, at_ + (pair ? 2 : 1), {});
    return true;
  }

  static bool digit(char32_t c) { return c >= U'0' && c <= U'9'; }

  void add(PyToken::Kind kind, std::size_t end, PyValue value) {
    out_.push_back({kind, source_.substr(at_, end - at_), std::move(value)});
    at_ = end;
  }

  bool name() {
    std::size_t end = at_;
    while (end < source_.size() && is_word(source_[end])) {
      ++end;
    }
    if (end < source_.size() && (source_[end] == U'\'' || source_[end] == U'"')) {
      return string(source_.substr(at_, end - at_));
    }
    add(PyToken::Kind::kName, end, {});
    return true;
  }

  // Digits with single underscores between them, from `end` on, appended to `digits`.
  bool run(std::size_t& end, int base, std::u32string& digits) const {
    bool last_digit = false;
    for (; end < source_.size(); ++end) {
      const int value = digit_of(source_[end]);
      if (value >= 0 && value < base) {
        digits += source_[end];
        last_digit = true;
      } else if (source_[end] == U'_' && (last_digit || (digits.empty() && base != 10))) {
        last_digit = false;
      } else {
        break;
      }
    }
    return last_digit;
  }

  bool number() {
    const char32_t kind = peek(1) | 0x20U;
    const int base = kind == U'x' ? 16 : kind == U'o' ? 8 : kind == U'b' ? 2 : 10;
    std::size_t end = at_;
    std::u32string digits;
    if (peek() == U'0' && base != 10) {
      end += 2;
      if (!run(end, base, digits)) {
        return false;
      }
      return end_number(end, PyValue::of(Kind::kInt, decimal(digits, base)));
    }
    bool real = false;
    if (source_[end] != U'.' && !run(end, 10, digits)) {
      return false;
    }
    const std::size_t whole = digits.size();
    if (end < source_.size() && source_[end] == U'.') {
      digits += U'.';
      real = true;
      ++end;
      if (end < source_.size() && digit(source_[end]) && !run(end, 10, digits)) {
        return false;
      }
    }
    if (!exponent(end, digits, real)) {
      return false;
    }
    if (end < source_.size() && (source_[end] | 0x20U) == U'j') {
      return end_number(end + 1, PyValue::of(Kind::kForeign));
    }
    if (real) {
      const std::string written(digits.begin(), digits.end());
      const std::string text = float_text(std::strtod(written.c_str(), nullptr));
      return end_number(end, PyValue::of(Kind::kFloat, std::u32string(text.begin(), text.end())));
    }
    const bool zeros = digits.find_first_not_of(U'0') == kNone;
    if (whole > 1 && digits[0] == U'0' && !zeros) {
      return false;
    }
    return end_number(end, PyValue::of(Kind::kInt, zeros ? U"0" : digits));
  }

  bool exponent(std::size_t& end, std::u32string& digits, bool& real) const {
    if (end >= source_.size() || (source_[end] | 0x20U) != U'e') {
      return true;
    }
    std::size_t from = end + 1;
    std::u32string written = U"e";
    if (from < source_.size() && (source_[from] == U'+' || source_[from] == U'-')) {
      written += source_[from++];
    }
    std::u32string power;
    if (!run(from, 10, power)) {
      return false;
    }
    digits += written + power;
    real = true;
    end = from;
    return true;
  }

  // A number must not run on into a name, but for these words.
  bool end_number(std::size_t end, PyValue value) {
    std::size_t after = end;
    while (after < source_.size() && is_word(source_[after])) {
      ++after;
    }
    const std::u32string word = U" " + std::u32string(source_.substr(end, after - end)) + U" ";
    if (after > end && std::u32string_view(U" and else for if in is not or ").find(word) == kNone) {
      return false;
    }
    add(PyToken::Kind::kNumber, end, std::move(value));
    return true;
  }

  bool string(std::u32string_view prefix) {
    std::u32string lower(prefix);
    for (char32_t& c : lower) {
      c |= 0x20U;
    }
    constexpr std::array<std::u32string_view, 6> kPrefixes{U"", U"r", U"u", U"b", U"rb", U"br"};
    if (std::find(kPrefixes.begin(), kPrefixes.end(), lower) == kPrefixes.end()) {
      return false;
    }
    const bool raw = lower.find(U'r') != kNone;
    const bool bytes = lower.find(U'b') != kNone;
    std::size_t at = at_ + prefix.size();
    const char32_t quote = source_[at];
    const bool triple = source_.substr(at, 3) == std::u32string(3, quote);
    const std::u32string closing(triple ? 3 : 1, quote);
    PyValue value = PyValue::of(bytes ? Kind::kForeign : Kind::kText);
    for (at += closing.size(); at < source_.size();) {
      if (source_.substr(at, closing.size()) == closing) {
        add(PyToken::Kind::kString, at + closing.size(), std::move(value));
        return true;
      }
      const char32_t c = source_[at];
      if ((c == U'\n' && !triple) || (bytes && c >= 0x80U)) {
        return false;
      }
      if (c != U'\\') {
        value.text += c;
        ++at;
      } else if (raw) {
        value.text += source_.substr(at, 2);
        at += 2;
      } else if (!escape(at, bytes, value.text)) {
        return false;
      }
    }
    return false;
  }

  // At a backslash; afterwards behind what it stands for.
  bool escape(std::size_t& at, bool bytes, std::u32string& out) const {
    constexpr std::u32string_view kNames = U"\\'\"abfnrtv";
    constexpr std::u32string_view kMeanings = U"\\'\"\a\b\f\n\r\t\v";
    const char32_t c = at + 1 < source_.size() ? source_[at + 1] : U'\0';
    at += 2;
    if (c == U'\n') {
      return true;
    }
    if (const std::size_t known = kNames.find(c); known != kNone) {
      out += kMeanings[known];
      return true;
    }
    if (c >= U'0' && c <= U'7') {
      --at;
      return coded(at, 8, 1, 3, out);
    }
    if (c == U'x') {
      return coded(at, 16, 2, 2, out);
    }
    if (!bytes && (c == U'u' || c == U'U')) {
      const std::size_t count = c == U'u' ? 4 : 8;
      return coded(at, 16, count, count, out);
    }
    if (!bytes && c == U'N') {
      return false;  // characters by their names: not known here
    }
    out += U'\\';
    out += c;
    return true;
  }

  bool coded(std::size_t& at, int base, std::size_t least, std::size_t most,
             std::u32string& out) const {
    std::uint32_t code = 0;
    std::size_t count = 0;
    for (; count < most && at < source_.size(); ++count, ++at) {
      const int value = digit_of(source_[at]);
      if (value < 0 || value >= base) {
        break;
      }
      code = code * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(value);
    }
    out += static_cast<char32_t>(code);
    return count >= least && code <= 0x10FFFFU;
  }

  std::u32string_view source_;
  std::size_t at_ = 0;
  std::vector<PyToken> out_;
};

}  // namespace

std::optional<std::vector<PyToken>> python_tokens(std::u32string_view source) {
  return Reader(source).read();
}

}  // namespace tutti::accuracy
