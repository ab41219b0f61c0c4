#include "coordinator/accuracy/punkt.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "coordinator/accuracy/punkt_words.h"
#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

// Bits of an ortho context: at the start of a sentence, within one, not known where; in which case.
constexpr std::uint32_t kMidUpper = 4;
constexpr std::uint32_t kStartLower = 16;
constexpr std::uint32_t kAnyUpper = 2 + kMidUpper + 8;
constexpr std::uint32_t kAnyLower = kStartLower + 32 + 64;

// What the letters of a word say of whether it begins a sentence.
enum class Starts { kYes, kNo, kUnknown };

Starts by_letters(const PunktModel& model, const PunktWord& word) {
  constexpr std::u32string_view kNeverFirst = U";:,.!?";
  if (word.text.size() == 1 && kNeverFirst.find(word.text[0]) != std::u32string_view::npos) {
    return Starts::kNo;
  }
  const auto found = model.ortho_contexts.find(word.type_in_context());
  const std::uint32_t seen = found == model.ortho_contexts.end() ? 0 : found->second;
  const char32_t first = word.text.front();
  if (is_upper(first) && (seen & kAnyLower) != 0 && (seen & kMidUpper) == 0) {
    return Starts::kYes;
  }
  const bool within = (seen & kAnyUpper) != 0 || (seen & kStartLower) == 0;
  return is_lower(first) && within ? Starts::kNo : Starts::kUnknown;
}

// What a word says by itself (section 3 of the paper has the abbreviations from training).
void judge_alone(const PunktModel& model, PunktWord& word) {
  const std::u32string_view text = word.text;
  if (text.size() == 1 && is_sentence_end(text[0])) {
    word.ends_sentence = true;
  } else if (text.size() > 1 && text.find_first_not_of(U'.') == std::u32string_view::npos) {
    word.ellipsis = true;
  } else if (word.ends_in_period && !text.ends_with(U"..")) {
    const std::u32string bare = lowered(text.substr(0, text.size() - 1));
    const std::size_t dash = bare.rfind(U'-');
    const std::u32string tail = dash == std::u32string::npos ? bare : bare.substr(dash + 1);
    word.abbreviation = model.abbreviations.count(bare) + model.abbreviations.count(tail) > 0;
    word.ends_sentence = !word.abbreviation;
  }
}

// What the next word makes of one that ends in a period (section 4).
void judge_in_context(const PunktModel& model, PunktWord& word, const PunktWord& next) {
  if (!word.ends_in_period) {
    return;
  }
  const auto set = [&word](bool ends_sentence) {
    word.ends_sentence = ends_sentence;
    word.abbreviation = word.abbreviation || !ends_sentence;
  };
  const std::u32string type = word.type_without_period();
  const std::u32string next_type = next.type_in_context();
  const bool next_is_upper = is_upper(next.text.front());
  const bool initial = word.is_initial();
  if (model.collocations.count(type + U'\t' + next_type) > 0) {
    set(false);
    return;
  }
  const Starts starts = by_letters(model, next);
  if ((word.abbreviation || word.ellipsis) && !initial &&
      (starts == Starts::kYes || (next_is_upper && model.starters.count(next_type) > 0))) {
    set(true);
    return;
  }
  if (!initial && type != kNumberType) {
    return;
  }
  // "J. Bach": a name that was never seen in lower case follows.
  const auto found = model.ortho_contexts.find(next_type);
  const bool never_lower = found == model.ortho_contexts.end() || (found->second & kAnyLower) == 0;
  if (starts == Starts::kNo ||
      (starts == Starts::kUnknown && initial && next_is_upper && never_lower)) {
    set(false);
  }
}

// Whether a sentence ends in `context` before its last word.
bool has_break(const PunktModel& model, std::u32string_view context) {
  std::vector<PunktWord> words = punkt_words(context);
  for (PunktWord& word : words) {
    judge_alone(model, word);
  }
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    judge_in_context(model, words[i], words[i + 1]);
    if (words[i].ends_sentence) {
      return true;
    }
  }
  return false;
}

// A place where a sentence may end.
struct Place {
  std::size_t at = 0;           // of the mark
  std::size_t word_at = 0;      // where the word before it begins
  std::size_t context_end = 0;  // behind the word or mark that follows
  std::size_t next_at = 0;      // where the next sentence would begin
};

// The mark at `at` with what follows it; nothing when that shows that no sentence ends.
std::optional<Place> place_at(std::u32string_view text, std::size_t at) {
  const std::size_t behind = at + 1;
  if (!is_sentence_end(text[at]) || behind == text.size()) {
    return std::nullopt;
  }
  if (ends_word(text[behind])) {
    return Place{at, 0, behind + 1, behind};
  }
  const auto from = text.begin() + static_cast<std::ptrdiff_t>(behind);
  const auto word = std::find_if_not(from, text.end(), is_gap);
  if (word == from || word == text.end()) {
    return std::nullopt;
  }
  const auto end = std::find_if(word, text.end(), is_gap);
  return Place{at, 0, static_cast<std::size_t>(end - text.begin()),
               static_cast<std::size_t>(word - text.begin())};
}

// Where the word before `at` begins, as NLTK looks for it: behind the last ASCII white space since
// the mark before, which does not count when it follows that mark at once.
std::size_t word_before(std::u32string_view text, const Place& before, std::size_t at) {
  constexpr std::u32string_view kBlank = U" \t\n\r\v\f";
  const std::u32string_view between = text.substr(before.at, at - before.at);
  const std::size_t blank = between.find_last_of(kBlank);
  return blank == std::u32string_view::npos || blank == 0 ? before.word_at : before.at + blank + 1;
}

// Of marks within one word only the last counts.
std::vector<Place> places(std::u32string_view text) {
  std::vector<Place> out;
  Place before;  // also the start of the text
  bool any = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto place = place_at(text, at);
    if (!place) {
      continue;
    }
    place->word_at = word_before(text, before, at);
    if (any && before.at <= place->word_at) {
      out.push_back(before);
    }
    before = *place;
    any = true;
  }
  if (any) {
    out.push_back(before);
  }
  return out;
}

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Span> spans(const PunktModel& model, std::u32string_view text) {
  std::vector<Span> out;
  std::size_t begin = 0;
  for (const Place& place : places(text)) {
    if (has_break(model, text.substr(place.word_at, place.context_end - place.word_at))) {
      out.push_back({begin, place.at + 1});
      begin = place.next_at;
    }
  }
  std::size_t end = text.size();
  while (end > 0 && is_space(text[end - 1])) {
    --end;
  }
  out.push_back({begin, std::max(begin, end)});
  return out;
}

struct Closing {
  std::size_t marks = 0;  // that belong to the sentence before
  std::size_t all = 0;    // with the white space behind them
};

// The brackets and quotes that `text` begins with, up to the first behind which it may go on.
Closing closing_of(std::u32string_view text) {
  for (std::size_t n = 0; n < text.size() && is_closing(text[n]); ++n) {
    const std::u32string_view rest = text.substr(n + 1);
    if (rest.empty() || rest.starts_with(U"--")) {
      return {n + 1, n + 1};
    }
    if (is_gap(rest.front())) {
      const auto word = std::find_if_not(rest.begin(), rest.end(), is_gap);
      return {n + 1, n + 1 + static_cast<std::size_t>(word - rest.begin())};
    }
  }
  return {};
}

std::vector<std::u32string> lines_of(const std::string& text) {
  std::vector<std::u32string> out;
  const std::u32string all = decoded(text);
  for (std::size_t from = 0; from < all.size();) {
    const std::size_t end = std::min(all.find(U'\n', from), all.size());
    std::u32string line = all.substr(from, end - from);
    if (!line.empty() && line.back() == U'\r') {
      line.pop_back();
    }
    if (!line.empty()) {
      out.push_back(std::move(line));
    }
    from = end + 1;
  }
  return out;
}

tl::unexpected<base::Error> wrong(const char* file, std::u32string_view line) {
  return base::fail(base::ExitCode::kSetup,
                    fmt::format("{}: '{}' is no line of such a file", file, encoded(line)));
}

bool add_context(std::u32string_view line, PunktModel& model) {
  const std::size_t tab = line.find(U'\t');
  if (tab == std::u32string_view::npos) {
    return false;
  }
  const std::string number = encoded(line.substr(tab + 1));
  std::uint32_t bits = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), bits);
  model.ortho_contexts[std::u32string(line.substr(0, tab))] = bits;
  return read.ec == std::errc() && read.ptr == number.data() + number.size();
}

}  // namespace

base::Result<PunktModel> read_punkt(const PunktTexts& texts) {
  PunktModel out;
  for (std::u32string& line : lines_of(texts.abbreviations)) {
    out.abbreviations.insert(std::move(line));
  }
  for (std::u32string& line : lines_of(texts.starters)) {
    out.starters.insert(std::move(line));
  }
  for (std::u32string& line : lines_of(texts.collocations)) {
    if (std::count(line.begin(), line.end(), U'\t') != 1) {
      return wrong("collocations.tab", line);
    }
    out.collocations.insert(std::move(line));
  }
  for (const std::u32string& line : lines_of(texts.ortho_contexts)) {
    if (!add_context(line, out)) {
      return wrong("ortho_context.tab", line);
    }
  }
  return out;
}

std::vector<std::u32string_view> sentences(const PunktModel& model, std::u32string_view text) {
  std::vector<std::u32string_view> out;
  const std::vector<Span> found = spans(model, text);
  std::size_t taken = 0;  // of the next one's start, by the one before
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t begin = found[i].begin + taken;
    std::size_t end = found[i].end;
    taken = 0;
    if (i + 1 < found.size()) {
      const Span& next = found[i + 1];
      const Closing closing = closing_of(text.substr(next.begin, next.end - next.begin));
      end = closing.marks > 0 ? next.begin + closing.marks : end;
      taken = closing.all;
    }
    if (begin < end) {
      out.push_back(text.substr(begin, end - begin));
    }
  }
  return out;
}

std::u32string by_lines(const PunktModel& model, std::u32string_view text) {
  std::u32string out;
  for (const std::u32string_view sentence : sentences(model, trimmed(text))) {
    out += out.empty() ? U"" : U"\n";
    out += sentence;
  }
  return out;
}

}  // namespace tutti::accuracy
