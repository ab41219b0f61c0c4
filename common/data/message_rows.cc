#include "common/data/message_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tutti::data {
namespace {

using text::JsonKind;
using text::JsonValue;

constexpr std::array<std::string_view, 11> kMessageColumns = {"conversation_id",
                                                              "turn",
                                                              "role",
                                                              "content",
                                                              "system",
                                                              "tool_calls",
                                                              "tool_results",
                                                              "reasoning_content",
                                                              "name",
                                                              "delay_seconds",
                                                              "intent_codes"};
// Sent as they are.
constexpr std::array<std::string_view, 14> kOwnFields = {
    "temperature",          "seed",       "top_p", "top_k",
    "repetition_penalty",   "n",          "stop",  "presence_penalty",
    "frequency_penalty",    "logit_bias", "user",  "chat_template",
    "chat_template_kwargs", "tool_choice"};
// A row that has none takes those of its conversation's first user row.
constexpr std::array<std::string_view, 5> kInherited = {"model", "max_completion_tokens",
                                                        "max_new_tokens", "stream", "tools"};
constexpr std::array<std::string_view, 7> kTextColumns = {
    "conversation_id", "role", "content", "system", "reasoning_content", "name", "model"};
constexpr std::array<std::string_view, 6> kNumbers = {
    "temperature", "top_p", "top_k", "repetition_penalty", "presence_penalty", "frequency_penalty"};
constexpr std::array<std::string_view, 5> kCounts = {"max_new_tokens", "max_completion_tokens",
                                                     "max_tokens", "n", "seed"};

template <class List>
bool holds(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_filled_text(const JsonValue* cell) {
  return cell != nullptr && cell->is_string() && !cell->as_string().empty();
}

// Text, or a list of content parts; not empty.
bool is_content(const JsonValue* cell) {
  return is_filled_text(cell) ||
         (cell != nullptr && cell->is_array() && !cell->items().empty() &&
          std::all_of(cell->items().begin(), cell->items().end(),
                      [](const JsonValue& part) { return part.is_object(); }));
}

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 32 && c <= 126; });
}

std::string fault_of_call(const JsonValue& call) {
  if (!call.is_object()) {
    return "must be an object";
  }
  const JsonValue* const type = call.find("type");
  const JsonValue* const function = call.find("function");
  if (!is_filled_text(call.find("id"))) {
    return "needs an id that is text";
  }
  if (type == nullptr || !type->is_string() || type->as_string() != "function") {
    return "needs type: function";
  }
  if (function == nullptr || !is_filled_text(function->find("name"))) {
    return "needs a function with a name";
  }
  const JsonValue* const arguments = function->find("arguments");
  return arguments != nullptr && (arguments->is_string() || arguments->is_object())
             ? ""
             : "needs function.arguments, text or an object";
}

std::string fault_of_result(const JsonValue& result) {
  if (!result.is_object()) {
    return "must be an object";
  }
  if (!is_filled_text(result.find("tool_call_id"))) {
    return "needs a tool_call_id that is text";
  }
  const JsonValue* const content = result.find("content");
  return content == nullptr || content->is_null() ? "needs content" : "";
}

void check_list(const JsonValue& row, const std::string& column,
                std::string (*fault_of)(const JsonValue&), std::vector<ColumnFault>& out) {
  const JsonValue& list = *row.find(column);
  if (!list.is_array() || list.items().empty()) {
    out.push_back({column, "must be a list with at least one entry"});
    return;
  }
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    if (const std::string fault = fault_of(list.items()[i]); !fault.empty()) {
      out.push_back({fmt::format("{}[{}]", column, i), fault});
    }
  }
}

void check_content(const JsonValue& row, Role role, std::vector<ColumnFault>& out) {
  const JsonValue* const content = cell_or_null(row, "content");
  const bool calls = has_tool_calls(row);
  switch (role) {
    case Role::kUser:
      if (!is_content(content)) {
        out.push_back({"content", "a user row needs content: text or a list of content parts"});
      }
      break;
    case Role::kAssistant:
      if (calls) {
        check_list(row, "tool_calls", fault_of_call, out);
      }
      if (!is_content(content) && !calls) {
        out.push_back({"content", "an assistant row needs content or tool_calls"});
      }
      break;
    case Role::kTool:
      if (cell_or_null(row, "tool_results") == nullptr) {
        out.push_back({"tool_results", "a tool row needs tool_results"});
      } else {
        check_list(row, "tool_results", fault_of_result, out);
      }
      break;
    case Role::kNone:
      out.push_back({"role", "must be user, assistant or tool"});
  }
}

void check_fields(const JsonValue& row, std::vector<ColumnFault>& out) {
  const auto need = [&](std::string_view column, auto good, const char* what) {
    const JsonValue* const cell = cell_or_null(row, column);
    if (cell != nullptr && !good(*cell)) {
      out.push_back(
          {std::string(column), fmt::format("must be {}, this is {}", what, cell->kind_name())});
    }
  };
  for (const auto column : kNumbers) {
    need(
        column, [](const JsonValue& v) { return v.is_number(); }, "a number");
  }
  for (const auto column : kCounts) {
    need(
        column, [](const JsonValue& v) { return v.is_integer(); }, "a whole number");
  }
  need(
      "delay_seconds", [](const JsonValue& v) { return v.is_number(); }, "a number");
  need(
      "stream", [](const JsonValue& v) { return v.kind() == JsonKind::kBool; }, "true or false");
  need(
      "tools", [](const JsonValue& v) { return v.is_array(); }, "a list");
  for (const auto column : {"chat_template_kwargs", "logit_bias"}) {
    need(
        column, [](const JsonValue& v) { return v.is_object(); }, "an object");
  }
  for (const auto column : {"model", "name", "reasoning_content", "user", "chat_template"}) {
    need(
        column, [](const JsonValue& v) { return v.is_string(); }, "text");
  }
}

// Python's truth: a limit of 0 is none.
const JsonValue* limit_of(const JsonValue* cell) {
  const bool none =
      cell == nullptr || cell->is_null() || (cell->kind() == JsonKind::kInt && cell->as_int() == 0);
  return none ? nullptr : cell;
}

}  // namespace

Role role_of(const JsonValue& row) {
  const JsonValue* const role = row.find("role");
  if (role == nullptr || !role->is_string()) {
    return Role::kNone;
  }
  const std::string& word = role->as_string();
  return word == "user"        ? Role::kUser
         : word == "assistant" ? Role::kAssistant
         : word == "tool"      ? Role::kTool
                               : Role::kNone;
}

bool is_message_column(std::string_view column) {
  return holds(kMessageColumns, column) || holds(kOwnFields, column) || holds(kInherited, column) ||
         column == "max_tokens" || column == "_type";
}

std::vector<ColumnFault> read_csv_cells(JsonValue& row) {
  std::vector<ColumnFault> out;
  for (auto& [column, cell] : row.members()) {
    if (!cell.is_string()) {
      continue;
    }
    if (cell.as_string().empty()) {
      cell = JsonValue();
      continue;
    }
    const bool text = holds(kTextColumns, column) || column == "user" || column == "_type" ||
                      column == "chat_template" || column == "stop" || column == "tool_choice";
    if (text) {
      continue;
    }
    auto value = text::read_json(cell.as_string());
    if (value) {
      cell = std::move(*value);
    } else {
      out.push_back({column, "the cell must hold JSON"});
    }
  }
  return out;
}

std::vector<ColumnFault> check_message_row(const JsonValue& row) {
  std::vector<ColumnFault> out;
  const JsonValue* const id = cell_or_null(row, "conversation_id");
  if (conversation_id_of(row).empty()) {
    out.push_back({"conversation_id", id == nullptr
                                          ? "each row needs one"
                                          : "must be printable ASCII, at least one character"});
  }
  if (turn_of(row) == 0) {
    out.push_back({"turn", "must be a whole number from 1"});
  }
  check_content(row, role_of(row), out);
  check_fields(row, out);
  return out;
}

std::string conversation_id_of(const JsonValue& row) {
  const JsonValue* const id = cell_or_null(row, "conversation_id");
  if (id == nullptr || !(id->is_string() || id->is_integer())) {
    return {};
  }
  const std::string printed = id->is_string() ? id->as_string() : id->to_json();
  return is_printable_ascii(printed) ? printed : std::string();
}

std::uint32_t turn_of(const JsonValue& row) {
  const JsonValue* const turn = cell_or_null(row, "turn");
  if (turn == nullptr || !turn->is_number()) {
    return 0;
  }
  const double value = turn->as_double();  // column files hold whole numbers as doubles
  return value >= 1 && value < 4e9 && std::floor(value) == value ? static_cast<std::uint32_t>(value)
                                                                 : 0;
}

const JsonValue* cell_or_null(const JsonValue& row, std::string_view column) {
  const JsonValue* const cell = row.find(column);
  return cell == nullptr || cell->is_null() ? nullptr : cell;
}

bool has_tool_calls(const JsonValue& row) { return cell_or_null(row, "tool_calls") != nullptr; }

void append_messages(const JsonValue& row, std::vector<JsonValue>& out) {
  if (role_of(row) == Role::kTool) {
    for (const JsonValue& result : row.find("tool_results")->items()) {
      std::vector<JsonValue::Member> message;
      message.emplace_back("role", JsonValue::of_string("tool"));
      message.emplace_back("tool_call_id", *result.find("tool_call_id"));
      message.emplace_back("content", *result.find("content"));
      out.push_back(JsonValue::of_object(std::move(message)));
    }
    return;
  }
  std::vector<JsonValue::Member> message;
  for (const char* const column : {"role", "content", "name", "tool_calls", "reasoning_content"}) {
    const JsonValue* const cell = cell_or_null(row, column);
    const bool empty = column == std::string_view("content") && !is_content(cell);
    if (cell != nullptr && !empty) {
      message.emplace_back(column, *cell);
    }
  }
  out.push_back(JsonValue::of_object(std::move(message)));
}

std::vector<JsonValue::Member> request_fields(const JsonValue& row, const JsonValue& first_user) {
  const auto inherited = [&](std::string_view column) {
    const JsonValue* const own = cell_or_null(row, column);
    return own != nullptr ? own : cell_or_null(first_user, column);
  };
  std::vector<JsonValue::Member> out;
  for (const auto column : kOwnFields) {
    if (const JsonValue* const cell = cell_or_null(row, column); cell != nullptr) {
      out.emplace_back(column, *cell);
    }
  }
  for (const char* const column : {"model", "stream", "tools"}) {
    if (const JsonValue* const cell = inherited(column); cell != nullptr) {
      out.emplace_back(column, *cell);
    }
  }
  // The config's limit fills max_completion_tokens where the file has none, so max_tokens is only
  // asked when the file says 0 there.
  const JsonValue* limit = limit_of(inherited("max_new_tokens"));
  const JsonValue* const completion = inherited("max_completion_tokens");
  limit = limit != nullptr ? limit : limit_of(completion);
  if (limit == nullptr && completion != nullptr) {
    limit = limit_of(cell_or_null(row, "max_tokens"));
    constexpr std::int64_t kLastResort = 128;
    out.emplace_back("max_completion_tokens",
                     limit != nullptr ? *limit : JsonValue::of_int(kLastResort));
  } else if (limit != nullptr) {
    out.emplace_back("max_completion_tokens", *limit);
  }
  return out;
}

}  // namespace tutti::data
