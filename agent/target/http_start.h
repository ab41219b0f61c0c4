#pragma once

// Starting libcurl: once per process, before any transport. Engines call it; it is cheap to repeat.

#include "common/base/result.h"

namespace tutti::target {

base::Status start_http();

}  // namespace tutti::target
