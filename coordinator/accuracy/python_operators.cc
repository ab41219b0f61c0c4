// The operators of PythonParser, loosest first.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/accuracy/python_parser.h"

namespace tutti::accuracy {
namespace {

using Kind = PyValue::Kind;

struct Operator {
  std::u32string_view text;
  int level;
};
constexpr std::array<Operator, 13> kBinary{{{U"|", kBitOr},
                                            {U"^", kBitXor},
                                            {U"&", kBitAnd},
                                            {U"<<", kShift},
                                            {U">>", kShift},
                                            {U"+", kArith},
                                            {U"-", kArith},
                                            {U"*", kTerm},
                                            {U"/", kTerm},
                                            {U"//", kTerm},
                                            {U"%", kTerm},
                                            {U"@", kTerm},
                                            {U"**", kPower}}};

const Operator* binary_operator(const PyToken& now, int level) {
  for (const Operator& each : kBinary) {
    if (each.level == level && now.kind == PyToken::Kind::kSign && now.text == each.text) {
      return &each;
    }
  }
  return nullptr;
}

bool is_literal_number(const Node& node) {
  return node.value && (node.value->kind == Kind::kInt || node.value->kind == Kind::kFloat);
}

}  // namespace

bool PythonParser::test(Node& out) {
  if (++depth_ > kDepthMax || !any(out, kOr)) {
    return false;
  }
  --depth_;
  if (!take(U"if")) {
    return true;
  }
  Node condition;
  Node other;
  if (!any(condition, kOr) || !take(U"else") || !test(other)) {
    return false;
  }
  out = {in(out, kOr) + U" if " + in(condition, kOr) + U" else " + in(other, kTest), kTest,
         std::nullopt};
  return true;
}

bool PythonParser::any(Node& out, int level) {
  const std::u32string_view word = level == kOr ? U"or" : U"and";
  const auto operand = [this, level](Node& node) {
    return level == kOr ? any(node, kAnd) : negation(node);
  };
  if (!operand(out)) {
    return false;
  }
  if (!is(word)) {
    return true;
  }
  int wanted = level + 1;
  std::u32string source = in(out, wanted);
  while (take(word)) {
    Node next;
    if (!operand(next)) {
      return false;
    }
    source.append(U" ").append(word).append(U" ").append(in(next, ++wanted));
  }
  out = {source, level, std::nullopt};
  return true;
}

bool PythonParser::negation(Node& out) {
  if (!take(U"not")) {
    return comparison(out);
  }
  if (++depth_ > kDepthMax || !negation(out)) {
    return false;
  }
  --depth_;
  out = {U"not " + in(out, kNot), kNot, std::nullopt};
  return true;
}

std::u32string PythonParser::compare_sign() {
  for (const std::u32string_view sign : {U"<", U">", U"==", U">=", U"<=", U"!=", U"in"}) {
    if (take(sign)) {
      return std::u32string(sign);
    }
  }
  if (take(U"is")) {
    return take(U"not") ? U"is not" : U"is";
  }
  if (is(U"not") && tokens_[at_ + 1].text == U"in") {
    at_ += 2;
    return U"not in";
  }
  return {};
}

bool PythonParser::comparison(Node& out) {
  if (!binary(out, kBitOr)) {
    return false;
  }
  for (std::u32string sign = compare_sign(); !sign.empty(); sign = compare_sign()) {
    Node next;
    if (!binary(next, kBitOr)) {
      return false;
    }
    const std::u32string left = out.level == kCompare ? out.source : in(out, kBitOr);
    out = {left + U" " + sign + U" " + in(next, kBitOr), kCompare, std::nullopt};
  }
  return true;
}

bool PythonParser::binary(Node& out, int level) {
  if (level == kFactor) {
    return factor(out);
  }
  if (!binary(out, level + 1)) {
    return false;
  }
  while (const Operator* const sign = binary_operator(now(), level)) {
    ++at_;
    Node next;
    if (!binary(next, level + 1)) {
      return false;
    }
    const bool sum = level == kArith && is_literal_number(out) && next.is_number && next.value &&
                     next.value->kind == Kind::kForeign;
    std::u32string source = in(out, level);
    source.append(U" ").append(sign->text).append(U" ").append(in(next, level + 1));
    out = {std::move(source), level,
           sum ? std::optional(PyValue::of(Kind::kForeign)) : std::nullopt};
  }
  return true;
}

bool PythonParser::factor(Node& out) {
  for (const std::u32string_view sign : {U"+", U"-", U"~"}) {
    if (!take(sign)) {
      continue;
    }
    if (++depth_ > kDepthMax || !factor(out)) {
      return false;
    }
    --depth_;
    std::optional<PyValue> value;
    if (out.is_number && out.value && sign != U"~") {
      value = out.value;
      if (sign == U"-" && value->kind != Kind::kForeign &&
          !(value->kind == Kind::kInt && value->text == U"0")) {
        value->text.insert(0, U"-");
      }
    }
    out = {std::u32string(sign) + in(out, kFactor), kFactor, std::move(value)};
    return true;
  }
  return power(out);
}

bool PythonParser::power(Node& out) {
  if (!primary(out)) {
    return false;
  }
  if (take(U"**")) {
    Node next;
    if (!factor(next)) {
      return false;
    }
    out = {in(out, kAwait) + U" ** " + in(next, kPower), kPower, std::nullopt};
  }
  return true;
}

}  // namespace tutti::accuracy
