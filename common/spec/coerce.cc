#include "common/spec/coerce.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kWantsInt = "must be a whole number";
constexpr std::string_view kWantsFloat = "must be a number";
constexpr std::string_view kWantsDuration =
    "must be milliseconds (600000) or a duration like 500ms, 30s or 10m";

tl::unexpected<std::string> no(std::string_view message) {
  return tl::unexpected<std::string>(std::string(message));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits with single underscores between them.
bool is_digit_group(std::string_view text) {
  bool after_digit = false;
  for (const char c : text) {
    if (!is_digit(c) && (c != '_' || !after_digit)) {
      return false;
    }
    after_digit = is_digit(c);
  }
  return after_digit;
}

// [+-] digits [. zeros]
std::optional<WholeNumber> whole_of(std::string_view text) {
  text = trimmed(text);
  WholeNumber number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const std::size_t dot = text.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view zeros = text.substr(dot + 1);
    if (zeros.empty() ||
        !std::all_of(zeros.begin(), zeros.end(), [](char c) { return c == '0'; })) {
      return std::nullopt;
    }
    text = text.substr(0, dot);
  }
  if (!is_digit_group(text)) {
    return std::nullopt;
  }
  std::string digits(text);
  std::erase(digits, '_');
  const auto parsed =
      std::from_chars(digits.data(), digits.data() + digits.size(), number.magnitude);
  number.too_large = parsed.ec != std::errc{};
  return number;
}

std::optional<double> real_of(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') && !text.substr(1).starts_with('-')) {
    text.remove_prefix(1);
  }
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || text.ends_with(')')) {
    return std::nullopt;
  }
  return value;
}

Coerced<std::int64_t> narrowed(const WholeNumber& number) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (number.too_large || number.magnitude > kMost) {
    return no("is too large");
  }
  const auto value = static_cast<std::int64_t>(number.magnitude);
  return number.negative ? -value : value;
}

Coerced<std::int64_t> scaled_ms(std::string_view text, double scale) {
  const auto value = real_of(text);
  if (!value) {
    return no(kWantsDuration);
  }
  const double ms = *value * scale;
  if (!std::isfinite(ms) || std::abs(ms) > 9e15) {
    return no("is too large");
  }
  return static_cast<std::int64_t>(ms);
}

}  // namespace

Coerced<bool> to_bool(const Tree& tree) {
  static constexpr std::array<std::string_view, 6> kTrue{"true", "t", "yes", "y", "on", "1"};
  static constexpr std::array<std::string_view, 6> kFalse{"false", "f", "no", "n", "off", "0"};
  if (tree.kind == Tree::Kind::kBool) {
    return tree.boolean;
  }
  if (tree.kind == Tree::Kind::kInt && !tree.whole.too_large && tree.whole.magnitude <= 1) {
    return tree.whole.magnitude == 1 && !tree.whole.negative ? Coerced<bool>(true)
           : tree.whole.magnitude == 0                       ? Coerced<bool>(false)
                                                             : no("must be true or false");
  }
  if (tree.kind == Tree::Kind::kFloat && (tree.real == 0.0 || tree.real == 1.0)) {
    return tree.real == 1.0;
  }
  if (tree.kind == Tree::Kind::kString) {
    const std::string word = lower_case(tree.text);
    if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) {
      return true;
    }
    if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) {
      return false;
    }
  }
  return no("must be true or false");
}

Coerced<WholeNumber> to_whole(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kBool:
      return WholeNumber::of(tree.boolean ? 1 : 0);
    case Tree::Kind::kInt:
      return tree.whole;
    case Tree::Kind::kFloat:
      if (std::abs(tree.real) < 9e18 && std::floor(tree.real) == tree.real) {
        return WholeNumber::of(static_cast<std::int64_t>(tree.real));
      }
      return no(kWantsInt);
    case Tree::Kind::kString:
      if (const auto number = whole_of(tree.text)) {
        return *number;
      }
      return no(kWantsInt);
    default:
      return no(kWantsInt);
  }
}

Coerced<std::int64_t> to_int(const Tree& tree) {
  const auto number = to_whole(tree);
  return number ? narrowed(*number) : Coerced<std::int64_t>(no(number.error()));
}

Coerced<double> to_float(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kBool:
      return tree.boolean ? 1.0 : 0.0;
    case Tree::Kind::kInt:
      return tree.whole.too_large ? Coerced<double>(no("is too large")) : tree.whole.to_double();
    case Tree::Kind::kFloat:
      return tree.real;
    case Tree::Kind::kString:
      if (const auto value = real_of(tree.text)) {
        return *value;
      }
      return no(kWantsFloat);
    default:
      return no(kWantsFloat);
  }
}

Coerced<std::string> to_text(const Tree& tree) {
  if (tree.kind == Tree::Kind::kString) {
    return tree.text;
  }
  const bool is_scalar = !tree.is_list() && !tree.is_map() && !tree.is_null();
  return no(is_scalar ? "must be text; put it in quotes" : "must be text");
}

Coerced<std::int64_t> to_duration_ms(const Tree& tree) {
  if (tree.kind != Tree::Kind::kString) {
    const auto value = to_int(tree);
    return value ? value : Coerced<std::int64_t>(no(kWantsDuration));
  }
  const std::string_view text = trimmed(tree.text);
  if (text.ends_with("ms")) {
    const auto number = whole_of(text.substr(0, text.size() - 2));
    return number && text.find('.') == std::string_view::npos
               ? narrowed(*number)
               : Coerced<std::int64_t>(no(kWantsDuration));
  }
  if (text.ends_with('m')) {
    return scaled_ms(text.substr(0, text.size() - 1), 60'000.0);
  }
  if (text.ends_with('s')) {
    return scaled_ms(text.substr(0, text.size() - 1), 1'000.0);
  }
  const auto number = whole_of(text);
  return number ? narrowed(*number) : Coerced<std::int64_t>(no(kWantsDuration));
}

}  // namespace tutti::spec
