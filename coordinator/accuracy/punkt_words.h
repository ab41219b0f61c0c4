#pragma once

// The words of a line as Punkt sees them, and what it asks of one. A word keeps the period behind
// it; other marks are words of their own. Internal to this folder. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace tutti::accuracy {

inline constexpr std::u32string_view kNumberType = U"##number##";  // stands for every number

struct PunktWord {
  std::u32string_view text;
  std::u32string type;  // lower case, or kNumberType
  bool ends_in_period = false;
  // What is decided of it:
  bool ends_sentence = false;
  bool abbreviation = false;
  bool ellipsis = false;

  explicit PunktWord(std::u32string_view word);

  std::u32string type_without_period() const;
  // The type, without its period when that ends a sentence.
  std::u32string type_in_context() const;
  bool is_initial() const;  // one letter and a period
};

// White space between words, of which the separators U+001C to U+001F are none.
bool is_gap(char32_t c);
bool is_sentence_end(char32_t c);  // . ? !
bool is_closing(char32_t c);       // brackets and quotes that end with the sentence before them
// A mark that no word has in it.
bool ends_word(char32_t c);

// Of a text, line by line.
std::vector<PunktWord> punkt_words(std::u32string_view text);

}  // namespace tutti::accuracy
