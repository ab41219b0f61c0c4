#include "common/data/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/data/video_request.h"

namespace tutti::data {
namespace {

using text::JsonKind;
using text::JsonValue;

constexpr std::array<std::string_view, 11> kChatColumns{
    "prompt", "system", "messages",   "tools", "tool_choice",  "name",
    "n",      "stop",   "logit_bias", "user",  "chat_template"};
constexpr std::array<std::string_view, 4> kCompletionsColumns{"prompt", "input_tokens", "n",
                                                              "stop"};

// Other names of a prompt. Two of the first group in one file are ambiguous; the last resorts are
// ours.
constexpr std::array<std::string_view, 6> kPromptNames{"user_prompt", "question", "input",
                                                       "input_text",  "problem",  "query"};
constexpr std::array<std::string_view, 2> kPromptLastResorts{"text_input", "text"};
constexpr std::string_view kSystemName = "system_prompt";

template <class List>
bool holds(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool usable(std::string_view name, base::ApiType api) {
  switch (api) {
    case base::ApiType::kOpenAiChat:
      return holds(kChatColumns, name);
    case base::ApiType::kOpenAiCompletions:
      return holds(kCompletionsColumns, name);
    case base::ApiType::kSglang:
      return name == "input_tokens";
    case base::ApiType::kVideogen:
      break;
  }
  return is_video_field(name);
}

std::string listed(std::vector<std::string> names) {
  constexpr std::size_t kShownMax = 30;
  std::sort(names.begin(), names.end());
  const std::size_t hidden = names.size() > kShownMax ? names.size() - kShownMax : 0;
  names.resize(names.size() - hidden);
  return hidden == 0 ? fmt::format("{}", fmt::join(names, ", "))
                     : fmt::format("{} and {} more", fmt::join(names, ", "), hidden);
}

// One column on its way from file to row.
struct Column {
  std::string source;
  std::string name;
  bool by_parser = false;
};

Column* named(std::vector<Column>& columns, std::string_view name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [name](const Column& c) { return c.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

void apply_parser(std::vector<Column>& columns, const Renames& parser, ColumnPlan& plan,
                  const std::string& path) {
  std::vector<std::string> names;
  for (const Column& column : columns) {
    names.push_back(column.source);
  }
  for (const auto& [target, source] : parser) {
    if (!holds(names, source)) {
      plan.problems.push_back({path, "parser." + target, source,
                               fmt::format("no such column; the file has: {}", listed(names))});
      continue;
    }
    for (Column& column : columns) {
      if (column.source == source) {
        column.name = target;  // a later target of the same source replaces an earlier one
        column.by_parser = true;
      }
    }
  }
  // What the config names beats a column that happens to have that name.
  columns.erase(std::remove_if(columns.begin(), columns.end(),
                               [&columns](const Column& c) {
                                 return !c.by_parser && std::any_of(columns.begin(), columns.end(),
                                                                    [&c](const Column& o) {
                                                                      return o.by_parser &&
                                                                             o.name == c.name;
                                                                    });
                               }),
                columns.end());
}

void find_prompt(std::vector<Column>& columns, ColumnPlan& plan, const std::string& path) {
  if (named(columns, "prompt") != nullptr) {
    return;
  }
  std::vector<Column*> found;
  for (const std::string_view name : kPromptNames) {
    if (Column* const column = named(columns, name); column != nullptr) {
      found.push_back(column);
    }
  }
  if (found.size() > 1) {
    plan.problems.push_back(
        {path, "prompt", fmt::format("{}, {}", found[0]->name, found[1]->name),
         fmt::format("several columns could be the prompt; choose one: parser.prompt={}",
                     found[0]->source)});
    return;
  }
  const bool has_other =
      named(columns, "messages") != nullptr || named(columns, "input_tokens") != nullptr;
  for (std::size_t i = 0; i < kPromptLastResorts.size() && found.empty() && !has_other; ++i) {
    if (Column* const column = named(columns, kPromptLastResorts[i]); column != nullptr) {
      found.push_back(column);
    }
  }
  if (!found.empty()) {
    plan.notes.push_back(fmt::format("prompt is taken from column '{}'", found[0]->source));
    found[0]->name = "prompt";
  }
}

std::string needs(std::string_view what, const JsonValue& cell) {
  return fmt::format("must be {}, this is {}", what, cell.kind_name());
}

std::string check_messages(const JsonValue& cell) {
  if (!cell.is_array() || cell.items().empty()) {
    return needs("a list of messages with at least one", cell);
  }
  for (std::size_t i = 0; i < cell.items().size(); ++i) {
    const JsonValue& message = cell.items()[i];
    const JsonValue* const role = message.find("role");
    if (role == nullptr || !role->is_string()) {
      return fmt::format("message {} must be an object with a text 'role'", i);
    }
    const JsonValue* const content = message.find("content");
    if (content != nullptr && !content->is_null() && !content->is_string() &&
        !content->is_array()) {
      return fmt::format("the content of message {} must be text or a list of parts, this is {}", i,
                         content->kind_name());
    }
  }
  return {};
}

std::string check_prompt(std::string_view name, const JsonValue& cell, bool parts_allowed) {
  if (cell.is_string()) {
    return {};
  }
  const bool parts = cell.is_array() && !cell.items().empty() &&
                     std::all_of(cell.items().begin(), cell.items().end(),
                                 [](const JsonValue& item) { return item.is_object(); });
  if (parts && parts_allowed) {
    return {};
  }
  return fmt::format("{} must be text{}, this is {}", name,
                     parts_allowed ? " or a list of content parts" : "", cell.kind_name());
}

std::string check_tokens(const JsonValue& cell) {
  const bool good =
      cell.is_array() && !cell.items().empty() &&
      std::all_of(cell.items().begin(), cell.items().end(), [](const JsonValue& item) {
        return item.kind() == JsonKind::kInt && item.as_int() >= 0;
      });
  return good ? std::string() : needs("a list of token ids", cell);
}

// CSV cells that are JSON inside. False: the cell is not valid JSON.
bool read_csv_cell(std::string_view name, JsonValue& cell) {
  const std::string& written = cell.as_string();
  const bool always = name == "messages" || name == "tools" || name == "logit_bias" ||
                      name == "input_tokens" || name == "n" || is_video_number(name);
  const bool perhaps = name == "tool_choice" && written.front() == '{';
  if (!always && !perhaps) {
    return true;
  }
  auto value = text::read_json(written);
  if (!value) {
    return false;
  }
  cell = std::move(*value);
  return true;
}

}  // namespace

bool may_matter(std::string_view column, const Renames& parser, base::ApiType api) {
  return usable(column, api) || holds(kPromptNames, column) || holds(kPromptLastResorts, column) ||
         column == kSystemName ||
         std::any_of(parser.begin(), parser.end(),
                     [column](const auto& rename) { return rename.second == column; });
}

ColumnPlan plan_columns(const std::vector<std::string>& columns, const Renames& parser,
                        base::ApiType api, const std::string& path) {
  ColumnPlan plan;
  std::vector<Column> on_the_way;
  for (const std::string& name : columns) {
    on_the_way.push_back({name, name, false});
  }
  apply_parser(on_the_way, parser, plan, path);
  find_prompt(on_the_way, plan, path);
  if (Column* const system = named(on_the_way, kSystemName);
      system != nullptr && named(on_the_way, "system") == nullptr) {
    system->name = "system";
  }
  for (const Column& column : on_the_way) {
    if (usable(column.name, api)) {
      plan.kept.emplace_back(column.source, column.name);
    }
  }
  const bool takes_tokens =
      api == base::ApiType::kOpenAiCompletions || api == base::ApiType::kSglang;
  const std::string_view other = takes_tokens ? "input_tokens" : "messages";
  const bool has_input = std::any_of(plan.kept.begin(), plan.kept.end(), [other](const auto& k) {
    return k.second == "prompt" || k.second == other;
  });
  if (!has_input && plan.problems.empty() && api == base::ApiType::kSglang) {
    plan.problems.push_back(
        {path, "input_tokens", "",
         fmt::format("api_type sglang sends token ids, and text is turned into them for gpt-oss "
                     "models only: give a column input_tokens (a list of token ids in each row), "
                     "name it with parser.input_tokens=COLUMN, or use api_type openai or "
                     "openai_completions. "
                     "The file has: {}",
                     listed(columns))});
  } else if (!has_input && plan.problems.empty()) {
    plan.problems.push_back(
        {path, "prompt", "",
         fmt::format("no column holds prompts; name it with parser.prompt=COLUMN. The file has: {}",
                     listed(columns))});
  }
  return plan;
}

std::string check_cell(std::string_view name, JsonValue& cell, bool from_csv, base::ApiType api) {
  const bool video = api == base::ApiType::kVideogen;
  if (cell.is_null()) {
    return video && !from_csv ? check_video_cell(name, cell) : std::string();
  }
  if (from_csv && !read_csv_cell(name, cell)) {
    return fmt::format("the cell of column '{}' must hold JSON", name);
  }
  if (video) {
    return check_video_cell(name, cell);
  }
  const bool chat = api == base::ApiType::kOpenAiChat;
  if (name == "prompt" || name == "system") {
    return check_prompt(name, cell, chat);
  }
  if (name == "messages") {
    return check_messages(cell);
  }
  if (name == "input_tokens") {
    return check_tokens(cell);
  }
  if (name == "tools") {
    return cell.is_array() ? std::string() : needs("a list", cell);
  }
  if (name == "logit_bias") {
    return cell.is_object() ? std::string() : needs("an object", cell);
  }
  if (name == "n") {
    return cell.kind() == JsonKind::kInt && cell.as_int() > 0 ? std::string()
                                                              : needs("a positive integer", cell);
  }
  if (name == "stop") {
    return cell.is_string() || cell.is_array() ? std::string() : needs("text or a list", cell);
  }
  if (name == "tool_choice") {
    return cell.is_string() || cell.is_object() ? std::string() : needs("text or an object", cell);
  }
  return cell.is_string() ? std::string() : needs("text", cell);
}

}  // namespace tutti::data
