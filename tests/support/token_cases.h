#pragma once

// Cases of tests/conformance/tokens_expected.py, one JSON object each: what the Hugging Face
// libraries made of a text, a conversation or a reply.

#include <string>

#include "common/model/token_counter.h"
#include "common/text/json_read.h"

namespace tutti::test {

// What `counter` makes of the case otherwise; empty when nothing.
std::string check_token_case(const model::TokenCounter& counter, const text::JsonValue& one);

}  // namespace tutti::test
