#include "coordinator/accuracy/punkt_words.h"

#include <algorithm>
#include <cstddef>

#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

bool is_one_of(std::u32string_view marks, char32_t c) {
  return marks.find(c) != std::u32string_view::npos;
}

bool starts_no_word(char32_t c) { return is_one_of(U"(\"`{[:;&#*@)}],-", c); }

// `text` is what is left of a line.
std::size_t run_of(std::u32string_view text, char32_t c) {
  return std::min(text.find_first_not_of(c), text.size());
}

// ". . ." and longer: each but the last with one white space behind it.
std::size_t spaced_periods(std::u32string_view text) {
  constexpr std::size_t kLeast = 2;  // with a space
  std::size_t spaced = 0;
  while (2 * spaced + 1 < text.size() && text[2 * spaced] == U'.' && is_gap(text[2 * spaced + 1])) {
    ++spaced;
  }
  const bool one_more = 2 * spaced < text.size() && text[2 * spaced] == U'.';
  spaced -= one_more || spaced == 0 ? 0 : 1;  // the last one's space is not part of it
  return spaced < kLeast ? 0 : 2 * spaced + 1;
}

// How long the mark of several characters is that `text` begins with; 0: none.
std::size_t long_mark(std::u32string_view text) {
  for (const char32_t c : {U'-', U'.'}) {
    if (const std::size_t run = run_of(text, c); run >= 2) {
      return run;
    }
  }
  return spaced_periods(text);
}

// A word may end before `rest`, of which a comma is taken for no reason.
bool is_border(std::u32string_view rest) {
  return rest.empty() || is_gap(rest.front()) || ends_word(rest.front()) || long_mark(rest) > 0;
}

// Length of the word or mark at the start of `rest`, which is no white space.
std::size_t word_length(std::u32string_view rest) {
  if (const std::size_t mark = long_mark(rest); mark > 0) {
    return mark;
  }
  if (starts_no_word(rest.front())) {
    return 1;
  }
  std::size_t n = 1;
  while (!is_border(rest.substr(n)) && !(rest[n] == U',' && is_border(rest.substr(n + 1)))) {
    ++n;
  }
  return n;
}

// A sign, a point, then digits with points, commas and dashes among them.
bool is_number(std::u32string_view word) {
  if (!word.empty() && word.front() == U'-') {
    word.remove_prefix(1);
  }
  if (!word.empty() && is_one_of(U".,", word.front())) {
    word.remove_prefix(1);
  }
  return !word.empty() && is_decimal(word.front()) &&
         std::all_of(word.begin(), word.end(),
                     [](char32_t c) { return is_decimal(c) || is_one_of(U",.-", c); });
}

void add_line(std::u32string_view line, std::vector<PunktWord>& out) {
  if (trimmed(line).empty()) {
    return;
  }
  while (!line.empty()) {
    if (is_gap(line.front())) {
      line.remove_prefix(1);
      continue;
    }
    const std::size_t n = word_length(line);
    out.emplace_back(line.substr(0, n));
    line.remove_prefix(n);
  }
}

}  // namespace

PunktWord::PunktWord(std::u32string_view word)
    : text(word), type(lowered(word)), ends_in_period(word.back() == U'.') {
  if (is_number(type)) {
    type = kNumberType;
  }
}

std::u32string PunktWord::type_without_period() const {
  const bool more = type.size() > 1 && type.back() == U'.';
  return more ? type.substr(0, type.size() - 1) : type;
}

std::u32string PunktWord::type_in_context() const {
  return ends_sentence ? type_without_period() : type;
}

bool PunktWord::is_initial() const {
  return text.size() == 2 && text[1] == U'.' && is_word(text[0]) && !is_decimal(text[0]);
}

bool is_gap(char32_t c) { return is_space(c) && (c < 0x1C || c > 0x1F); }

bool is_sentence_end(char32_t c) { return is_one_of(U".?!", c); }

bool is_closing(char32_t c) { return is_one_of(U"\"')]}\u2018\u2019\u201c\u201d\u00ab\u00bb", c); }

bool ends_word(char32_t c) { return is_closing(c) || is_one_of(U";*:@({[?!", c); }

std::vector<PunktWord> punkt_words(std::u32string_view text) {
  std::vector<PunktWord> out;
  while (true) {
    const std::size_t end = text.find(U'\n');
    add_line(text.substr(0, end), out);
    if (end == std::u32string_view::npos) {
      return out;
    }
    text.remove_prefix(end + 1);
  }
}

}  // namespace tutti::accuracy
