#include "common/spec/interpolate.h"

#include <fmt/format.h>

#include <optional>

#include "common/spec/words.h"

namespace tutti::spec {
namespace {

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

struct Reference {
  std::string name;
  bool braced = false;
  std::optional<std::string> fallback;
  std::size_t length = 0;  // of the reference, the dollar included
};

// The reference that starts at text[0] == '$', if it is one.
std::optional<Reference> reference_at(std::string_view text) {
  Reference reference;
  std::size_t at = 1;
  reference.braced = at < text.size() && text[at] == '{';
  at += reference.braced ? 1 : 0;
  const std::size_t begin = at;
  if (at >= text.size() || !starts_name(text[at])) {
    return std::nullopt;
  }
  while (at < text.size() && continues_name(text[at])) {
    ++at;
  }
  reference.name = text.substr(begin, at - begin);
  if (!reference.braced) {
    reference.length = at;
    return reference;
  }
  if (text.substr(at).starts_with(":-")) {
    at += 2;
    const std::size_t end = text.find_first_of("}\n", at);
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    reference.fallback = std::string(text.substr(at, end - at));
    at = end;
  }
  if (at >= text.size() || text[at] != '}') {
    return std::nullopt;
  }
  reference.length = at + 1;
  return reference;
}

std::string with_single_dollars(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') {
      ++i;
    }
  }
  return result;
}

void interpolate_below(Tree& tree, const std::string& path, const Environment& environment,
                       base::Problems& problems) {
  const std::string prefix = path.empty() ? "" : path + ".";
  if (tree.kind == Tree::Kind::kString && tree.text.find('$') != std::string::npos) {
    auto filled = interpolated(tree.text, environment);
    if (filled && first_bad_utf8(*filled) != std::string::npos) {
      problems.push_back({tree.where, path, {}, "an environment variable's value is not UTF-8"});
    } else if (filled) {
      tree.text = std::move(*filled);
    } else {
      problems.push_back({tree.where, path, {}, filled.error().message});
    }
  }
  for (std::size_t i = 0; i < tree.items.size(); ++i) {
    interpolate_below(tree.items[i], prefix + std::to_string(i), environment, problems);
  }
  for (Tree::Entry& entry : tree.entries) {
    interpolate_below(entry.value, prefix + entry.key, environment, problems);
  }
}

}  // namespace

base::Result<std::string> interpolated(std::string_view text, const Environment& environment) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool is_escaped = at > 0 && text[at - 1] == '$';
    const auto reference =
        text[at] == '$' && !is_escaped ? reference_at(text.substr(at)) : std::optional<Reference>{};
    if (!reference) {
      result += text[at++];
      continue;
    }
    const std::optional<std::string> value = environment(reference->name);
    if (!value && !reference->fallback) {
      return base::fail(
          base::ExitCode::kInput,
          reference->braced
              ? fmt::format(
                    "Environment variable ${{{0}}} is not set and has no default; set it or "
                    "write ${{{0}:-value}}",
                    reference->name)
              : fmt::format(
                    "Environment variable ${0} is not set; set it, or write $$ for a dollar",
                    reference->name));
    }
    result += value ? *value : *reference->fallback;
    at += reference->length;
  }
  return with_single_dollars(result);
}

void interpolate(Tree& tree, const Environment& environment, base::Problems& problems) {
  interpolate_below(tree, "", environment, problems);
}

}  // namespace tutti::spec
