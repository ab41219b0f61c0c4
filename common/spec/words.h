#pragma once

// Small operations on names and texts that reader, flags and redaction share. Pure, ASCII only.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::spec {

std::string_view trimmed(std::string_view text);  // of white space, both ends
std::string lower_case(std::string_view text);
std::string kebab(std::string_view name);  // '_' becomes '-'
std::string snake(std::string_view name);  // '-' becomes '_'
std::vector<std::string> split(std::string_view text, char separator);
std::string joined(const std::vector<std::string>& parts, std::string_view separator);

// The last part of a dotted path, and what comes before it ("" when nothing does).
std::string_view leaf_of(std::string_view path);
std::string_view parent_of(std::string_view path);

// Where the first byte is that is not valid UTF-8; npos when all is well.
std::size_t first_bad_utf8(std::string_view text);

// Edits (insert, delete, replace, swap of neighbours) that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate close enough to be what was meant, or "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tutti::spec
