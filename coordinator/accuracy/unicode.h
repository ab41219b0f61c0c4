#pragma once

// Text as the reference's extractors see it: code points, and Python's ideas of white space, word
// characters and decimal digits, which are Unicode's and not ASCII's. Broken UTF-8 becomes U+FFFD
// on the way in. Pure.

#include <string>
#include <string_view>

namespace tutti::accuracy {

std::u32string decoded(std::string_view utf8);
std::string encoded(std::u32string_view text);

bool is_space(char32_t c);    // \s and str.strip()
bool is_word(char32_t c);     // \w
bool is_decimal(char32_t c);  // \d
bool is_upper(char32_t c);    // str.isupper() of one
bool is_lower(char32_t c);    // str.islower() of one

// str.lower(), but for a Greek sigma at the end of a word, which stays one from within a word.
std::u32string lowered(std::u32string_view text);

std::u32string_view trimmed(std::u32string_view text);
std::string trimmed(std::string_view utf8);

}  // namespace tutti::accuracy
