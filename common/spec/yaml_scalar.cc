#include "common/spec/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace tutti::spec {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<bool> bool_of(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kTrue{"yes",  "Yes", "YES", "true", "True",
                                                         "TRUE", "on",  "On",  "ON"};
  static constexpr std::array<std::string_view, 9> kFalse{"no",    "No",  "NO",  "false", "False",
                                                          "FALSE", "off", "Off", "OFF"};
  if (is_one_of(text, kTrue)) {
    return true;
  }
  return is_one_of(text, kFalse) ? std::optional<bool>(false) : std::nullopt;
}

// Adds digits of one base to `number`; false when a character is no digit of it.
bool accumulate(std::string_view digits, unsigned radix, WholeNumber& number) {
  bool any = false;
  for (const char c : digits) {
    if (c == '_') {
      continue;
    }
    const unsigned digit = is_digit(c)            ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                           : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A') + 10
                                                  : 99U;
    if (digit >= radix) {
      return false;
    }
    any = true;
    if (number.magnitude > (std::numeric_limits<std::uint64_t>::max() - digit) / radix) {
      number.too_large = true;
    }
    number.magnitude = number.magnitude * radix + digit;
  }
  return any;
}

// d+(:dd)+ in base 60; parts after the first are 0..59.
std::optional<WholeNumber> sexagesimal(std::string_view text) {
  WholeNumber total;
  bool first = true;
  while (true) {
    const std::size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    WholeNumber value;
    if (!accumulate(part, 10, value) || value.too_large ||
        (!first && (part.size() > 2 || value.magnitude > 59))) {
      return std::nullopt;
    }
    if (total.magnitude > (std::numeric_limits<std::uint64_t>::max() - value.magnitude) / 60) {
      total.too_large = true;
    }
    total.magnitude = total.magnitude * 60 + value.magnitude;
    first = false;
    if (colon == std::string_view::npos) {
      return total;
    }
    text.remove_prefix(colon + 1);
  }
}

std::optional<WholeNumber> int_of(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty() || !is_digit(text[0])) {
    return std::nullopt;
  }
  std::optional<WholeNumber> number = WholeNumber{};
  if (text == "0") {
    return number;
  }
  if (text.find(':') != std::string_view::npos) {
    number = text[0] == '0' ? std::nullopt : sexagesimal(text);
  } else if (text.starts_with("0b")) {
    number = accumulate(text.substr(2), 2, *number) ? number : std::nullopt;
  } else if (text.starts_with("0x")) {
    number = accumulate(text.substr(2), 16, *number) ? number : std::nullopt;
  } else {
    number = accumulate(text, text[0] == '0' ? 8 : 10, *number) ? number : std::nullopt;
  }
  if (number) {
    number->negative = negative;
  }
  return number;
}

// [-+]digits.digits with an exponent only when it is signed.
bool looks_like_float(std::string_view text) {
  std::size_t at = 0;
  const auto skip_digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && (is_digit(text[at]) || text[at] == '_')) {
      ++at;
    }
    return at > begin;
  };
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  at = has_sign ? 1 : 0;
  const bool whole_part = at < text.size() && is_digit(text[at]) && skip_digits();
  if (at >= text.size() || text[at] != '.') {
    return false;
  }
  ++at;
  const bool digit_first = at < text.size() && is_digit(text[at]);
  skip_digits();
  if (!whole_part && (has_sign || !digit_first)) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at >= text.size() || (text[at] != '-' && text[at] != '+')) {
      return false;
    }
    ++at;
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) {
      ++at;
    }
    return at > begin && at == text.size();
  }
  return at == text.size();
}

std::optional<double> special_float(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kInf{".inf", ".Inf", ".INF"};
  static constexpr std::array<std::string_view, 3> kNan{".nan", ".NaN", ".NAN"};
  if (is_one_of(text, kNan)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  if (!is_one_of(text, kInf)) {
    return std::nullopt;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return negative ? -infinity : infinity;
}

// 1:30.5 is 90.5
std::optional<double> sexagesimal_float(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || text.substr(0, dot).find(':') == std::string_view::npos ||
      text.substr(dot).find(':') != std::string_view::npos || !is_digit(text[0])) {
    return std::nullopt;
  }
  const auto whole = sexagesimal(text.substr(0, dot));
  std::string fraction = "0" + std::string(text.substr(dot)) + "0";
  std::erase(fraction, '_');
  double part = 0;
  const char* end = fraction.data() + fraction.size();
  if (!whole || std::from_chars(fraction.data(), end, part).ptr != end) {
    return std::nullopt;
  }
  const double value = whole->to_double() + part;
  return negative ? -value : value;
}

std::optional<double> float_of(std::string_view text) {
  if (const auto special = special_float(text)) {
    return special;
  }
  if (!looks_like_float(text)) {
    return sexagesimal_float(text);
  }
  std::string digits(text.starts_with('+') ? text.substr(1) : text);
  std::erase(digits, '_');
  double value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec == std::errc::result_out_of_range) {
    const bool tiny =
        digits.find("e-") != std::string::npos || digits.find("E-") != std::string::npos;
    const double edge = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    return digits[0] == '-' ? -edge : edge;
  }
  return value;
}

// dddd-dd-dd, or dddd-d?d-d?d followed by a time; the exact time grammar does not matter, because
// no field takes a date.
bool looks_like_date(std::string_view text) {
  if (text.size() < 8 || !std::all_of(text.begin(), text.begin() + 4, is_digit) || text[4] != '-') {
    return false;
  }
  const auto digits_from = [&](std::size_t at) {
    std::size_t n = 0;
    while (at + n < text.size() && is_digit(text[at + n])) {
      ++n;
    }
    return n;
  };
  const std::size_t month = digits_from(5);
  const std::size_t dash = 5 + month;
  if (month < 1 || month > 2 || dash >= text.size() || text[dash] != '-') {
    return false;
  }
  const std::size_t day = digits_from(dash + 1);
  const std::size_t rest = dash + 1 + day;
  if (rest == text.size()) {
    return month == 2 && day == 2;
  }
  const bool separated = text[rest] == 'T' || text[rest] == 't' || text[rest] == ' ';
  return (day == 1 || day == 2) && separated && text.find(':', rest) != std::string_view::npos;
}

}  // namespace

Tree plain_scalar(std::string_view text) {
  Tree tree = Tree::of_string(std::string(text));
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    tree.kind = Tree::Kind::kNull;
  } else if (const auto truth = bool_of(text)) {
    tree.kind = Tree::Kind::kBool;
    tree.boolean = *truth;
  } else if (const auto whole = int_of(text)) {
    tree.kind = Tree::Kind::kInt;
    tree.whole = *whole;
  } else if (const auto real = float_of(text)) {
    tree.kind = Tree::Kind::kFloat;
    tree.real = *real;
  } else if (looks_like_date(text)) {
    tree.kind = Tree::Kind::kDate;
  }
  return tree;
}

bool is_typed_when_plain(std::string_view text) {
  return plain_scalar(text).kind != Tree::Kind::kString || text == "<<" || text == "=";
}

}  // namespace tutti::spec
