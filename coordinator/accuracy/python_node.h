#pragma once

// A piece of a Python expression as ast.unparse writes it, and its value when it is a literal.
// Internal to this folder. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "coordinator/accuracy/python_value.h"

namespace tutti::accuracy {

// How tightly an operator binds: ast.unparse puts parentheses around what binds less than wanted.
enum Level : int {
  kTuple = 1,
  kTest = 3,
  kOr,
  kAnd,
  kNot,
  kCompare,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShift,
  kArith,
  kTerm,
  kFactor,
  kPower,
  kAwait,
  kAtom,
};

struct Node {
  std::u32string source;  // as ast.unparse writes it
  int level = kAtom;
  std::optional<PyValue> value;  // of a literal
  bool is_number = false;        // a bare one: it may have a sign
  bool is_int = false;
  bool is_tuple = false;
};

// Where `wanted` or more is needed.
std::u32string in(const Node& node, int wanted);

// repr() of a text.
std::u32string quoted(std::u32string_view text);

}  // namespace tutti::accuracy
