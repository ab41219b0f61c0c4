#pragma once

// read_usual_event: the fast road of read_event, for documents as servers usually write them: one
// pass over the bytes, no tables. Whenever it answers, the full reading (simdjson) says the same,
// and what that one refuses is never answered. Whatever is not usual is left to it: escapes, bytes
// beyond ASCII, numbers that are not counts, tool calls, errors, no choice, a member that decides
// and comes twice. Pure; any thread.

#include <string_view>

#include "agent/target/reply_event.h"
#include "common/base/vocabulary.h"

namespace tutti::target {

class ValueTrace;

// False: not answered, `facts` mean nothing. Their views point into `json`. `trace`, if any, gets
// the document's values.
bool read_usual_event(std::string_view json, base::ApiType api, EventShape shape, EventFacts& facts,
                      ValueTrace* trace = nullptr);

}  // namespace tutti::target
