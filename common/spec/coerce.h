#pragma once

// One scalar of a document to the type a field wants, as leniently as the reference does and no
// more: "5" and 5.0 are ints, "on" is a bool, a number is never a text. Errors say what would be
// right, in words that follow the value ("must be a whole number"). Pure.

#include <cstdint>
#include <string>

#include <tl/expected.hpp>

#include "common/spec/tree.h"

namespace tutti::spec {

template <class T>
using Coerced = tl::expected<T, std::string>;

Coerced<bool> to_bool(const Tree& tree);
Coerced<WholeNumber> to_whole(const Tree& tree);
Coerced<std::int64_t> to_int(const Tree& tree);
Coerced<double> to_float(const Tree& tree);
Coerced<std::string> to_text(const Tree& tree);

// Milliseconds from an int, "500ms", "30s", "1.5m"; seconds and minutes are cut to whole
// milliseconds.
Coerced<std::int64_t> to_duration_ms(const Tree& tree);

}  // namespace tutti::spec
