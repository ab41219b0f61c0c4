#include "coordinator/accuracy/turn_truth.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <utility>

namespace tutti::accuracy {
namespace {

using text::JsonValue;

constexpr std::array<std::string_view, 6> kWrappers = {"env",  "time", "nice",
                                                       "sudo", "exec", "command"};

// Programs that count under their own name …
constexpr std::array<std::string_view, 41> kPrograms = {
    "python", "pip",     "pytest", "pylint", "cython", "make",   "conda", "cat",   "head",
    "tail",   "wc",      "diff",   "grep",   "sed",    "awk",    "tr",    "sort",  "uniq",
    "cut",    "find",    "ls",     "xargs",  "cp",     "mv",     "rm",    "mkdir", "touch",
    "tee",    "source",  "which",  "alias",  "unset",  "export", "git",   "curl",  "true",
    "false",  "timeout", "date",   "apt",    "yum"};

// … and those that count under another's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kAliases = {{
    {"python2", "python"},
    {"python3", "python"},
    {"py", "python"},
    {"pip3", "pip"},
    {"sphinx-build", "sphinx"},
    {"sphinx-quickstart", "sphinx"},
    {"less", "cat"},
    {"more", "cat"},
    {"egrep", "grep"},
    {"fgrep", "grep"},
    {"rg", "grep"},
    {"ag", "grep"},
    {"gawk", "awk"},
    {"locate", "find"},
    {".", "source"},
    {"wget", "curl"},
    {"apt-get", "apt"},
}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;  // letters of other scripts are words, too
}
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// What stands between two quotes of a kind becomes a blank; a lone quote stays.
std::string without_quoted(std::string_view command) {
  std::string out;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool quote = c == '\'' || c == '"' || c == '`';
    const std::size_t end = quote ? command.find(c, i + 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += c;
    } else {
      out += ' ';
      i = end;
    }
  }
  return out;
}

std::vector<std::string_view> tokens_of(std::string_view stage) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < stage.size();) {
    const std::size_t from = i;
    while (i < stage.size() && !is_blank(stage[i])) {
      ++i;
    }
    if (i > from) {
      out.push_back(stage.substr(from, i - from));
    }
    i += i < stage.size() ? 1U : 0U;
  }
  return out;
}

bool is_assignment(std::string_view token) {
  const std::size_t equals = token.find('=');
  return equals != std::string_view::npos && equals > 0 && !is_digit(token.front()) &&
         std::all_of(token.begin(), token.begin() + static_cast<std::ptrdiff_t>(equals), is_word);
}

// Without at most two numbers behind points: python3.11 and python3.11.4 are python3.
std::string_view without_version(std::string_view name) {
  for (int part = 0; part < 2; ++part) {
    const std::size_t point = name.rfind('.');
    if (point == std::string_view::npos || point == 0 || point + 1 == name.size() ||
        !std::all_of(name.begin() + static_cast<std::ptrdiff_t>(point) + 1, name.end(), is_digit)) {
      break;
    }
    name = name.substr(0, point);
  }
  return name;
}

// Empty: nothing that is known.
std::string_view program_of(std::string_view stage) {
  for (const std::string_view token : tokens_of(stage)) {
    if (is_assignment(token) ||
        std::find(kWrappers.begin(), kWrappers.end(), token) != kWrappers.end()) {
      continue;
    }
    std::string name(token.substr(token.rfind('/') + 1));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string_view plain = without_version(name);
    const auto* const known = std::find(kPrograms.begin(), kPrograms.end(), plain);
    if (known != kPrograms.end()) {
      return *known;
    }
    const auto* const alias = std::find_if(kAliases.begin(), kAliases.end(),
                                           [&](const auto& each) { return each.first == plain; });
    return alias == kAliases.end() ? std::string_view() : alias->second;
  }
  return {};
}

// "I" and three digits at `at`, with no word character around them.
bool is_code(std::string_view text, std::size_t at, bool any_case) {
  constexpr std::size_t kLength = 4;
  return at + kLength <= text.size() && (text[at] == 'I' || (any_case && text[at] == 'i')) &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                     text.begin() + static_cast<std::ptrdiff_t>(at + kLength), is_digit) &&
         (at == 0 || !is_word(text[at - 1])) &&
         (at + kLength == text.size() || !is_word(text[at + kLength]));
}

std::string code_at(std::string_view text, std::size_t at) {
  return "I" + std::string(text.substr(at + 1, 3));
}

// The first behind "intent:" in any case; empty: there is none.
std::string announced(std::string_view text) {
  constexpr std::string_view kWord = "intent:";
  for (std::size_t i = 0; i + kWord.size() < text.size(); ++i) {
    const bool here =
        (i == 0 || !is_word(text[i - 1])) &&
        std::equal(kWord.begin(), kWord.end(), text.begin() + static_cast<std::ptrdiff_t>(i),
                   [](char want, char is) {
                     return want == std::tolower(static_cast<unsigned char>(is));
                   });
    if (!here) {
      continue;
    }
    std::size_t at = i + kWord.size();
    while (at < text.size() && is_blank(text[at])) {
      ++at;
    }
    if (is_code(text, at, true)) {
      return code_at(text, at);
    }
  }
  return {};
}

std::string last_bare(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 0;) {
    if (is_code(text, at, false)) {
      return code_at(text, at);
    }
  }
  return {};
}

void add_call(const JsonValue& call, std::vector<std::string>& out) {
  const JsonValue* const function = call.find("function");
  const JsonValue* const name = function == nullptr ? nullptr : function->find("name");
  const JsonValue* arguments = function == nullptr ? nullptr : function->find("arguments");
  if (name == nullptr || !name->is_string() || name->as_string() != "bash" ||
      arguments == nullptr) {
    return;
  }
  JsonValue read;
  if (arguments->is_string()) {
    if (auto parsed = text::read_json(arguments->as_string()); parsed) {
      read = std::move(*parsed);
      arguments = &read;
    }
  }
  const JsonValue* command = arguments->find("command");
  command = command != nullptr ? command : arguments->find("cmd");
  if (command != nullptr && command->is_string()) {
    auto actions = actions_of_command(command->as_string());
    std::move(actions.begin(), actions.end(), std::back_inserter(out));
  }
}

void add_intents(const JsonValue& codes, std::vector<std::string>& out) {
  for (const JsonValue& code : codes.items()) {
    if (code.is_string()) {
      std::string& intent = out.emplace_back(code.as_string());
      std::transform(intent.begin(), intent.end(), intent.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    }
  }
}

}  // namespace

bool is_workflow(std::string_view conversation) {
  constexpr std::string_view kPrefix = "sim_";
  return conversation.size() > kPrefix.size() &&
         conversation.substr(0, kPrefix.size()) == kPrefix &&
         std::all_of(conversation.begin() + kPrefix.size(), conversation.end(), is_digit);
}

std::vector<std::string> actions_of_command(std::string_view command) {
  const std::string plain = without_quoted(command);
  std::vector<std::string> out;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= plain.size(); ++i) {
    const bool both = i + 1 < plain.size() && plain[i] == '&' && plain[i + 1] == '&';
    const bool ends =
        i == plain.size() || plain[i] == '|' || plain[i] == ';' || plain[i] == '\n' || both;
    if (!ends) {
      continue;
    }
    const auto program = program_of(std::string_view(plain).substr(from, i - from));
    if (!program.empty()) {
      out.emplace_back(program);
    }
    i += both ? 1U : 0U;
    from = i + 1;
  }
  return out;
}

std::vector<std::string> actions_of_calls(const JsonValue& tool_calls) {
  std::vector<std::string> out;
  for (const JsonValue& call : tool_calls.items()) {
    add_call(call, out);
  }
  return out;
}

std::optional<std::string> intent_of(std::string_view reasoning, std::string_view content) {
  for (const auto find : {announced, last_bare}) {
    for (const std::string_view text : {reasoning, content}) {
      if (std::string code = find(text); !code.empty()) {
        return code;
      }
    }
  }
  return std::nullopt;
}

std::optional<TurnTruth> truth_of(bool workflow, const JsonValue& assistant_row) {
  TurnTruth out;
  out.workflow = workflow;
  if (workflow) {
    const JsonValue* const codes = assistant_row.find("intent_codes");
    if (codes != nullptr) {
      add_intents(*codes, out.intents);
    }
  } else if (const JsonValue* const calls = assistant_row.find("tool_calls"); calls != nullptr) {
    out.actions = actions_of_calls(*calls);
  }
  return out.intents.empty() && out.actions.empty() ? std::nullopt : std::optional(std::move(out));
}

TurnAnswer answer_of(bool workflow, std::string_view reasoning, std::string_view content,
                     std::string_view tool_calls) {
  TurnAnswer out;
  if (workflow) {
    out.intent = intent_of(reasoning, content);
  } else if (const auto calls = text::read_json(std::string(tool_calls)); calls) {
    out.actions = actions_of_calls(*calls);
  }
  return out;
}

double agreement(const TurnTruth& truth, const TurnAnswer& answer) {
  if (truth.workflow) {
    return answer.intent && std::find(truth.intents.begin(), truth.intents.end(), *answer.intent) !=
                                truth.intents.end()
               ? 1
               : 0;
  }
  std::map<std::string_view, std::pair<int, int>> times;
  for (const std::string& action : truth.actions) {
    ++times[action].first;
  }
  for (const std::string& action : answer.actions) {
    ++times[action].second;
  }
  int both = 0;
  int either = 0;
  for (const auto& [action, seen] : times) {
    both += std::min(seen.first, seen.second);
    either += std::max(seen.first, seen.second);
  }
  return either == 0 ? 0 : static_cast<double>(both) / either;
}

}  // namespace tutti::accuracy
