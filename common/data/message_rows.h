#pragma once

// One row of a multi-turn data set: its columns, what each role may and must hold, and the messages
// it becomes. Internal to this folder. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "common/text/json_read.h"

namespace tutti::data {

enum class Role : std::uint8_t { kNone, kUser, kAssistant, kTool };
Role role_of(const text::JsonValue& row);  // kNone: absent, or another word

struct ColumnFault {
  std::string column;
  std::string remedy;
};

// Columns that are read; all others are dropped.
bool is_message_column(std::string_view column);

// CSV cells are text: those that must be something else are read here, and an empty cell is null.
std::vector<ColumnFault> read_csv_cells(text::JsonValue& row);

// What is wrong with the row alone, all of it.
std::vector<ColumnFault> check_message_row(const text::JsonValue& row);

// The conversation's id as it is printed; empty when it has none that can be used.
std::string conversation_id_of(const text::JsonValue& row);
// 0: none that can be used.
std::uint32_t turn_of(const text::JsonValue& row);
// The cell, unless it is absent or null.
const text::JsonValue* cell_or_null(const text::JsonValue& row, std::string_view column);
bool has_tool_calls(const text::JsonValue& row);

// The messages of a checked row: one, or one for each tool result.
void append_messages(const text::JsonValue& row, std::vector<text::JsonValue>& out);

// Request fields of the row (`first_user`: of its conversation, for what is inherited), with
// `max_completion_tokens` when one of the row's limits says it.
std::vector<text::JsonValue::Member> request_fields(const text::JsonValue& row,
                                                    const text::JsonValue& first_user);

}  // namespace tutti::data
