#include "common/spec/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/spec/redact.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

constexpr std::size_t kShownMax = 80;

// Cut before a UTF-8 continuation byte would be torn off.
std::string cut(std::string text) {
  if (text.size() <= kShownMax) {
    return text;
  }
  std::size_t end = kShownMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end) + "...";
}

bool reaches_into(std::string_view outer, std::string_view inner) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
}

}  // namespace

std::string shown(std::string_view field, const Tree& tree) {
  const std::vector<std::string> parts = split(field, '.');
  if (std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
        return is_secret_key(part) || part == kSecretValues;
      })) {
    return std::string(kRedacted);
  }
  switch (tree.kind) {
    case Tree::Kind::kNull:
      return "null";
    case Tree::Kind::kList:
      return fmt::format("[{} item{}]", tree.items.size(), tree.items.size() == 1 ? "" : "s");
    case Tree::Kind::kMap:
      return fmt::format("{{{} key{}}}", tree.entries.size(), tree.entries.size() == 1 ? "" : "s");
    default:
      break;
  }
  std::string text = redact_url(tree.text);
  for (char& c : text) {
    c = static_cast<unsigned char>(c) < 0x20U || c == 0x7F ? ' ' : c;
  }
  return cut(std::move(text));
}

void Findings::wrong(std::string_view field, const Tree& tree, std::string remedy) {
  problems.push_back({tree.where, std::string(field), shown(field, tree), std::move(remedy)});
}
void Findings::wrong_at(std::string where, std::string_view field, std::string remedy) {
  problems.push_back({std::move(where), std::string(field), {}, std::move(remedy)});
}
void Findings::warn(std::string_view field, const Tree& tree, std::string remedy) {
  warnings.push_back({tree.where, std::string(field), shown(field, tree), std::move(remedy)});
}
void Findings::warn_at(std::string where, std::string_view field, std::string remedy) {
  warnings.push_back({std::move(where), std::string(field), {}, std::move(remedy)});
}

bool Findings::is_clean(std::string_view field) const {
  return std::none_of(problems.begin(), problems.end(), [field](const base::Problem& problem) {
    return reaches_into(field, problem.field) || reaches_into(problem.field, field);
  });
}

std::string place_of(const Tree& root, std::string_view field) {
  while (true) {
    const Tree* node = root.find_path(field);
    if (node != nullptr && !node->where.empty()) {
      return node->where;
    }
    if (field.empty()) {
      return {};
    }
    field = parent_of(field);
  }
}

}  // namespace tutti::spec
