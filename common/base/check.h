#pragma once

// TUTTI_CHECK: a programmer's error ends the process at once, with file, line and the broken
// promise. Operating errors (bad input, a lost peer, a full disk) are never checks: they are
// values, see result.h.

namespace tutti::base {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace tutti::base

#define TUTTI_CHECK(expression)        \
  ((expression) ? static_cast<void>(0) \
                : ::tutti::base::check_failed(#expression, __FILE__, __LINE__))
