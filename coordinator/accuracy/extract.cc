#include "coordinator/accuracy/extract.h"

#include <algorithm>
#include <cstddef>

#include "coordinator/accuracy/function_calls.h"
#include "coordinator/accuracy/letter_answer.h"
#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

struct Named {
  std::string_view name;
  const char* class_name;
};
// Index = Extractor.
constexpr Named kExtractors[] = {
    {"identity_extractor", "IdentityExtractor"},
    {"boxed_math_extractor", "BoxedMathExtractor"},
    {"abcd_extractor", "ABCDExtractor"},
    {"python_code_extractor", "PythonCodeExtractor"},
    {"function_call_extractor", "FunctionCallExtractor"},
};

std::optional<std::string> last_number(std::string_view text) {
  const std::u32string all = decoded(text);
  std::size_t end = all.size();
  while (end > 0 && !is_decimal(all[end - 1])) {
    --end;
  }
  std::size_t begin = end;
  while (begin > 0 && is_decimal(all[begin - 1])) {
    --begin;
  }
  return begin == end ? std::nullopt
                      : std::optional(encoded(std::u32string_view(all).substr(begin, end - begin)));
}

// The last boxed{…} or framebox{…} that holds anything; boxes end at the first brace, whatever is
// nested in them.
std::optional<std::string> boxed_math(std::string_view text) {
  std::optional<std::string_view> last;
  std::size_t at = 0;
  while (at < text.size()) {
    constexpr std::string_view kBoxed = "boxed{";
    constexpr std::string_view kFrameBox = "framebox{";
    const std::size_t boxed = text.find(kBoxed, at);
    const std::size_t frame = text.find(kFrameBox, at);
    const std::size_t open = std::min(boxed, frame);
    if (open == kNone) {
      break;
    }
    const std::size_t from = open + (boxed < frame ? kBoxed.size() : kFrameBox.size());
    const std::size_t close = text.find('}', from);
    if (close == kNone) {
      break;
    }
    if (close > from) {
      last = text.substr(from, close - from);
    }
    at = close + 1;
  }
  if (!last) {
    return last_number(text);
  }
  const std::size_t comma = last->rfind(',');
  return trimmed(comma == kNone ? *last : last->substr(comma + 1));
}

std::string abcd(std::string_view text) {
  const auto letter = letter_answer(decoded(text));
  return letter ? std::string("choice") + static_cast<char>(*letter - 'A' + '1') : std::string();
}

// What stands between the last `opening` and the ``` that ends it; blocks do not overlap.
std::optional<std::string_view> last_block(std::string_view text, std::string_view opening) {
  constexpr std::string_view kFence = "```";
  std::optional<std::string_view> last;
  for (std::size_t at = text.find(opening); at != kNone; at = text.find(opening, at)) {
    const std::size_t from = at + opening.size();
    const std::size_t end = text.find(kFence, from);
    if (end == kNone) {
      break;
    }
    last = text.substr(from, end - from);
    at = end + kFence.size();
  }
  return last;
}

// Without a first line that only names the language.
std::string_view without_language(std::string_view block) {
  const std::size_t newline = block.find('\n');
  if (newline == kNone) {
    return block;
  }
  std::string name = trimmed(block.substr(0, newline));
  for (char& c : name) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name == "python" || name == "py" ? block.substr(newline + 1) : block;
}

std::optional<std::string> python_code(std::string_view text) {
  if (const auto block = last_block(text, "```python")) {
    return trimmed(*block);
  }
  if (const auto block = last_block(text, "```")) {
    return trimmed(without_language(trimmed(*block)));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Extractor> extractor_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kExtractors); ++i) {
    if (kExtractors[i].name == name) {
      return static_cast<Extractor>(i);
    }
  }
  return std::nullopt;
}

std::string extractor_names() {
  std::string out;
  for (const Named& each : kExtractors) {
    out += out.empty() ? "" : ", ";
    out += each.name;
  }
  return out;
}

const char* class_name(Extractor extractor) {
  return kExtractors[static_cast<std::size_t>(extractor)].class_name;
}

std::optional<std::string> extract(Extractor extractor, std::string_view text) {
  switch (extractor) {
    case Extractor::kIdentity:
      return std::string(text);
    case Extractor::kBoxedMath:
      return boxed_math(text);
    case Extractor::kAbcd:
      return abcd(text);
    case Extractor::kPythonCode:
      return python_code(text);
    case Extractor::kFunctionCall:
      return function_calls(text);
  }
  return std::nullopt;
}

}  // namespace tutti::accuracy
