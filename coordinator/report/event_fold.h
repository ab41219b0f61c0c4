#pragma once

// fold_events(): an event file of the reference's form → Snapshot, through the same Fold as a live
// run. Texts are counted by a TokenCounter, as the file holds texts and not counts. For conformance
// tests and for recomputing a stored run. Reads the file once, line by line; memory grows with the
// queries in flight and with the series.

#include <functional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "coordinator/report/fold.h"

namespace tutti::report {

struct TokenCounter {
  // Tokens of plain text, without special tokens.
  std::function<std::int64_t(std::string_view)> text;
  // Tokens of a chat prompt (JSON array of messages); -1: cannot say. Null: no such counts.
  std::function<std::int64_t(std::string_view messages_json)> messages;
};

struct EventFoldOptions {
  bool streaming = true;
  bool early_stopping = true;
  RunState state = RunState::kComplete;
  base::Instant now{};  // the snapshot's own stamp
};

// A reply with reasoning or tool calls is counted over its non-empty pieces (content, reasoning,
// tool calls as JSON) joined by newlines; any other over its text. Fails with file:line on a line
// that is not an event.
base::Result<Snapshot> fold_events(const std::string& path, const TokenCounter& counter,
                                   const EventFoldOptions& options);

}  // namespace tutti::report
