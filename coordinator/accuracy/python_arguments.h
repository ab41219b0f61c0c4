#pragma once

// The keyword arguments of a call in Python's syntax, as ast.parse, ast.literal_eval and, for what
// is no literal, ast.unparse give them. Lambdas, comprehensions, f-strings, `:=` and characters by
// name are not read. Pure.

#include <optional>
#include <string_view>

#include "coordinator/accuracy/python_value.h"

namespace tutti::accuracy {

// `source`: between the parentheses. A kDict; nothing: not to be read.
std::optional<PyValue> python_arguments(std::u32string_view source);

}  // namespace tutti::accuracy
