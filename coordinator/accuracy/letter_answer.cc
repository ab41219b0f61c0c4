#include "coordinator/accuracy/letter_answer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

// A form is a row of pieces. Greedy runs need no second try: what follows one never begins with
// what the run is made of. Only marks, the plural s and optional pieces have several ways to match.
enum class Piece : std::uint8_t {
  kLineStart,
  kBoundary,         // \b
  kNoLetterBefore,   // no ASCII letter or digit …
  kNoLetterAfter,    // … on this side
  kMark,             // * ** _ __
  kMaybeMark,        //
  kSpaces,           // any number, none included
  kMaybeColon,       //
  kMaybeSeparator,   // one of : - –
  kAnswer,           // words, in any case
  kMaybeS,           //
  kOptionOrChoice,   //
  kOpen,             // ( or [
  kClose,            // ) or ]
  kRoundOpen,        //
  kRoundClose,       //
  kBoxed,            // \boxed{
  kTextbf,           // \textbf{
  kCapitalInBraces,  // the first capital A to D before the next }, which must come
  kPlain,            // one or more without mark or end of line
  kLetter,           // a to d in any case: the answer
  kCapital,          // A to D: the answer
};
using Form = std::vector<Piece>;

const std::vector<Form>& forms() {
  using enum Piece;
  static const std::vector<Form> kForms{
      {kMark, kAnswer, kMaybeS, kSpaces, kMaybeSeparator, kMark, kSpaces, kLetter, kBoundary},
      {kLineStart, kSpaces, kMaybeMark, kAnswer, kMaybeColon, kMaybeMark, kSpaces, kMaybeColon,
       kSpaces, kMaybeMark, kLetter},
      {kBoundary, kAnswer, kMaybeS, kBoundary, kSpaces, kMaybeSeparator, kSpaces, kRoundOpen,
       kSpaces, kLetter, kSpaces, kRoundClose},
      {kBoundary, kAnswer, kMaybeS, kBoundary, kSpaces, kMaybeSeparator, kSpaces, kLetter,
       kBoundary},
      {kBoundary, kOptionOrChoice, kBoundary, kSpaces, kMaybeSeparator, kSpaces, kLetter,
       kBoundary},
      {kBoxed, kCapitalInBraces},
      {kNoLetterBefore, kOpen, kSpaces, kCapital, kSpaces, kClose, kNoLetterAfter},
      {kNoLetterBefore, kMark, kCapital, kMark, kNoLetterAfter},
      {kTextbf, kCapitalInBraces},
      {kNoLetterBefore, kMark, kSpaces, kCapital, kRoundClose, kPlain, kMark, kNoLetterAfter},
      {kLineStart, kSpaces, kMaybeMark, kCapital},
  };
  return kForms;
}

bool is_ascii_alphanumeric(char32_t c) {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'0' && c <= U'9');
}

// As Python ignores case: ſ is an s, and the Turkish İ and ı are an i.
char32_t lower(char32_t c) {
  if (c >= U'A' && c <= U'Z') {
    return c - U'A' + U'a';
  }
  if (c == 0x17F) {
    return U's';
  }
  return c == 0x130 || c == 0x131 ? U'i' : c;
}

class Matcher {
 public:
  Matcher(std::u32string_view text, const Form& form) : text_(text), form_(form) {}

  std::optional<char> first() {
    const bool by_line = form_.front() == Piece::kLineStart;
    for (std::size_t at = 0; at <= text_.size(); ++at) {
      if (match(0, at)) {
        return answer_;
      }
      if (by_line) {
        // Other line starts within the same white space lead to the same place.
        const std::size_t end = spaces_end(at);
        const std::size_t newline = text_.find(U'\n', end);
        if (newline == std::u32string_view::npos) {
          return std::nullopt;
        }
        at = newline;
      }
    }
    return std::nullopt;
  }

 private:
  char32_t at(std::size_t pos) const { return pos < text_.size() ? text_[pos] : U'\0'; }
  bool has(std::size_t pos) const { return pos < text_.size(); }

  std::size_t spaces_end(std::size_t pos) const {
    while (has(pos) && is_space(text_[pos])) {
      ++pos;
    }
    return pos;
  }

  bool boundary(std::size_t pos) const {
    const bool before = pos > 0 && is_word(text_[pos - 1]);
    return before != (has(pos) && is_word(text_[pos]));
  }

  // Length of `word` in any case at `pos`, 0 if it is not there.
  std::size_t word(std::u32string_view word, std::size_t pos) const {
    if (text_.size() - std::min(pos, text_.size()) < word.size()) {
      return 0;
    }
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (lower(text_[pos + i]) != word[i]) {
        return 0;
      }
    }
    return word.size();
  }

  bool one_of(std::u32string_view set, std::size_t pos) const {
    return has(pos) && set.find(text_[pos]) != std::u32string_view::npos;
  }

  bool take_answer(std::size_t next, std::size_t pos, char32_t c) {
    if (!match(next, pos)) {
      return false;
    }
    answer_ = static_cast<char>(c);
    return true;
  }

  bool match_mark(std::size_t next, std::size_t pos) {
    const char32_t mark = at(pos);
    if (mark != U'*' && mark != U'_') {
      return false;
    }
    return (at(pos + 1) == mark && match(next, pos + 2)) || match(next, pos + 1);
  }

  // The piece taken if it is there, else (or if that leads nowhere) skipped.
  bool match_maybe(std::u32string_view set, std::size_t next, std::size_t pos) {
    return (one_of(set, pos) && match(next, pos + 1)) || match(next, pos);
  }

  bool match_text(std::u32string_view wanted, std::size_t next, std::size_t pos) {
    return text_.compare(std::min(pos, text_.size()), wanted.size(), wanted) == 0 &&
           match(next, pos + wanted.size());
  }

  bool match_in_braces(std::size_t next, std::size_t pos) {
    const std::size_t close = text_.find(U'}', pos);
    const std::size_t capital = text_.find_first_of(U"ABCD", pos);
    return close != std::u32string_view::npos && capital < close &&
           take_answer(next, close + 1, text_[capital]);
  }

  bool match_plain(std::size_t next, std::size_t pos) {
    const std::size_t end = std::min(text_.find_first_of(U"*_\n", pos), text_.size());
    return end > pos && match(next, end);
  }

  bool match_word(std::size_t length, std::size_t next, std::size_t pos) {
    return length > 0 && match(next, pos + length);
  }

  bool match(std::size_t piece, std::size_t pos) {
    if (piece == form_.size()) {
      return true;
    }
    const std::size_t next = piece + 1;
    switch (form_[piece]) {
      case Piece::kLineStart:
        return (pos == 0 || text_[pos - 1] == U'\n') && match(next, pos);
      case Piece::kBoundary:
        return boundary(pos) && match(next, pos);
      case Piece::kNoLetterBefore:
        return !(pos > 0 && is_ascii_alphanumeric(text_[pos - 1])) && match(next, pos);
      case Piece::kNoLetterAfter:
        return !(has(pos) && is_ascii_alphanumeric(text_[pos])) && match(next, pos);
      case Piece::kMark:
        return match_mark(next, pos);
      case Piece::kMaybeMark:
        return match_mark(next, pos) || match(next, pos);
      case Piece::kSpaces:
        return match(next, spaces_end(pos));
      case Piece::kMaybeColon:
        return match_maybe(U":", next, pos);
      case Piece::kMaybeSeparator:
        return match_maybe(U":-–", next, pos);
      case Piece::kMaybeS:
        return match_word(word(U"s", pos), next, pos) || match(next, pos);
      case Piece::kAnswer:
        return match_word(word(U"answer", pos), next, pos);
      case Piece::kOptionOrChoice:
        return match_word(std::max(word(U"option", pos), word(U"choice", pos)), next, pos);
      case Piece::kOpen:
        return one_of(U"([", pos) && match(next, pos + 1);
      case Piece::kClose:
        return one_of(U")]", pos) && match(next, pos + 1);
      case Piece::kRoundOpen:
        return at(pos) == U'(' && match(next, pos + 1);
      case Piece::kRoundClose:
        return at(pos) == U')' && match(next, pos + 1);
      case Piece::kBoxed:
        return match_text(U"\\boxed{", next, pos);
      case Piece::kTextbf:
        return match_text(U"\\textbf{", next, pos);
      case Piece::kCapitalInBraces:
        return match_in_braces(next, pos);
      case Piece::kPlain:
        return match_plain(next, pos);
      case Piece::kLetter:
        return one_of(U"abcdABCD", pos) && take_answer(next, pos + 1, text_[pos]);
      case Piece::kCapital:
        return one_of(U"ABCD", pos) && take_answer(next, pos + 1, text_[pos]);
    }
    return false;
  }

  std::u32string_view text_;
  const Form& form_;
  char answer_ = 0;
};

}  // namespace

std::optional<char> letter_answer(std::u32string_view text) {
  std::optional<char> found;
  for (const Form& form : forms()) {
    found = Matcher(text, form).first();
    if (found) {
      break;
    }
  }
  if (!found) {
    if (text.substr(0, 2) == U"**") {
      text.remove_prefix(2);
    }
    constexpr std::u32string_view kLetters = U"ABCDabcd";
    if (!text.empty() && kLetters.find(text.front()) != std::u32string_view::npos) {
      found = static_cast<char>(text.front());
    }
  }
  if (found && *found >= 'a') {
    found = static_cast<char>(*found - 'a' + 'A');
  }
  return found;
}

}  // namespace tutti::accuracy
