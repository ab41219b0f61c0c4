#pragma once

// failure_type(): a failure's name in the files, as the reference client's closest exception is
// called. Agents name the failure of an earlier turn with it, the report every failure. Pure.

#include <string_view>

#include "common/wire/record.h"

namespace tutti::wire {

// "error" for an HTTP status; `message` tells a refused connection from others.
std::string_view failure_type(Failure failure, std::string_view message);

}  // namespace tutti::wire
