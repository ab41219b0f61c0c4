#include "coordinator/accuracy/function_calls.h"

#include <cstddef>

#include "coordinator/accuracy/python_arguments.h"
#include "coordinator/accuracy/python_value.h"
#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

using Kind = PyValue::Kind;

constexpr std::size_t kNone = std::u32string_view::npos;

// Words before a parenthesis that are no calls; a space on either side of each.
constexpr std::u32string_view kNoCalls =
    U" print return if for while def class import from with assert raise try except len str int "
    U"float list dict set tuple type isinstance range enumerate zip map filter Note Example Here "
    U"This The For ";
PyValue call_of(PyValue name, PyValue arguments) {
  PyValue out = PyValue::of(Kind::kDict);
  out.set(PyValue::of(Kind::kText, U"name"), std::move(name));
  out.set(PyValue::of(Kind::kText, U"arguments"), std::move(arguments));
  return out;
}

// Of tool calls as the API has them; arguments are JSON in a text.
std::optional<PyValue> of_tool_call(const PyValue& item) {
  const PyValue* const function = item.find(U"function");
  if (function == nullptr || function->kind != Kind::kDict) {
    return std::nullopt;
  }
  const PyValue* const name = function->find(U"name");
  const PyValue* const arguments = function->find(U"arguments");
  PyValue told = arguments == nullptr ? PyValue::of(Kind::kDict) : *arguments;
  if (told.kind == Kind::kText) {
    if (auto read = json_loads(told.text); read) {
      told = std::move(*read);
    }
  }
  return call_of(name == nullptr ? PyValue::of(Kind::kText) : *name, std::move(told));
}

std::optional<PyValue> of_named(const PyValue& item) {
  const PyValue* const name = item.find(U"name");
  if (name == nullptr) {
    return std::nullopt;
  }
  const PyValue* const arguments = item.find(U"arguments");
  return call_of(*name, arguments == nullptr ? PyValue::of(Kind::kDict) : *arguments);
}

// All items, or none.
template <class Rule>
PyValue calls_of(const PyValue& list, const Rule& rule) {
  PyValue out = PyValue::of(Kind::kList);
  for (const PyValue& item : list.items) {
    auto call = item.kind == Kind::kDict ? rule(item) : std::nullopt;
    if (!call) {
      return PyValue::of(Kind::kList);
    }
    out.items.push_back(std::move(*call));
  }
  return out;
}

// The place of the parenthesis that closes the one at `open`; those in quotes do not count.
std::size_t closing(std::u32string_view text, std::size_t open) {
  int depth = 0;
  char32_t quote = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (quote != 0) {
      i += c == U'\\' ? 1U : 0U;
      quote = c == quote ? U'\0' : quote;
    } else if (c == U'\'' || c == U'"') {
      quote = c;
    } else if (c == U'(') {
      ++depth;
    } else if (c == U')' && --depth == 0) {
      return i;
    }
  }
  return kNone;
}

bool starts_word(char32_t c) {
  return c == U'_' || (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
}

std::size_t word_end(std::u32string_view text, std::size_t at) {
  while (at < text.size() && is_word(text[at])) {
    ++at;
  }
  return at;
}

std::size_t space_end(std::u32string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) {
    ++at;
  }
  return at;
}

// A bare name, or "name: type".
bool is_parameter(std::u32string_view part) {
  if (!starts_word(part[0])) {
    return false;
  }
  const std::size_t name = word_end(part, 0);
  if (name == part.size()) {
    return true;
  }
  const std::size_t colon = space_end(part, name);
  if (colon == part.size() || part[colon] != U':') {
    return false;
  }
  const std::size_t type = space_end(part, colon + 1);
  return type < part.size() && word_end(part, type) == part.size();
}

// Names without values are a declaration.
bool looks_declared(std::u32string_view arguments) {
  while (true) {
    const std::size_t comma = arguments.find(U',');
    const std::u32string_view part = trimmed(arguments.substr(0, comma));
    if (!part.empty() && !is_parameter(part)) {
      return false;
    }
    if (comma == kNone) {
      return true;
    }
    arguments.remove_prefix(comma + 1);
  }
}

PyValue arguments_of(std::u32string_view source) {
  auto out = python_arguments(source);
  if (!out) {
    out = PyValue::of(Kind::kDict);
    out->set(PyValue::of(Kind::kText, U"_raw"), PyValue::of(Kind::kText, std::u32string(source)));
  }
  return std::move(*out);
}

PyValue calls_in(std::u32string_view text) {
  PyValue out = PyValue::of(Kind::kList);
  std::size_t taken = 0;  // up to here text belongs to a call
  for (std::size_t at = 0; at < text.size();) {
    if (!starts_word(text[at])) {
      // What follows a digit or a letter of another script is no beginning.
      at = is_word(text[at]) ? word_end(text, at) : at + 1;
      continue;
    }
    const std::size_t end = word_end(text, at);
    const std::size_t open = space_end(text, end);
    const std::u32string_view name = text.substr(at, end - at);
    const bool called = open < text.size() && text[open] == U'(' && at >= taken &&
                        kNoCalls.find(U" " + std::u32string(name) + U" ") == kNone;
    at = end;
    const std::size_t close = called ? closing(text, open) : kNone;
    if (close == kNone) {
      continue;
    }
    taken = close + 1;
    const auto source = trimmed(text.substr(open + 1, close - open - 1));
    if (source.empty() || !looks_declared(source)) {
      out.items.push_back(
          call_of(PyValue::of(Kind::kText, std::u32string(name)),
                  source.empty() ? PyValue::of(Kind::kDict) : arguments_of(source)));
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> function_calls(std::string_view text) {
  const std::u32string all = decoded(text);
  const std::u32string_view whole = trimmed(all);
  PyValue calls = PyValue::of(Kind::kList);
  if (const auto read = json_loads(whole); read && read->kind == Kind::kList) {
    calls = calls_of(*read, of_tool_call);
    if (calls.items.empty()) {
      calls = calls_of(*read, of_named);
    }
  }
  if (calls.items.empty()) {
    calls = calls_in(whole);
  }
  return calls.items.empty() ? std::nullopt : json_dumps(calls);
}

}  // namespace tutti::accuracy
