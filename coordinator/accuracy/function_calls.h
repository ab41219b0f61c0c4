#pragma once

// The calls a reply makes, as the reference's function_call_extractor tells them: a JSON list of
// {"name", "arguments"}, from tool calls, from a list of such objects, or, as the last resort, from
// what looks like calls in Python's syntax. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace tutti::accuracy {

// Nothing: no calls, or some that JSON cannot tell (where the reference's run fails).
std::optional<std::string> function_calls(std::string_view text);

}  // namespace tutti::accuracy
