#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tutti::base {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "tutti: %s:%d: promise broken: %s\n", file, line, expression);
  std::abort();
}

}  // namespace tutti::base
