#pragma once

// The words of a Python expression between its outer parentheses. Internal to this folder. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/accuracy/python_value.h"

namespace tutti::accuracy {

struct PyToken {
  enum class Kind : std::uint8_t { kName, kNumber, kString, kSign, kEnd };

  Kind kind = Kind::kEnd;
  std::u32string_view text;  // in the source
  PyValue value;             // of numbers and strings
};

// The last one is kEnd. Nothing: Python would not read it, or it has f-strings.
std::optional<std::vector<PyToken>> python_tokens(std::u32string_view source);

}  // namespace tutti::accuracy
