#pragma once

// What a turn of a recorded conversation did, and how far a reply does the same: the judging of
// agentic_inference_inline. A coding turn is told by the programs its `bash` calls start, a
// workflow turn by the intent it names. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/text/json_read.h"

namespace tutti::accuracy {

// "sim_" and digits name workflows; all else is coding.
bool is_workflow(std::string_view conversation);

// Known programs that the stages of a shell command start, in order, by one name each
// ("/usr/bin/python3 -m x | rg y" gives python, grep). What stands in quotes is not looked at.
std::vector<std::string> actions_of_command(std::string_view command);
// Of all calls of `bash` in a list of tool calls; their arguments are JSON text or an object, with
// the command in `command` or `cmd`.
std::vector<std::string> actions_of_calls(const text::JsonValue& tool_calls);

// "I" and three digits: the first that stands behind "intent:", in the reasoning or else in the
// content; without one the last that stands alone there.
std::optional<std::string> intent_of(std::string_view reasoning, std::string_view content);

// The recorded answer to one turn. At least one of the two lists holds something.
struct TurnTruth {
  bool workflow = false;
  std::vector<std::string> intents;  // in capitals; any of them is right
  std::vector<std::string> actions;
};
// From the columns of the recorded assistant row. Nothing: it tells nothing that can be compared.
std::optional<TurnTruth> truth_of(bool workflow, const text::JsonValue& assistant_row);

// What a reply did; `tool_calls` is a JSON list, or empty.
struct TurnAnswer {
  std::optional<std::string> intent;
  std::vector<std::string> actions;
};
TurnAnswer answer_of(bool workflow, std::string_view reasoning, std::string_view content,
                     std::string_view tool_calls);

// 0 to 1: 1 for a right intent; of actions what both have over what either has, each as often as it
// stands there.
double agreement(const TurnTruth& truth, const TurnAnswer& answer);

}  // namespace tutti::accuracy
